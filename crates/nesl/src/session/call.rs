//! Functions called with columns.

use super::function::CompiledFunction;
use super::output::Failure;
use super::worker::Worker;
use crate::core::DefinitionKind;
use crate::eval::{Evaluation, Fault, Run};
use crate::machine::{Constants, Machine, Regions};
use crate::run::{CallTemplate, Column};
use crate::syntax::Name;
use crate::{flat, flatten};
use broadloom_graph::Context;

impl Worker {
    /// Compiles a function of the program.
    pub(super) fn compile_function(&mut self, name: &str) -> Result<(), Failure> {
        let Some(definition) = self.env.lookup(&Name::new(name)) else {
            return Err(Failure(format!("the program has no function `{name}`")));
        };
        let known = &self.env.definitions[definition];
        if !matches!(known.kind, DefinitionKind::Function(_)) {
            return Err(Failure(format!("`{name}` is not a function of the program")));
        }
        if !known.scheme.variables.is_empty() {
            let scheme = known.scheme.clone();
            let ty = self.env.print_scheme(&scheme);
            return Err(Failure(format!("the type of `{name}` has variables: {ty}; declare it for the types of the arguments")));
        }
        let state = &self.state;
        let instance_of = |value: &crate::eval::Value| state.instance_of(value);
        let sequential = self.accelerator.as_ref().filter(|known| known.is_sequential()).map(|_| state.options.widths);
        let compiled = flatten::compile_function(&mut self.env, &state.globals, &instance_of, sequential, definition);
        let (compiled, argument) = compiled.map_err(|fault| self.failure(&fault))?;
        let (program, constants, regions) = (flat::emit(&compiled.program), Constants::new(), Regions::default());
        self.function = Some(CompiledFunction { program, argument, result: compiled.layout, constants, regions });
        Ok(())
    }

    /// Opens the device unless it is open.
    pub(super) fn context(&mut self) -> Result<Context, Failure> {
        match &mut self.accelerator {
            Some(accelerator) => accelerator.context().map_err(|fault| Failure(fault.message)),
            None => Err(Failure("the program has no device".to_owned())),
        }
    }

    fn failure(&self, fault: &Fault) -> Failure {
        Failure(self.sources.render_all(&fault.diagnostic().into()))
    }

    pub(super) fn call_function(&mut self, arguments: Vec<Column>) -> Result<Vec<Column>, Failure> {
        let Some(mut function) = self.function.take() else { return Err(Failure("no function was compiled".to_owned())) };
        let called = self.run_function(&mut function, arguments);
        self.function = Some(function);
        called.map_err(|fault| self.failure(&fault))
    }

    /// Traces a call of the function: for all sizes if requested and possible, else for those of the call.
    /// Returns `None` for a call that has no template.
    pub(super) fn trace_function(&mut self, arguments: &[Column], is_general: bool) -> Option<CallTemplate> {
        let general = if is_general { self.trace_sizes(arguments, true) } else { None };
        general.or_else(|| self.trace_sizes(arguments, false))
    }

    fn trace_sizes(&mut self, arguments: &[Column], is_general: bool) -> Option<CallTemplate> {
        let function = self.function.as_ref()?;
        let (env, state, host) = (&mut self.env, &mut self.state, &mut *self.host);
        self.accelerator.as_mut()?.traced(arguments, is_general, |accelerator, columns| {
            let mut out = |_: &[u8]| {};
            let mut world = Evaluation::new(env, state, host, &mut out);
            let mut machine = Machine::new(&function.program, &mut world).with_constants(function.constants.clone());
            machine = machine.on(accelerator, true);
            let stack = machine.entries_of(&function.argument, columns)?;
            let results = machine.keeping_results().execute(stack)?;
            machine.conclude();
            machine.columns_of(&function.result, results)
        })
    }

    fn run_function(&mut self, function: &mut CompiledFunction, arguments: Vec<Column>) -> Run<Vec<Column>> {
        let mut out = |_: &[u8]| {};
        let mut world = Evaluation::new(&mut self.env, &mut self.state, &mut *self.host, &mut out);
        let mut machine = Machine::new(&function.program, &mut world).with_constants(std::mem::take(&mut function.constants));
        machine = machine.with_regions(std::mem::take(&mut function.regions));
        if let Some(accelerator) = &mut self.accelerator {
            machine = machine.on(accelerator, true);
        }
        let stack = machine.entries_of(&function.argument, arguments)?;
        let results = machine.keeping_results().execute(stack);
        (function.constants, function.regions) = (machine.take_constants(), machine.take_regions());
        machine.columns_of(&function.result, results?)
    }
}
