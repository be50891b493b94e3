//! The syntax tree: programs as written, with places and without name resolution.

use broadloom_diag::Span;
use std::sync::Arc;

/// A name and its place.
#[derive(Clone, Debug)]
pub struct Ident {
    /// The text of the identifier.
    pub name: Arc<str>,
    /// Its place.
    pub span: Span,
}

/// A program: all declarations, of each kind in the order of the text.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Filters, pipelines, splitjoins and feedbackloops.
    pub streams: Vec<Stream>,
    /// Declarations of `struct`.
    pub structs: Vec<Struct>,
    /// `static` sections.
    pub statics: Vec<Static>,
    /// `helper` and `native` packages.
    pub packages: Vec<Package>,
    /// Other texts that belong to the program.
    pub includes: Vec<Include>,
    /// Values that are set from outside of the text.
    pub settings: Vec<Setting>,
}

/// `include "name";`, or `include <name>;` for a text of the library.
#[derive(Clone, Debug)]
pub struct Include {
    /// The path in quotes.
    pub name: Arc<str>,
    /// True for a text of the library.
    pub is_block: bool,
    /// Its place.
    pub span: Span,
}

/// `name = value`: the value of a static variable or of a parameter of the top-level stream. `Stream.name = value`: the
/// value of a parameter wherever that stream is added.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The stream of a parameter.
    pub stream: Option<Ident>,
    /// The name of the variable or parameter.
    pub name: Ident,
    /// The expression behind `=`.
    pub value: Expr,
}

impl Program {
    /// Adds the declarations of another text.
    pub fn append(&mut self, mut other: Program) {
        self.streams.append(&mut other.streams);
        self.structs.append(&mut other.structs);
        self.statics.append(&mut other.statics);
        self.packages.append(&mut other.packages);
        self.includes.append(&mut other.includes);
        self.settings.append(&mut other.settings);
    }
}

/// `struct name { members }`.
#[derive(Clone, Debug)]
pub struct Struct {
    /// The name of the type.
    pub name: Ident,
    /// Types and names of its parts.
    pub members: Vec<Parameter>,
}

/// `static { fields init }`.
#[derive(Clone, Debug)]
pub struct Static {
    /// Variables that all streams see.
    pub fields: Vec<Variable>,
    /// Statements that run before anything else.
    pub init: Option<Vec<Stmt>>,
}

/// A `helper` package, or a `native` one, whose functions have no body.
#[derive(Clone, Debug)]
pub struct Package {
    /// The name before the point of a call.
    pub name: Ident,
    /// Functions that it declares.
    pub functions: Vec<Function>,
}

/// A written type: a base and array lengths, outermost first.
#[derive(Clone, Debug)]
pub struct Type {
    /// The element type.
    pub base: Base,
    /// Lengths of the dimensions.
    pub lengths: Vec<Expr>,
    /// Its place.
    pub span: Span,
}

/// The part of a type before its lengths.
#[derive(Clone, Debug, PartialEq)]
pub enum Base {
    /// `void`.
    Void,
    /// `boolean`.
    Boolean,
    /// `bit`.
    Bit,
    /// `int`.
    Int,
    /// `float`.
    Float,
    /// `double`.
    Double,
    /// `complex`.
    Complex,
    /// A struct.
    Named(Arc<str>),
    /// `portal<name>`.
    Portal(Arc<str>),
}

/// A parameter, or a member of a struct.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its type.
    pub ty: Type,
    /// The name inside of the function or stream.
    pub name: Ident,
}

/// A field or a local.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its type.
    pub ty: Type,
    /// The declared name.
    pub name: Ident,
    /// Its first value.
    pub value: Option<Expr>,
}

/// A stream declaration, or an anonymous stream.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Its name. Absent for an anonymous stream.
    pub name: Option<Ident>,
    /// Its parameters.
    pub params: Vec<Parameter>,
    /// Input and output type. Anonymous composites may omit them.
    pub types: Option<(Type, Type)>,
    /// Its kind and contents.
    pub kind: StreamKind,
    /// The place of the keyword of its kind.
    pub span: Span,
}

/// The five kinds of declared streams.
#[derive(Clone, Debug)]
pub enum StreamKind {
    /// A node with its own code.
    Filter(Box<Filter>),
    /// A stream made of streams.
    Composite(Composite, Vec<Stmt>),
}

/// The kinds of composite streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Composite {
    /// Streams in sequence.
    Pipeline,
    /// Parallel streams between a splitter and a joiner.
    SplitJoin,
    /// A body whose output partly returns to its input.
    FeedbackLoop,
}

/// The contents of a filter.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Fields, in order.
    pub fields: Vec<Variable>,
    /// Statements that run once for each instance.
    pub init: Option<Vec<Stmt>>,
    /// The first firing.
    pub prework: Option<Work>,
    /// All other firings.
    pub work: Option<Work>,
    /// Helper functions.
    pub functions: Vec<Function>,
    /// Message handlers.
    pub handlers: Vec<Function>,
    /// True if the word `stateful` stands before `filter`.
    pub stateful: bool,
}

/// `work` or `prework`.
#[derive(Clone, Debug)]
pub struct Work {
    /// Items that a firing pushes, pops and peeks.
    pub rates: Rates,
    /// Its statements.
    pub body: Vec<Stmt>,
    /// The place of its keyword.
    pub span: Span,
}

/// The declared rates of a function.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    /// Items pushed.
    pub push: Option<Rate>,
    /// Items popped.
    pub pop: Option<Rate>,
    /// Items peeked.
    pub peek: Option<Rate>,
}

