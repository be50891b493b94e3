//! Core: the typed program.
//!
//! Names are resolved to indices, every expression has its type, and every implicit conversion is a node. An
//! anonymous stream is a stream like any other: the names it uses from its surroundings are additional
//! parameters. Parameters of streams stay symbolic, so one [`Filter`] serves all instances. An instance in a
//! [`crate::language::graph::Graph`] adds values.
//!
//! Invariants:
//! - both operands of a [`Binary`] have the type that [`ExprKind::Binary`] names;
//! - an assignment, a push, an argument and a returned value have exactly the type of their target;
//! - statements that build graphs occur in composite streams only, tape operations in filters only.

mod facts;
mod value;

pub use crate::language::syntax::ast::Composite;
pub use facts::{Facts, facts, mark_written_parameters};
pub(crate) use facts::{construction, each_call, each_index, each_operand, each_write, locals_written};
pub(crate) use value::identify;
pub use value::{Layout, Value};

use crate::language::format::Sample;
use broadloom_diag::Span;
use cranelift_entity::{PrimaryMap, entity_impl};
use std::sync::Arc;

/// Names a struct.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StructId(u32);
entity_impl!(StructId, "struct");

/// Names a stream declaration or an anonymous stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(u32);
entity_impl!(StreamId, "stream");

/// Names a function of a filter, of a package, or the body of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(u32);
entity_impl!(FunctionId, "function");

/// The typed program: streams, functions and constants by id.
#[derive(Clone, Debug)]
pub struct Program {
    /// Structs by id.
    pub structs: PrimaryMap<StructId, Struct>,
    /// Streams, anonymous ones included.
    pub streams: PrimaryMap<StreamId, Stream>,
    /// Functions of all filters and packages.
    pub functions: PrimaryMap<FunctionId, Function>,
    /// Variables of `static` sections.
    pub statics: Vec<Field>,
    /// The `init` functions of `static` sections, in order.
    pub static_init: Vec<FunctionId>,
    /// The top-level stream.
    pub top: StreamId,
    /// The values of its parameters.
    pub top_args: Vec<Expr>,
}

/// The type of a value, without array lengths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Type {
    /// No value.
    #[default]
    Void,
    /// Truth values.
    Boolean,
    /// 0 or 1.
    Bit,
    /// Integers of 32 bits that wrap.
    Int,
    /// IEEE single precision.
    Float,
    /// IEEE double precision.
    Double,
    /// Two floats.
    Complex,
    /// A declared struct, by id.
    Struct(StructId),
    /// An array of any length.
    Array(Arc<Type>),
    /// A portal to filters of a stream declaration.
    Portal(StreamId),
    /// A string, in print statements and as a file name.
    Text,
    /// The type of an expression with an error that was already reported.
    Unknown,
}

/// A declared type with the lengths of its dimensions, outermost first.
#[derive(Clone, Debug)]
pub struct DeclaredType {
    /// The type.
    pub ty: Type,
    /// The lengths, of type int.
    pub lengths: Vec<Expr>,
    /// Its place in the text.
    pub span: Span,
}

/// A declared type with named members.
#[derive(Clone, Debug)]
pub struct Struct {
    /// The name in the program.
    pub name: Arc<str>,
    /// Names and types, in the declared order.
    pub members: Vec<(Arc<str>, DeclaredType)>,
}

/// A field of a filter, or a variable of a `static` section.
#[derive(Clone, Debug)]
pub struct Field {
    /// The name in the program.
    pub name: Arc<str>,
    /// Its type and lengths.
    pub declared: DeclaredType,
    /// Its initial value. Absent means zero.
    pub value: Option<Expr>,
    /// Its place.
    pub span: Span,
}

/// A parameter or local.
#[derive(Clone, Debug)]
pub struct Variable {
    /// The name in the program.
    pub name: Arc<str>,
    /// Its type.
    pub ty: Type,
    /// Its place.
    pub span: Span,
}

