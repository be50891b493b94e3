//! Checks of names: valid identifiers, without duplicates (manual: "Identifiers").

use super::{Checker, codes};
use crate::module::{Directive, Function, Item};
use broadloom_diag::Span;
use std::collections::HashMap;

/// Tests if a word is a valid identifier: a letter and more, or one of `_ $ %` and at least one more.
fn is_name(name: &str) -> bool {
    let mut letters = name.bytes();
    let rest = match letters.next() {
        Some(first) if first.is_ascii_alphabetic() => letters,
        Some(b'_' | b'$' | b'%') if name.len() > 1 => letters,
        _ => return false,
    };
    rest.into_iter().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, b'_' | b'$'))
}

/// Tests if a string can be printed between quotes.
fn is_text(text: &str) -> bool {
    !text.contains(['"', '\n'])
}

impl Checker<'_> {
    pub(super) fn names(&mut self) {
        let module = self.module;
        let variables = module.variables.values().map(|variable| (variable.name.as_str(), variable.span));
        let functions = module.functions.values().map(|function| (function.name.as_str(), function.span));
        self.distinct(variables.chain(functions), "the module");
        for item in &module.items {
            let text = match item {
                Item::File(file) => &file.name,
                Item::Pragma(text) => text,
                Item::Variable(_) | Item::Declaration(_) | Item::Definition(_) | Item::Alias(_) | Item::Section(_) => continue,
            };
            self.text(text, Span::default());
        }
        for function in module.functions.values() {
            self.function_names(function);
        }
    }

    fn text(&mut self, text: &str, span: Span) {
        if !is_text(text) {
            self.report(codes::BAD_NAME, format!("the string {text:?} cannot be written in PTX"), span, "");
        }
    }

    fn function_names(&mut self, function: &Function) {
        let span = function.span;
        for directive in &function.directives {
            if let Directive::Pragma(text) = directive {
                self.text(text, span);
            }
        }
        for text in function.blocks.values().flat_map(|block| &block.pragmas) {
            self.text(text, span);
        }
        // Parameters of a declaration may all be called `_` or share names.
        if !function.has_body {
            return;
        }
        let regs = function.regs.values().map(|reg| (reg.name.as_str(), span));
        let variables = function.variables.values().map(|variable| (variable.name.as_str(), variable.span));
        let labels = function.blocks.values().filter_map(|block| block.label.as_deref()).map(|label| (label, span));
        let protos = function.protos.values().map(|proto| (proto.name.as_str(), proto.span));
        let targets = function.targets.values().map(|list| (list.name.as_str(), span));
        let place = format!("`{}`", function.name);
        self.distinct(regs.chain(variables).chain(labels).chain(protos).chain(targets), &place);
    }

    fn distinct<'n>(&mut self, names: impl Iterator<Item = (&'n str, Span)>, place: &str) {
        let mut seen: HashMap<&str, Span> = HashMap::new();
        for (name, span) in names {
            // `_` is not a name.
            if name == "_" {
                continue;
            }
            if !is_name(name) {
                self.report(codes::BAD_NAME, format!("`{name}` is not a name in PTX"), span, "not a name");
            } else if seen.insert(name, span).is_some() {
                let message = format!("two things of {place} are called `{name}`");
                self.report(codes::DUPLICATE_NAME, message, span, "the second one");
            }
        }
    }
}