/// One rate.
#[derive(Clone, Debug)]
pub enum Rate {
    /// A constant.
    Exact(Expr),
    /// A range; an absent bound is `*`.
    Range(Option<Expr>, Option<Expr>, Span),
}

/// A function. Its body is absent in a `native` package.
#[derive(Clone, Debug)]
pub struct Function {
    /// The type of its result.
    pub result: Type,
    /// The name that calls use.
    pub name: Ident,
    /// Its parameters.
    pub params: Vec<Parameter>,
    /// Items that a call pushes, pops and peeks.
    pub rates: Rates,
    /// Its statements.
    pub body: Option<Vec<Stmt>>,
}

/// A statement and its place.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// The statement.
    pub kind: StmtKind,
    /// Its place.
    pub span: Span,
}

/// The statements.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// `{ … }`.
    Block(Vec<Stmt>),
    /// Declarations of locals.
    Declare(Vec<Variable>),
    /// An assignment, with the operator if it is compound.
    Assign(Expr, Option<Binary>, Expr),
    /// A call, `++`, `--`, `pop()` or `peek(e)`, evaluated for its effect.
    Expr(Expr),
    /// `push(e)`.
    Push(Expr),
    /// `if`.
    If(Expr, Box<Stmt>, Option<Box<Stmt>>),
    /// `while`.
    While(Expr, Box<Stmt>),
    /// `do … while`.
    DoWhile(Box<Stmt>, Expr),
    /// `for`.
    For(Option<Box<Stmt>>, Option<Expr>, Option<Box<Stmt>>, Box<Stmt>),
    /// `break`.
    Break,
    /// `continue`.
    Continue,
    /// `return`.
    Return(Option<Expr>),
    /// `name.function(arguments) [latency]`: a call of a package function, or a message.
    Send(Ident, Ident, Vec<Expr>, Latency),
    /// `add`.
    Add(Create),
    /// `body`.
    Body(Create),
    /// `loop`.
    Loop(Create),
    /// `split`.
    Split(Distribution),
    /// `join`.
    Join(Distribution),
    /// `enqueue`.
    Enqueue(Expr),
}

/// The latency of a message.
#[derive(Clone, Debug)]
pub enum Latency {
    /// No brackets: 0.
    None,
    /// `[*]`.
    Any,
    /// `[min:max]`.
    Range(Option<Box<Expr>>, Option<Box<Expr>>),
}

/// A stream that a graph statement creates.
#[derive(Clone, Debug)]
pub struct Create {
    /// The declared or anonymous stream that is added.
    pub stream: Created,
    /// Portals with which it is registered.
    pub portals: Vec<Ident>,
    /// Its place.
    pub span: Span,
}

/// The stream of a [`Create`].
#[derive(Clone, Debug)]
pub enum Created {
    /// `Name<type>(arguments)`.
    Named(Ident, Option<Type>, Vec<Expr>),
    /// An anonymous stream.
    Anonymous(Box<Stream>),
}

/// The distribution of items by a splitter or a joiner.
#[derive(Clone, Debug)]
pub enum Distribution {
    /// Every item to every branch.
    Duplicate,
    /// One weight for all branches. Absent means 1.
    Even(Option<Expr>),
    /// One weight for each branch.
    Weights(Vec<Expr>),
}

/// An expression and its place.
#[derive(Clone, Debug)]
pub struct Expr {
    /// The expression.
    pub kind: ExprKind,
    /// Its place.
    pub span: Span,
    /// Height of the tree. The parser bounds it.
    pub height: u32,
}

/// The expressions.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// An integer.
    Int(i32),
    /// A literal with a point or an exponent.
    Float(f32),
    /// An imaginary number.
    Imaginary(f32),
    /// `true`, `false`.
    Boolean(bool),
    /// A string.
    Text(Arc<str>),
    /// A variable or a constant.
    Name(Arc<str>),
    /// `a.member`.
    Member(Box<Expr>, Ident),
    /// `a[index]`.
    Index(Box<Expr>, Box<Expr>),
    /// `name(arguments)`.
    Call(Ident, Vec<Expr>),
    /// `package.name(arguments)`.
    PackageCall(Ident, Ident, Vec<Expr>),
    /// `pop()`.
    Pop,
    /// `peek(e)`.
    Peek(Box<Expr>),
    /// `iter()`.
    Iter,
    /// `-e`.
    Negate(Box<Expr>),
    /// `!e`.
    Not(Box<Expr>),
    /// `~e`.
    Complement(Box<Expr>),
    /// `++e`, `e++`, `--e`, `e--`: the place and the step. The flag is true if the step comes first.
    Step(Box<Expr>, i32, bool),
    /// A binary operation.
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// `c ? a : b`.
    Choose(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `(type) e`.
    Cast(Base, Box<Expr>),
    /// `{ a, b, … }`.
    List(Vec<Expr>),
}

/// Binary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Binary {
    Or,
    And,
    BitOr,
    BitAnd,
    BitXor,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    ShiftLeft,
    ShiftRight,
}

impl Binary {
    /// Returns the operator as written.
    pub fn symbol(self) -> &'static str {
        match self {
            Binary::Or => "||",
            Binary::And => "&&",
            Binary::BitOr => "|",
            Binary::BitAnd => "&",
            Binary::BitXor => "^",
            Binary::Equal => "==",
            Binary::NotEqual => "!=",
            Binary::Less => "<",
            Binary::LessEqual => "<=",
            Binary::Greater => ">",
            Binary::GreaterEqual => ">=",
            Binary::Add => "+",
            Binary::Subtract => "-",
            Binary::Multiply => "*",
            Binary::Divide => "/",
            Binary::Modulo => "%",
            Binary::ShiftLeft => "<<",
            Binary::ShiftRight => ">>",
        }
    }
}