/// A declared stream with its parameters.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Its name, or the keyword of its kind if it is anonymous.
    pub name: Arc<str>,
    /// Parameters. Those of an anonymous stream are its captured names.
    pub params: Vec<Variable>,
    /// Input and output type, if they are written.
    pub types: Option<(DeclaredType, DeclaredType)>,
    /// Its contents.
    pub kind: StreamKind,
    /// Its place.
    pub span: Span,
}

/// The contents of a stream.
#[derive(Clone, Debug)]
pub enum StreamKind {
    /// A node with its own code.
    Filter(Box<Filter>),
    /// A composite stream and the function that builds it.
    Composite(Composite, FunctionId),
}

/// A node's fields, `init`, `prework` and `work`.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Fields, initialised in order.
    pub fields: Vec<Field>,
    /// Runs once for each instance, after the fields are initialised.
    pub init: Option<FunctionId>,
    /// The first firing.
    pub prework: Option<Work>,
    /// Every other firing.
    pub work: Work,
    /// Message handlers by name.
    pub handlers: Vec<(Arc<str>, FunctionId)>,
    /// True if it was declared `stateful`.
    pub stateful: bool,
}

/// A work function and its rates.
#[derive(Clone, Debug)]
pub struct Work {
    /// The code of a firing.
    pub function: FunctionId,
    /// Items pushed.
    pub push: Rate,
    /// Items popped.
    pub pop: Rate,
    /// Items peeked.
    pub peek: Rate,
    /// Its place.
    pub span: Span,
}

/// A declared rate, as expressions over parameters and statics.
#[derive(Clone, Debug)]
pub enum Rate {
    /// Not written.
    None,
    /// One number.
    Exact(Expr),
    /// Bounds. An absent bound is not known.
    Range(Option<Expr>, Option<Expr>),
}

/// Code with parameters and locals.
#[derive(Clone, Debug)]
pub struct Function {
    /// The name in the program.
    pub name: Arc<str>,
    /// Number of parameters. They are the first locals.
    pub params: usize,
    /// Parameters that the function writes. Arrays passed for them are copied back at the return.
    pub written: Vec<bool>,
    /// The type of the result.
    pub result: Type,
    /// Variables of the body, parameters first.
    pub locals: Vec<Variable>,
    /// Statements. A native function has none.
    pub body: Option<Vec<Stmt>>,
    /// Its place.
    pub span: Span,
}

/// A statement.
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
    /// Statements in sequence.
    Block(Vec<Stmt>),
    /// Declares a local with the given value. Without a value, a scalar is unset and any other local is zero.
    Declare(usize, DeclaredType, Option<Expr>),
    /// Stores into a place, through an operator if one is given.
    Assign(Place, Option<Binary>, Expr),
    /// Evaluates an expression for its effect.
    Expr(Expr),
    /// Puts an item on the output tape.
    Push(Expr),
    /// Prints, with a newline if the flag is set.
    Print(Expr, bool),
    /// A conditional statement.
    If(Expr, Box<Stmt>, Option<Box<Stmt>>),
    /// A loop: condition, step, body. The flag is true if the condition is tested before the first round.
    Loop(Option<Expr>, Option<Box<Stmt>>, Box<Stmt>, bool),
    /// Leaves a loop.
    Break,
    /// Begins the next round of a loop.
    Continue,
    /// Leaves the function.
    Return(Option<Expr>),
    /// Sends a message.
    Send(Box<MessageSend>),
    /// Creates a child: of a pipeline or splitjoin, or the body or loop of a feedbackloop.
    Create(Role, Box<Create>),
    /// Sets the splitter.
    Split(Distribution),
    /// Sets the joiner.
    Join(Distribution),
    /// Puts an item on the tape from the loop stream to the joiner.
    Enqueue(Expr),
}

