//! Compilation of expressions to VCODE.

use super::Output;
use super::worker::Worker;
use crate::core::Body;
use crate::eval::{Evaluation, Fault, Value};
use crate::machine::{Machine, to_values};
use crate::types::{Type, TypeId};
use crate::{flat, flatten, vcode};

impl Worker {
    /// Compiles a checked expression.
    pub(super) fn flattened(&mut self, body: &Body) -> Result<flatten::Compiled, Box<Fault>> {
        let state = &self.state;
        let sequential = self.accelerator.as_ref().filter(|known| known.is_sequential()).map(|_| state.options.widths);
        flatten::compile(&mut self.env, &state.globals, &|value| state.instance_of(value), sequential, body)
    }

    /// Compiles a checked expression to VCODE.
    pub(super) fn vcode(&mut self, body: &Body) -> Result<(vcode::Program, vcode::Layout), Box<Fault>> {
        let compiled = self.flattened(body)?;
        Ok((flat::emit(&compiled.program), compiled.layout))
    }

    /// Compiles a checked expression and runs it.
    pub(super) fn run_vcode(&mut self, body: &Body) -> Result<Value, Box<Fault>> {
        let flatten::Compiled { program, layout, notes } = self.flattened(body)?;
        let program = flat::emit(&program);
        if let Some(accelerator) = &mut self.accelerator {
            accelerator.note(notes);
        }
        let sink = &mut self.sink;
        let mut out = |bytes: &[u8]| sink(Output::Text(bytes.to_vec()));
        let mut world = Evaluation::new(&mut self.env, &mut self.state, &mut *self.host, &mut out);
        let mut machine = Machine::new(&program, &mut world);
        if let Some(accelerator) = &mut self.accelerator {
            machine = machine.on(accelerator, true);
        }
        let stack = machine.execute(vec![])?;
        let mut values = to_values(&layout, &mut stack.iter(), 1, &mut world)?;
        values.pop().map_or_else(|| flatten::internal("an expression has no value"), Ok)
    }

    /// Tells whether the value of an expression contains a function.
    pub(super) fn holds_function(&self, body: &Body) -> bool {
        body.result.is_some_and(|result| self.is_function(body.types[result]))
    }

    fn is_function(&self, ty: TypeId) -> bool {
        match &self.env.types[ty] {
            Type::Base(_) | Type::Variable(_) | Type::Definition(_) | Type::Closure(..) => false,
            Type::Seq(element) => self.is_function(*element),
            Type::Pair(first, rest) => self.is_function(*first) || self.is_function(*rest),
            Type::Function { .. } => true,
            Type::Data(datatype, parts) => {
                self.is_function(self.env.datatypes[*datatype].content) || parts.iter().any(|&part| self.is_function(part))
            }
        }
    }
}
