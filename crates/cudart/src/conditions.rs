//! Conditional nodes of graphs: a value in the device's memory, which kernels set, chooses what is done.
//!
//! A handle is the address of its value, so that `cudaGraphSetConditional` of a kernel is a store ([`define_setter`]). When a launch comes to a
//! conditional node it waits for what came before, looks at the value and goes on, so **the launch of a graph with conditions returns when its last
//! condition is decided**.

use crate::graphs::Graph;
use crate::handles::Handle;
use crate::state::Runtime;
use crate::status::{Outcome, Status};
use crate::streams::Stream;
use crate::work::{FillBox, Side, Work};
use std::sync::Arc;

/// How a value chooses, by the headers' numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The first when it is not 0, and else the second, where there is one.
    If = 0,
    /// The first, as long as it is not 0.
    While = 1,
    /// The one of its number.
    Switch = 2,
}

/// A conditional node.
#[derive(Clone, Debug)]
pub(crate) struct Conditional {
    /// Where the value is.
    pub(crate) address: u64,
    /// How it chooses.
    pub(crate) choice: Choice,
    /// What is chosen from.
    pub(crate) bodies: Vec<Arc<Graph>>,
    /// What the program calls them.
    pub(crate) handles: Arc<[Handle]>,
}

/// A conditional node of a graph that is ready.
#[derive(Clone, Debug)]
pub(crate) struct Decision {
    address: u64,
    choice: Choice,
    bodies: Vec<Vec<Work>>,
}

/// A value that conditional nodes look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    /// Where it is.
    pub(crate) address: u64,
    /// What it is at the start of every launch, if anything.
    pub(crate) default: Option<u32>,
}

impl Condition {
    /// Sets the value that it starts with.
    pub(crate) fn assign(&self) -> Option<Work> {
        let to = Side::linear(self.address);
        self.default.map(|value| Work::Fill(FillBox { to, value, size: 4, width: 1, height: 1, depth: 1 }))
    }
}

impl Conditional {
    /// A node with graphs that are still empty.
    pub(crate) fn new(runtime: &Runtime, address: u64, choice: u32, count: u32) -> Outcome<Conditional> {
        let (choice, fits) = match choice {
            0 => (Choice::If, (1..=2).contains(&count)),
            1 => (Choice::While, count == 1),
            2 => (Choice::Switch, count >= 1),
            _ => return Err(Status::INVALID_VALUE),
        };
        if !fits {
            return Err(Status::INVALID_VALUE);
        }
        let bodies: Vec<Arc<Graph>> = (0..count).map(|_| Arc::new(Graph::default())).collect();
        let handle = |body: &Arc<Graph>| {
            let handle = runtime.graphs.reserve();
            runtime.graphs.put(handle, body.clone());
            handle
        };
        let handles = bodies.iter().map(handle).collect();
        Ok(Conditional { address, choice, bodies, handles })
    }

    /// The same with the work that its graphs have now.
    pub(crate) fn frozen(&self) -> Outcome<Decision> {
        let bodies = self.bodies.iter().map(|body| body.work()).collect::<Outcome<_>>()?;
        Ok(Decision { address: self.address, choice: self.choice, bodies })
    }
}

impl Decision {
    /// Decides, and does what was chosen.
    pub(crate) fn perform(&self, runtime: &Runtime, stream: &Stream) -> Outcome {
        let backend = runtime.device()?.backend();
        loop {
            runtime.judge(backend.synchronise_stream(stream.id()))?;
            let mut bytes = [0; 4];
            runtime.judge(backend.read(stream.id(), self.address, &mut bytes))?;
            let value = u32::from_le_bytes(bytes) as usize;
            let chosen = match self.choice {
                Choice::If => self.bodies.get(usize::from(value == 0)),
                Choice::While => self.bodies.first().filter(|_| value != 0),
                Choice::Switch => self.bodies.get(value),
            };
            let Some(body) = chosen else { return Ok(()) };
            body.iter().try_for_each(|work| work.perform(runtime, stream, true))?;
            if self.choice != Choice::While {
                return Ok(());
            }
        }
    }
}

/// Gives the function by which kernels set conditions a body, where a module declares it. Threads may set one at the same time.
pub(crate) fn define_setter(text: String) -> String {
    const NAME: &str = "cudaGraphSetConditional";
    const BODY: &str = ".visible .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value)
{
\t.reg .b64 %rd<2>;
\t.reg .b32 %r<3>;
\tld.param.u64 %rd1, [handle];
\tld.param.u32 %r1, [value];
\tatom.global.exch.b32 %r2, [%rd1], %r1;
\tret;
}
";
    let declared = text.match_indices(".extern").find_map(|(at, word)| {
        let rest = text[at + word.len()..].trim_start().strip_prefix(".func")?.trim_start();
        let end = at + text[at..].find(';')? + 1;
        rest.strip_prefix(NAME)?.trim_start().starts_with('(').then_some(at..end)
    });
    match declared {
        Some(range) => format!("{}{BODY}{}", &text[..range.start], &text[range.end..]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setter_is_defined_where_it_is_declared() {
        let declared = ".version 9.0\n.target sm_75\n.address_size 64\n.extern .func cudaGraphSetConditional\n(\n\t.param .b64 cudaGraphSetConditional_param_0,\n\t\
                        .param .b32 cudaGraphSetConditional_param_1\n)\n;\n.visible .entry k() { ret; }\n";
        let defined = define_setter(declared.to_owned());
        assert!(
            defined.contains("atom.global.exch") && !defined.contains(".extern") && defined.ends_with("k() { ret; }\n"),
            "{defined}"
        );
        let other = ".extern .func cudaGraphSetConditionalOther(.param .b64 a);".to_owned();
        assert_eq!(define_setter(other.clone()), other);
    }
}
