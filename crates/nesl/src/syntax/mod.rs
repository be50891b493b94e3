//! Text to tree and back: lexer, parser, syntax tree, printer.

mod ast;
mod foreign;
mod lex;
mod name;
mod parse;
mod print;
mod same;
mod token;

pub use ast::{
    Ast, BinaryOp, CommandWord, DatatypeForm, Each, Expr, ExprId, Form, FormKind, FunctionForm, Generator, Pattern, PatternId,
    Program, TypeExpr, TypeExprId, TypeSpec, UnaryOp,
};
pub(crate) use ast::{COMMA, LAMBDA, POSTFIX, PREFIX};
pub(crate) use foreign::{edit_distance, foreign_word};
pub use lex::lex;
pub use name::Name;
pub use parse::{COMMANDS, Lines, MAX_NESTING, is_complete, parse};
pub use print::{print_expr, print_parameter, print_pattern, print_program};
pub use same::same_program;
pub use token::{Mark, Token, TokenKind, Word};
