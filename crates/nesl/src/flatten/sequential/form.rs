//! Sequential forms of functions: one module for each kind of worker.

use super::teams::FUNCTIONS;
use super::{CodeResult, MAX_TEXT, Module, Workers};
use crate::flatten::callee::Node;
use crate::flatten::{Callee, Compiler};
use crate::infer::Widths;
use crate::vcode::{Sequential, Shape};
use std::collections::HashMap;
use std::sync::Arc;

impl Compiler<'_> {
    /// Returns the sequential form of a recursive function, if it has one.
    pub(in crate::flatten) fn sequential(&mut self, callee: &Callee) -> Option<Arc<Sequential>> {
        let node = match callee {
            Callee::Definition(definition, _) => Node::Definition(*definition),
            Callee::Lambda(lambda, _) => Node::Lambda(*lambda),
            Callee::Serial(_) | Callee::Elements(_) => return None,
        };
        let widths = self.widths?;
        if !self.recurs(node) {
            return None;
        }
        if let Some(known) = self.forms.get(callee) {
            return known.clone();
        }
        let (form, name) = (self.sequential_form(callee, widths), self.name(callee).0);
        self.notes.push(match &form {
            Ok(_) => format!("`{name}` has a sequential form"),
            Err(reason) => format!("`{name}` has no sequential form: {reason}"),
        });
        let form = form.ok().map(Arc::new);
        self.forms.insert(callee.clone(), form.clone());
        form
    }

    fn sequential_form(&mut self, callee: &Callee, widths: Widths) -> CodeResult<Sequential> {
        let source = self.name(callee).0;
        let (argument, result) = self.shapes(callee)?;
        let mut text_for = |workers| self.sequential_text(callee, widths, (workers, false), (&argument, &result));
        let (name, text, _) = text_for(Workers::Threads)?;
        let (_, text_for_warps, has_tasks) = text_for(Workers::Warps)?;
        let text_for_cores = match has_tasks {
            true => Some(text_for(Workers::Cores)?).filter(|(_, _, has_tasks)| *has_tasks).map(|(_, text, _)| text),
            false => None,
        };
        let text_for_teams = match is_flat(&argument) && is_flat(&result) {
            true => text_for(Workers::Teams).ok().map(|(_, text, _)| text),
            false => None,
        };
        Ok(Sequential {
            name,
            source,
            text,
            text_for_cores,
            text_for_warps,
            text_for_teams,
            widths,
            argument,
            result,
            is_loop: false,
        })
    }

    /// Writes a module. Returns the name of its kernel, its text, and whether it has tasks.
    pub(super) fn sequential_text(
        &mut self,
        callee: &Callee,
        widths: Widths,
        (workers, pauses): (Workers, bool),
        (argument, result): (&Shape, &Shape),
    ) -> CodeResult<(String, String, bool)> {
        let mut module = Module {
            c: self,
            widths,
            functions: HashMap::new(),
            queue: vec![],
            prototypes: String::new(),
            arrays: 0,
            elementary: vec![],
            done: String::new(),
            workers,
            tasks: vec![],
            has_parts: false,
            has_calls: false,
            has_order: false,
            pauses,
        };
        // The first function has the name of the kernel, in all forms.
        let in_team = workers == Workers::Teams;
        let signature = module.function(callee, false)?;
        let of_team = if in_team { Some(module.function(callee, true)?) } else { None };
        while let Some((callee, signature)) = module.queue.pop() {
            module.write(&callee, &signature)?;
            if module.done.len() > MAX_TEXT {
                return Err("its code is too large".to_owned());
            }
        }
        let name = format!("{}_{}", if pauses { "loop" } else { "sequential" }, signature.name);
        let (kernel, besides) = match of_team {
            Some(_) if module.has_order => return Err("a loop runs in order".to_owned()),
            Some(_) if module.has_parts && module.has_calls => return Err("a team calls and splits".to_owned()),
            Some(of_team) => (module.team_entry(&name, (&of_team, &signature), argument, result), FUNCTIONS),
            None => (module.entry(&name, &signature, argument, result), ""),
        };
        let (prototypes, done, has_tasks) = (module.prototypes, module.done, !module.tasks.is_empty());
        let text = format!(".version 7.0\n.target sm_70\n.address_size 64\n\n{besides}\n{prototypes}\n{done}{kernel}");
        Ok((name, text, has_tasks))
    }
}

/// Tells whether values have no nested sequences.
pub(super) fn is_flat(shape: &Shape) -> bool {
    match shape {
        Shape::Int | Shape::Float | Shape::Bool => true,
        Shape::Tuple(parts) => parts.iter().all(is_flat),
        Shape::Seq(element) => element.is_scalar(),
    }
}
