//! The syntax tree, as written: no name is resolved and nothing is desugared.
//!
//! Nodes are in tables and refer to each other by typed ids; spans are in tables of their own. Two trees are
//! equal if they have the same shape, wherever their text is ([`Ast::same`]).

use crate::syntax::Name;
use broadloom_diag::Span;
use cranelift_entity::{PrimaryMap, entity_impl};
use std::sync::Arc;

/// Names an expression.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(u32);
entity_impl!(ExprId, "expr");

/// Names a pattern.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PatternId(u32);
entity_impl!(PatternId, "pattern");

/// Names a type expression.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeExprId(u32);
entity_impl!(TypeExprId, "type");

/// The nodes of one text.
#[derive(Clone, Debug, Default)]
pub struct Ast {
    /// The expressions.
    pub exprs: PrimaryMap<ExprId, Expr>,
    /// The place of each expression.
    pub expr_spans: PrimaryMap<ExprId, Span>,
    /// Patterns of all forms; others refer to them by id.
    pub patterns: PrimaryMap<PatternId, Pattern>,
    /// The place of each pattern.
    pub pattern_spans: PrimaryMap<PatternId, Span>,
    /// The type expressions.
    pub types: PrimaryMap<TypeExprId, TypeExpr>,
    /// The place of each type expression.
    pub type_spans: PrimaryMap<TypeExprId, Span>,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// An integer literal without its sign.
    Int(u64),
    /// A float literal without its sign.
    Float(f64),
    /// `t` or `f`.
    Bool(bool),
    /// `` `c ``
    Char(u8),
    /// `"…"`
    Text(Arc<[u8]>),
    /// A variable or a function.
    Name(Name),
    /// `a, b`
    Pair(ExprId, ExprId),
    /// `f(a)` or `f a`
    Apply(ExprId, ExprId),
    /// `v[i]`
    Index(ExprId, ExprId),
    /// `time(e)`
    Time(ExprId),
    /// A prefix operator.
    Unary(UnaryOp, ExprId),
    /// An infix operator.
    Binary(BinaryOp, ExprId, ExprId),
    /// `if c then a else b`
    If(ExprId, ExprId, ExprId),
    /// `let p = e; … in e`
    Let(Vec<(PatternId, ExprId)>, ExprId),
    /// `{e : p in e; … | e}`
    Each(Box<Each>),
    /// `[e, e, …]`, not empty.
    Sequence(Vec<ExprId>),
    /// `[] type`
    Empty(TypeExprId),
    /// `[s : e]` or `[s : e : d]`
    Range(ExprId, ExprId, Option<ExprId>),
    /// `p => e`
    Lambda(PatternId, ExprId),
    /// `k := e`, an optional argument of a call.
    Keyword(Name, ExprId),
    /// A place holder for text that could not be parsed.
    Broken,
}

/// An apply-to-each.
#[derive(Clone, Debug, PartialEq)]
pub struct Each {
    /// `{* …}`: elements are computed one after the other.
    pub serial: bool,
    /// The expression before `:`. Without one the elements of the first generator are the result.
    pub body: Option<ExprId>,
    /// The generators, at least one.
    pub generators: Vec<Generator>,
    /// The expression after `|`.
    pub filter: Option<ExprId>,
}

/// `p in e`, or `x` for `x in x`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Generator {
    /// The pattern that each element is bound to.
    pub pattern: PatternId,
    /// The sequence; the variable of the pattern itself when absent.
    pub source: Option<ExprId>,
}

/// A pattern: names bound to the parts of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// The whole value.
    Name(Name),
    /// The two parts of a pair.
    Pair(PatternId, PatternId),
    /// The argument of a constructor.
    Data(Name, PatternId),
    /// A parameter with a default value, in the head of a function only.
    Optional(Name, ExprId),
    /// A place holder for text that is no pattern.
    Broken,
}

/// A type as written.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeExpr {
    /// A base type, a datatype without parameters or a type variable.
    Name(Name),
    /// `[type]`
    Seq(TypeExprId),
    /// `type, type`
    Pair(TypeExprId, TypeExprId),
    /// `type -> type`
    Function(TypeExprId, TypeExprId),
    /// `name(type, …)`, the arguments as right-nested pairs.
    Data(Name, TypeExprId),
    /// A place holder for text that is no type.
    Broken,
}

/// `type :: (v in class; …)`
#[derive(Clone, Debug, PartialEq)]
pub struct TypeSpec {
    /// The type.
    pub ty: TypeExprId,
    /// The variables with the names of their classes and the places of these.
    pub context: Vec<(Name, Name, Span)>,
}

/// A top-level form.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// The form.
    pub kind: FormKind,
    /// The place, without the terminator.
    pub span: Span,
}

