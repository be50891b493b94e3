//! Types as text: `((a, b), a) -> c :: (a in number)`.
//!
//! Variables get their names in the order of the original. It lists a function as identity, result, argument,
//! and puts variables of earlier parts before those of later parts, unless a later part has them already.

use crate::types::{DatatypeId, Scheme, Type, TypeId, TypeStore};
use std::fmt::Write as _;

/// Prints types of one store.
#[derive(Clone, Copy)]
pub struct TypePrinter<'a> {
    /// The store that the printed type is in.
    pub types: &'a TypeStore,
    /// Function that returns the name of a datatype.
    pub datatype: &'a dyn Fn(DatatypeId) -> String,
}

impl TypePrinter<'_> {
    /// Prints a type with the classes of its variables.
    pub fn scheme(&self, scheme: &Scheme) -> String {
        let mut order = vec![];
        self.variables(scheme.ty, &mut order);
        let mut text = String::new();
        self.ty(scheme.ty, 0, &order, &mut text);
        for (index, &variable) in order.iter().enumerate() {
            let before = if index == 0 { " :: (" } else { "; " };
            let class = scheme.variables.get(variable as usize).copied().unwrap_or(crate::types::Class::ANY);
            let _ = write!(text, "{before}{} in {class}", variable_name(index, order.len()));
        }
        text.push_str(if order.is_empty() { "" } else { ")" });
        text
    }

    /// Lists the variables of a type in the order of their names.
    fn variables(&self, ty: TypeId, out: &mut Vec<u32>) {
        // The parts are visited from the last to the first. New variables of a part are put before the known
        // ones.
        let before = |part: TypeId, out: &mut Vec<u32>| {
            let mut own = vec![];
            self.variables(part, &mut own);
            own.retain(|variable| !out.contains(variable));
            own.append(out);
            *out = own;
        };
        match &self.types[ty] {
            Type::Base(_) | Type::Definition(_) => {}
            Type::Variable(variable) => out.push(*variable),
            Type::Seq(element) => before(*element, out),
            Type::Pair(first, rest) => {
                before(*rest, out);
                before(*first, out);
            }
            Type::Function { identity, argument, result } => {
                before(*argument, out);
                before(*result, out);
                before(*identity, out);
            }
            Type::Data(_, parts) | Type::Closure(_, parts) => parts.iter().rev().for_each(|&part| before(part, out)),
        }
    }

    /// Prints a type: level 1 puts pairs into parentheses, level 3 also functions.
    fn ty(&self, ty: TypeId, level: u8, order: &[u32], out: &mut String) {
        match &self.types[ty] {
            Type::Base(base) => out.push_str(base.text()),
            Type::Variable(variable) => {
                let index = order.iter().position(|known| known == variable).unwrap_or(0);
                out.push_str(&variable_name(index, order.len()));
            }
            Type::Seq(element) => {
                out.push('[');
                self.ty(*element, 1, order, out);
                out.push(']');
            }
            Type::Pair(first, rest) => {
                out.push_str(if level > 0 { "(" } else { "" });
                self.ty(*first, 1, order, out);
                out.push_str(", ");
                self.ty(*rest, 0, order, out);
                out.push_str(if level > 0 { ")" } else { "" });
            }
            Type::Function { argument, result, .. } => {
                out.push_str(if level > 2 { "(" } else { "" });
                self.ty(*argument, 3, order, out);
                out.push_str(" -> ");
                self.ty(*result, 2, order, out);
                out.push_str(if level > 2 { ")" } else { "" });
            }
            Type::Data(datatype, parts) => {
                out.push_str(&(self.datatype)(*datatype));
                for (index, &part) in parts.iter().enumerate() {
                    out.push_str(if index == 0 { "(" } else { ", " });
                    self.ty(part, 1, order, out);
                }
                out.push_str(if parts.is_empty() { "" } else { ")" });
            }
            Type::Definition(_) | Type::Closure(..) => out.push_str("function"),
        }
    }
}

/// Returns the name of a variable: `a` to `e` if that suffices, else `a0`, `a1`, ….
fn variable_name(index: usize, count: usize) -> String {
    if count <= 5 { char::from(b'a' + index as u8).to_string() } else { format!("a{index}") }
}