/// A call of a handler by a portal.
#[derive(Clone, Debug)]
pub struct MessageSend {
    /// The value that lists the receivers.
    pub portal: Expr,
    /// The name of the handler.
    pub handler: Arc<str>,
    /// Its arguments.
    pub args: Vec<Expr>,
    /// The maximum latency until the message is delivered.
    pub latency: Option<Expr>,
}

/// The role of a child in its composite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A part of a pipeline, a branch of a splitjoin.
    Child,
    /// The body of a feedbackloop.
    Body,
    /// The loop stream of a feedbackloop.
    Loop,
}

/// A stream that is created.
#[derive(Clone, Debug)]
pub struct Create {
    /// The declared or anonymous stream that is added.
    pub stream: Created,
    /// Values of its parameters.
    pub args: Vec<Expr>,
    /// Portals with which it is registered.
    pub portals: Vec<Expr>,
    /// Its place.
    pub span: Span,
}

/// The stream of a [`Create`].
#[derive(Clone, Debug)]
pub enum Created {
    /// A stream of the program.
    Stream(StreamId),
    /// `Identity<type>`.
    Identity(DeclaredType),
    /// `FileReader<type>(name, format)`, and the numbers of the file if the type names them.
    FileReader(DeclaredType, Option<Sample>),
    /// `FileWriter<type>(name, format)`, and the numbers of the file if the type names them.
    FileWriter(DeclaredType, Option<Sample>),
}

/// The distribution of items by a splitter or a joiner.
#[derive(Clone, Debug)]
pub enum Distribution {
    /// Every item to every branch.
    Duplicate,
    /// One weight for all branches.
    Even(Expr),
    /// One weight for each branch.
    Weights(Vec<Expr>),
}

/// Maximum number of indices and members in one place.
pub(crate) const MAX_PATH: usize = 8;

/// A place that can be read and written.
#[derive(Clone, Debug)]
pub struct Place {
    /// The variable.
    pub root: Root,
    /// Its name, for messages.
    pub name: Arc<str>,
    /// The path to a part of it.
    pub path: Vec<Access>,
    /// The type of the part.
    pub ty: Type,
    /// Its place in the text.
    pub span: Span,
}

/// A variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Root {
    /// A local of the function.
    Local(usize),
    /// A field of the filter.
    Field(usize),
    /// A parameter of the stream.
    Param(usize),
    /// A variable of a `static` section.
    Static(usize),
}

/// A step from a value to a part of it.
#[derive(Clone, Debug)]
pub enum Access {
    /// An element of an array.
    Index(Expr),
    /// A member of a struct.
    Member(usize),
    /// The real part of a complex number.
    Real,
    /// The imaginary part of a complex number.
    Imaginary,
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// The expression.
    pub kind: ExprKind,
    /// Its type.
    pub ty: Type,
    /// Its place.
    pub span: Span,
}

/// The expressions.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A constant.
    Const(Value),
    /// The value at a place.
    Read(Place),
    /// A part of a value that is not a place.
    Part(Box<Expr>, Box<Access>),
    /// `++` or `--`: the place and the step. The flag is true if the result is the new value.
    Step(Place, i32, bool),
    /// A conversion to the type of the expression.
    Convert(Box<Expr>),
    /// `-`.
    Negate(Box<Expr>),
    /// `!`.
    Not(Box<Expr>),
    /// `~`.
    Complement(Box<Expr>),
    /// A binary operation on operands of the given type.
    Binary(Binary, Type, Box<Expr>, Box<Expr>),
    /// `&&`: the right side is evaluated only if the left side is true.
    And(Box<Expr>, Box<Expr>),
    /// `||`: the right side is evaluated only if the left side is false.
    Or(Box<Expr>, Box<Expr>),
    /// `? :`.
    Choose(Box<Expr>, Box<Expr>, Box<Expr>),
    /// A function of the filter or of a package.
    Call(FunctionId, Vec<Expr>),
    /// A mathematical function of doubles with its result rounded to float, or a function of a complex
    /// number.
    Math(Math, Vec<Expr>),
    /// The next number of the random generator, a double in [0, 1).
    Random,
    /// Pops the first item of the input tape.
    Pop,
    /// Peeks at an item of the input tape.
    Peek(Box<Expr>),
    /// Number of finished firings of `work`.
    Iter,
    /// Concatenation of strings.
    Concat(Box<Expr>, Box<Expr>),
    /// An array of given elements.
    List(Vec<Expr>),
    /// An array from a text file with one value per line: name and length.
    FileArray(Box<Expr>, Box<Expr>),
}

