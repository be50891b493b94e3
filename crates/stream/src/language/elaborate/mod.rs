//! Elaboration: runs the bodies of composite streams and builds the [`Graph`].
//!
//! In: a checked program. Out: a graph whose tapes are all connected and carry one type each. All its rates
//! are evaluated and not negative. All its fields have the values that `init` gave them. Rates that cannot be
//! balanced are found later, by [`crate::language::schedule`].

mod builder;
mod connect;
mod instance;
mod site;

use crate::language::codes;
use crate::language::core::{Program, StreamId, Value};
use crate::language::eval::{Budget, Code, Host, Stop};
use crate::language::graph::{Graph, Tree};
use crate::language::limits::Limits;
use broadloom_diag::{Diagnostic, Span};
use builder::{Builder, FilterCache, OpenStream};
use cranelift_entity::PrimaryMap;
use site::{CompositeParts, CompositeSite};
use std::collections::HashMap;
use std::sync::Arc;

/// Initial state of the random generator.
const SEED: u64 = 1_182_736_490_827;

/// Builds the graph of a program.
pub fn elaborate(program: &Program, host: &mut dyn Host, limits: &Limits) -> Result<Graph, Box<Diagnostic>> {
    let mut builder = Builder {
        program,
        host,
        budget: Budget::new(Limits { steps: limits.steps.min(limits.construction), ..limits.clone() }),
        nodes: PrimaryMap::new(),
        tapes: PrimaryMap::new(),
        names: HashMap::new(),
        portals: vec![],
        statics: Arc::new(vec![]),
        printed: String::new(),
        random: SEED,
        depth: 0,
        known: FilterCache::default(),
    };
    let built = builder.statics().and_then(|()| {
        let top = program.top;
        let args = builder.top_arguments()?;
        builder.stream(top, args, &[], program.streams[top].span)
    });
    match built {
        Ok(top) => Ok(builder.finish(top.tree)),
        Err(Stop::Error(error)) => Err(error),
        Err(Stop::EndOfInput | Stop::Idle | Stop::OutputClosed) => {
            Err(Box::new(Diagnostic::error(codes::RUN_TIME, "the construction of the graph was interrupted")))
        }
    }
}

impl<'a> Builder<'a> {
    /// Initialises the static variables.
    fn statics(&mut self) -> Result<(), Stop> {
        let program = self.program;
        for field in &program.statics {
            let statics = self.statics.clone();
            let mut site = CompositeSite { builder: self, parts: CompositeParts::default() };
            let mut code = Code::new(program, &[], vec![], statics, &mut site);
            let value = instance::field_value(&mut code, field)?;
            drop(code);
            Arc::make_mut(&mut self.statics).push(value);
        }
        for function in &program.static_init {
            let statics = self.statics.clone();
            let mut site = CompositeSite { builder: self, parts: CompositeParts::default() };
            let mut code = Code::new(program, &[], vec![], statics, &mut site);
            code.enter(*function, vec![])?;
            let statics = code.statics;
            self.statics = statics;
        }
        Ok(())
    }

    /// Evaluates the parameters of the top-level stream.
    fn top_arguments(&mut self) -> Result<Arc<[Value]>, Stop> {
        let (program, statics) = (self.program, self.statics.clone());
        let mut site = CompositeSite { builder: self, parts: CompositeParts::default() };
        let mut code = Code::new(program, &[], vec![], statics, &mut site);
        program.top_args.iter().map(|arg| code.eval(arg)).collect()
    }

    /// Builds a stream of the program with values for its parameters.
    fn stream(&mut self, id: StreamId, params: Arc<[Value]>, portals: &[u32], span: Span) -> Result<OpenStream, Stop> {
        let stream = &self.program.streams[id];
        self.depth += 1;
        if self.depth > self.budget.limits.depth || !self.budget.has_stack() {
            let message = format!("streams are nested deeper than the limit of {}", self.budget.limits.depth);
            let error = Diagnostic::error(codes::DEPTH, message).at(span, format!("`{}` is created here", stream.name));
            let error = error.help("a stream that adds itself needs a condition that ends the recursion");
            return Err(Stop::Error(Box::new(error)));
        }
        let built = match &stream.kind {
            crate::language::core::StreamKind::Filter(filter) => self.filter(id, filter, params, span),
            crate::language::core::StreamKind::Composite(composite, body) => self.composite(id, *composite, *body, &params),
        }?;
        self.depth -= 1;
        for portal in portals {
            let Tree::Node(node) = built.tree else {
                let error = Stop::error(codes::BAD_MESSAGE, "only filters can be registered with a portal", span);
                return Err(
                    error.help("move `to …` to the `add` of the filter, and hand the portal to the stream as a parameter")
                );
            };
            self.portals[*portal as usize].push(node);
        }
        Ok(built)
    }
}