/// The kinds of top-level forms.
#[derive(Clone, Debug, PartialEq)]
pub enum FormKind {
    /// `function f(p) : type "doc" = e`
    Function(FunctionForm),
    /// `datatype n(type) :: (…)`
    Datatype(DatatypeForm),
    /// `p = e`; the flag marks `p |= e`.
    Bind(PatternId, ExprId, bool),
    /// `e`
    Expr(ExprId),
    /// A command with the words and literals after it.
    Command(Name, Vec<CommandWord>),
    /// `load e`
    Load(Option<ExprId>),
    /// `dump vcode "file" e`
    DumpVcode(CommandWord, ExprId),
    /// A form that could not be parsed; its errors are at this index of [`Program::errors`].
    Broken(usize),
}

/// A function definition. Without a body it declares the type of a function that is defined later.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionForm {
    /// The defined name.
    pub name: Name,
    /// The place of the name.
    pub name_span: Span,
    /// The pattern that the argument is bound to.
    pub parameter: PatternId,
    /// The declared type.
    pub spec: Option<TypeSpec>,
    /// The text that `describe` shows.
    pub doc: Option<Arc<[u8]>>,
    /// The expression behind `=`; `None` if it could not be parsed.
    pub body: Option<ExprId>,
}

/// A datatype definition.
#[derive(Clone, Debug, PartialEq)]
pub struct DatatypeForm {
    /// The name of the type and of its constructor.
    pub name: Name,
    /// The place of the name.
    pub name_span: Span,
    /// The content.
    pub spec: TypeSpec,
}

/// One argument of a command such as `load` or `set`.
#[derive(Clone, Debug, PartialEq)]
pub enum CommandWord {
    /// A name, a keyword or an operator.
    Word(String),
    /// An integer.
    Int(u64),
    /// A string.
    Text(Arc<[u8]>),
}

/// The forms of one text.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The nodes.
    pub ast: Arc<Ast>,
    /// The forms in order.
    pub forms: Vec<Form>,
    /// The errors of broken forms.
    pub errors: Vec<broadloom_diag::Diagnostics>,
}

macro_rules! binary_operators {
    ($($name:ident $text:literal $left:literal $right:literal;)*) => {
        /// Infix operators that are calls of functions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum BinaryOp {
            $($name,)*
        }

        impl BinaryOp {
            /// All operators.
            pub const ALL: &[BinaryOp] = &[$(BinaryOp::$name,)*];

            /// Returns the spelling, which is also the name of the function.
            pub fn text(self) -> &'static str {
                match self {
                    $(BinaryOp::$name => $text,)*
                }
            }

            /// Returns the binding strengths of the operator to its left and to its right. Larger binds
            /// tighter.
            pub fn binding(self) -> (u8, u8) {
                match self {
                    $(BinaryOp::$name => ($left, $right),)*
                }
            }
        }
    };
}

// Name, spelling, binding to the left and to the right.
binary_operators! {
    Or "or" 7 7;
    Nor "nor" 7 7;
    Xor "xor" 7 7;
    And "and" 8 8;
    Nand "nand" 8 8;
    Equal "==" 10 10;
    NotEqual "/=" 10 10;
    Less "<" 10 10;
    Greater ">" 10 10;
    LessEqual "<=" 10 10;
    GreaterEqual ">=" 10 10;
    Add "+" 20 20;
    Subtract "-" 20 20;
    Append "++" 20 20;
    Multiply "*" 21 21;
    Divide "/" 21 21;
    Pad "||" 21 21;
    Power "^" 22 22;
    Write "<-" 23 23;
    Read "->" 24 23;
}

/// Prefix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-`
    Negate,
    /// `#`
    Length,
    /// `@`
    Show,
}

impl UnaryOp {
    /// Returns the spelling.
    pub fn text(self) -> &'static str {
        match self {
            UnaryOp::Negate => "-",
            UnaryOp::Length => "#",
            UnaryOp::Show => "@",
        }
    }

    /// Returns the name of the function.
    pub fn function(self) -> &'static str {
        match self {
            UnaryOp::Negate => "negate",
            UnaryOp::Length => "#",
            UnaryOp::Show => "@",
        }
    }
}

/// Binding strength of `,`: the left side of a pair is parsed above this level.
pub(crate) const COMMA: u8 = 4;
/// Binding strength of `=>` and `:=`.
pub(crate) const LAMBDA: u8 = 5;
/// Binding strength of prefix operators.
pub(crate) const PREFIX: u8 = 25;
/// Binding strength of calls and indices.
pub(crate) const POSTFIX: u8 = 30;

impl Ast {
    /// Adds an expression.
    pub fn expr(&mut self, expr: Expr, span: Span) -> ExprId {
        self.expr_spans.push(span);
        self.exprs.push(expr)
    }

    /// Adds a pattern.
    pub fn pattern(&mut self, pattern: Pattern, span: Span) -> PatternId {
        self.pattern_spans.push(span);
        self.patterns.push(pattern)
    }

    /// Adds a type expression.
    pub fn ty(&mut self, ty: TypeExpr, span: Span) -> TypeExprId {
        self.type_spans.push(span);
        self.types.push(ty)
    }
}