/// Binary operations on operands of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Binary {
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
    /// Returns whether the operation is a comparison.
    pub fn compares(self) -> bool {
        use Binary::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
        matches!(self, Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual)
    }
}

/// Mathematical functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Math {
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Atan2,
    Sinh,
    Cosh,
    Tanh,
    Exp,
    Expm1,
    Log,
    Log10,
    Log1p,
    Sqrt,
    Cbrt,
    Pow,
    Hypot,
    Floor,
    Ceil,
    Round,
    Rint,
    Abs,
    Arg,
    Min,
    Max,
    Signum,
    ToRadians,
    ToDegrees,
}

impl Math {
    /// Finds a function by its name, with its number of arguments.
    pub fn find(name: &str) -> Option<(Math, usize)> {
        Some(match name {
            "sin" => (Math::Sin, 1),
            "cos" => (Math::Cos, 1),
            "tan" => (Math::Tan, 1),
            "asin" => (Math::Asin, 1),
            "acos" => (Math::Acos, 1),
            "atan" => (Math::Atan, 1),
            "atan2" => (Math::Atan2, 2),
            "sinh" => (Math::Sinh, 1),
            "cosh" => (Math::Cosh, 1),
            "tanh" => (Math::Tanh, 1),
            "exp" => (Math::Exp, 1),
            "expm1" => (Math::Expm1, 1),
            "log" => (Math::Log, 1),
            "log10" => (Math::Log10, 1),
            "log1p" => (Math::Log1p, 1),
            "sqrt" => (Math::Sqrt, 1),
            "cbrt" => (Math::Cbrt, 1),
            "pow" => (Math::Pow, 2),
            "hypot" => (Math::Hypot, 2),
            "floor" => (Math::Floor, 1),
            "ceil" => (Math::Ceil, 1),
            "round" => (Math::Round, 1),
            "rint" => (Math::Rint, 1),
            "abs" => (Math::Abs, 1),
            "arg" => (Math::Arg, 1),
            "min" => (Math::Min, 2),
            "max" => (Math::Max, 2),
            "signum" => (Math::Signum, 1),
            "toRadians" => (Math::ToRadians, 1),
            "toDegrees" => (Math::ToDegrees, 1),
            _ => return None,
        })
    }
}

impl Type {
    /// Returns the type in source syntax.
    pub fn show(&self, structs: &PrimaryMap<StructId, Struct>) -> String {
        match self {
            Type::Void => "void".to_owned(),
            Type::Boolean => "boolean".to_owned(),
            Type::Bit => "bit".to_owned(),
            Type::Int => "int".to_owned(),
            Type::Float => "float".to_owned(),
            Type::Double => "double".to_owned(),
            Type::Complex => "complex".to_owned(),
            Type::Struct(id) => structs.get(*id).map_or("struct", |structure| &structure.name).to_owned(),
            Type::Array(element) => format!("{}[]", element.show(structs)),
            Type::Portal(_) => "portal".to_owned(),
            Type::Text => "string".to_owned(),
            Type::Unknown => "?".to_owned(),
        }
    }

    /// Returns whether arithmetic is defined for the type.
    pub fn is_numeric(&self) -> bool {
        matches!(self, Type::Bit | Type::Int | Type::Float | Type::Double | Type::Complex)
    }
}
