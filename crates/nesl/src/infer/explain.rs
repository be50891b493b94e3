//! Messages of the type checker: the place, both types, the reason, and advice.

use super::{Infer, Ty};
use crate::codes;
use crate::core::DefId;
use crate::infer::unify::{Clash, Node};
use crate::types::{Base, Class};
use broadloom_diag::{Diagnostic, Span};

impl Infer<'_> {
    /// Adds advice to an error, derived from the parts of two types that differ.
    pub(super) fn advise(&mut self, mut error: Diagnostic, clash: Clash) -> Diagnostic {
        match clash {
            Clash::Types(a, b) => {
                if let Some(help) = self.conversion(a, b) {
                    error = error.help(help);
                }
                error
            }
            Clash::Class(class, ty) => {
                let shown = self.show(ty);
                error = error.note(format!("the class `{class}` holds {}, not `{shown}`", class.members()));
                match self.class_advice(class, ty) {
                    Some(help) => error.help(help),
                    None => error,
                }
            }
            Clash::Classes(a, b) => {
                error.note(format!("no type is in both classes: `{a}` holds {}, `{b}` holds {}", a.members(), b.members()))
            }
            Clash::Infinite => {
                error.code = codes::INFINITE_TYPE;
                error.note("the type would contain itself").help("does a call inside of the function pass too many or too few arguments, or a sequence of what it should pass?")
            }
            Clash::Functions => {
                error.code = codes::TWO_FUNCTIONS;
                error
                    .note("which function is called must be known when the program is compiled, so these are two types")
                    .help("choose inside of one function: `x => if c then g(x) else h(x)`")
            }
            Clash::TooLarge => {
                error.code = codes::TYPE_TOO_LARGE;
                error.note(format!("types nest at most {} levels", crate::types::MAX_TYPE_DEPTH))
            }
        }
    }

    fn conversion(&self, a: Ty, b: Ty) -> Option<&'static str> {
        let nodes = (self.tys.node(a).clone(), self.tys.node(b).clone());
        let both =
            |x: Base, y: Base| matches!(&nodes, (Node::Base(p), Node::Base(q)) if (*p, *q) == (x, y) || (*p, *q) == (y, x));
        if both(Base::Int, Base::Float) {
            return Some("`float(e)` makes a float of an int; a float literal has a point, as in `1.0`; `round(e)` makes an int");
        }
        if both(Base::Int, Base::Bool) {
            return Some("`btoi(e)` makes an int of a bool; `e /= 0` makes a bool of an int");
        }
        if both(Base::Int, Base::Char) {
            return Some("`char_code(e)` makes an int of a character, `code_char(e)` a character of an int");
        }
        match &nodes {
            (Node::Seq(element), Node::Base(Base::Char)) | (Node::Base(Base::Char), Node::Seq(element))
                if matches!(self.tys.node(*element), Node::Base(Base::Char)) =>
            {
                Some("`` `a `` is a character, `\"a\"` is a string of one character")
            }
            (Node::Seq(_), Node::Base(_) | Node::Pair(..)) | (Node::Base(_) | Node::Pair(..), Node::Seq(_)) => {
                Some("an operation on elements is applied to a sequence by `{g(x) : x in v}`; `[e]` is a sequence of one element")
            }
            (Node::Function(..), _) | (_, Node::Function(..)) => Some("is a call without its argument?"),
            (Node::Pair(..), Node::Base(_)) | (Node::Base(_), Node::Pair(..)) => {
                Some("arguments and parts of tuples are separated by `,`; is one missing, or one too many?")
            }
            _ => None,
        }
    }

    fn class_advice(&self, class: Class, ty: Ty) -> Option<&'static str> {
        match (self.tys.node(ty), class) {
            (Node::Base(Base::Bool), Class::NUMBER) => Some("`btoi(e)` makes an int of a bool; `and`, `or`, `not` work on bools"),
            (Node::Base(Base::Char), Class::NUMBER) => {
                Some("`char_code(e)` makes an int of a character: `permute(v, char_rank(v))` sorts characters")
            }
            (Node::Base(Base::Float), Class::LOGICAL) => Some("`and`, `or`, `not` take bools and ints"),
            (_, Class::ORDINAL) => Some("`eql(a, b)` compares values of any type"),
            (Node::Seq(_) | Node::Pair(..), Class::NUMBER) => Some(
                "an operation on numbers is applied to elements by `{g(x) : x in v}`; other values are sorted by numbers: \
                 `permute(v, rank({number(x) : x in v}))`",
            ),
            (Node::Seq(_), _) => Some("apply it to the elements: `{g(x) : x in v}`"),
            _ => None,
        }
    }

    /// Reports an expression whose type differs from the required one.
    pub(super) fn mismatch(&mut self, span: Span, message: &str, found: Ty, wanted: Ty, clash: Clash) -> Ty {
        let (found, wanted) = (self.show(found), self.show(wanted));
        let error = Diagnostic::error(codes::MISMATCH, message).at(span, format!("this is `{found}`, expected `{wanted}`"));
        let error = self.advise(error, clash);
        self.report(error)
    }

    /// Reports two parts that should have one type.
    pub(super) fn differ(&mut self, message: &str, first: (Span, Ty), second: (Span, Ty), clash: Clash) -> Ty {
        let (one, other) = (self.show(first.1), self.show(second.1));
        let error = Diagnostic::error(codes::MISMATCH, message)
            .at(second.0, format!("this is `{other}`"))
            .label(first.0, format!("this is `{one}`"));
        let error = self.advise(error, clash);
        self.report(error)
    }

    pub(super) fn explain_serial(&mut self, definition: DefId, span: Span) {
        let name = self.env.definitions[definition].name.clone();
        self.diagnostics.push(
            Diagnostic::error(codes::SERIAL_ONLY, format!("`{name}` cannot be called inside of an apply-to-each"))
                .at(span, "called for many elements at once")
                .note("it reads or changes the world outside of the program, one call after the other")
                .help("`{* … }` computes elements one after the other"),
        );
    }
}
