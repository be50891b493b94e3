//! Explanations: what was done to each filter on which device, and why.

use super::{Compiled, Part, Ready};
use crate::classify::Placement;
use crate::plural;
use crate::restructure::cut::{Cut, Place, Shape, cost};
use crate::restructure::{Actor, Role};
use cranelift_entity::EntityRef;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;

impl Compiled<'_> {
    /// Describes stages, kernels and filters in words, one line each.
    pub fn explain(&self) -> String {
        let summary = self.summary();
        let mut text = format!(
            "{}: {} on the device in {}, {} on the host\n",
            self.device.machine().id,
            plural(summary.filters as u64, "filter"),
            plural(summary.kernels as u64, "kernel"),
            plural(summary.on_host as u64, "node")
        );
        if self.stages.is_empty() {
            let all = vec![true; self.classified.len()];
            self.explain_host(&all, &mut text);
            return text;
        }
        let _ = writeln!(text, "a batch has at most {}", plural(self.largest_batch(), "steady state"));
        for (number, stage) in self.stages.iter().enumerate() {
            match stage {
                Part::Host(chosen) => {
                    let _ = writeln!(text, "stage {number}, host");
                    self.explain_host(chosen, &mut text);
                }
                Part::Device(sections) => {
                    for ready in sections {
                        let _ = writeln!(
                            text,
                            "stage {number}, device: {} in a steady state, after {}",
                            plural(ready.section.units, "unit"),
                            plural(ready.warm_up, "steady state") + " on the host"
                        );
                        ready.cuts.iter().enumerate().for_each(|(kernel, cut)| self.explain_cut(ready, kernel, cut, &mut text));
                    }
                }
            }
        }
        text
    }

    /// Tells what the runs so far did: steady states, the time of each stage, firings of each filter.
    pub fn report(&self) -> String {
        let statistics = self.statistics();
        let mut text = format!(
            "{} on the device in {}",
            plural(statistics.states, "steady state"),
            plural(statistics.batches, "batch").replace("batchs", "batches")
        );
        if statistics.repeated > 0 {
            text += "; the evaluator repeated the run";
        }
        text.push('\n');
        for (number, stage) in self.stages.iter().enumerate() {
            let time = self.counters.stages[number].load(Ordering::Relaxed);
            let place = if matches!(stage, Part::Host(_)) { "host" } else { "device" };
            let _ = writeln!(text, "stage {number}, {place}: {:.3} ms", time as f64 / 1e6);
            for (id, node) in self.program.graph.nodes.iter() {
                let inside = match stage {
                    Part::Host(chosen) => chosen[id.index()],
                    Part::Device(sections) => sections.iter().any(|ready| ready.section.nodes.contains(&id)),
                };
                let repetition = self.program.schedule.as_ref().map_or(0, |schedule| schedule.repetition(id));
                if inside {
                    let _ = writeln!(text, "  {}: {}", node.name, plural(repetition * statistics.states, "firing"));
                }
            }
        }
        text
    }

    fn explain_host(&self, chosen: &[bool], text: &mut String) {
        for (id, node) in self.program.graph.nodes.iter().filter(|(id, _)| chosen[id.index()]) {
            let found = &self.classified[id.index()];
            if let Placement::Host(reason) = &found.placement {
                let _ = writeln!(text, "  {}: {}; {reason}", node.name, found.class);
            }
        }
    }

    fn explain_cut(&self, ready: &Ready, number: usize, cut: &Cut, text: &mut String) {
        let shape = match cut.shape {
            Shape::Thread => "a unit for each thread, items between filters in registers and local arrays".to_owned(),
            Shape::Block(units) => format!(
                "{} for each block of {}, items between filters in {} bytes of shared memory",
                plural(units as u64, "unit"),
                plural(cut.threads, "thread"),
                cut.shared_bytes
            ),
        };
        let _ = writeln!(text, "  kernel {number}: {shape}");
        for index in &cut.actors {
            let actor = &ready.section.actors[*index];
            let class = match actor.nodes.first() {
                Some(node) => self.classified[node.index()].class.to_string(),
                None => "copy".to_owned(),
            };
            let mut line = format!("    {}: {class}, {} in a unit", actor.name, plural(actor.firings as u64, "firing"));
            if actor.nodes.len() > 1 {
                let _ = write!(line, ", {} branches as one", actor.nodes.len());
            }
            let _ = write!(line, ", {} operations each", cost(actor));
            if let (Some(range), Shape::Block(units)) = (cut.block.firings[*index], cut.shape) {
                let again = range.len() - actor.firings * units;
                if again > 0 {
                    let _ = write!(line, ", {} computed again for each block", plural(again as u64, "firing"));
                }
            }
            let _ = writeln!(text, "{line}{}", tapes(cut, actor));
        }
    }

    /// Draws the restructured program in the DOT language: kernels as clusters, tapes that hold items as edges.
    pub fn to_dot(&self) -> String {
        let graph = &self.program.graph;
        let mut text = "digraph compiled {\n  node [shape=box];\n".to_owned();
        let mut writers: std::collections::HashMap<usize, Vec<String>> = Default::default();
        for (stage, part) in self.stages.iter().enumerate() {
            let Part::Device(sections) = part else { continue };
            for (place, ready) in sections.iter().enumerate() {
                for (number, cut) in ready.cuts.iter().enumerate() {
                    let _ = writeln!(text, "  subgraph cluster_{stage}_{place}_{number} {{ label=\"kernel {number}\";");
                    for index in &cut.actors {
                        let name = ready.section.actors[*index].name.replace('"', "'");
                        let _ = writeln!(text, "    actor_{stage}_{place}_{index} [label=\"{name}\"];");
                    }
                    text += "  }\n";
                }
                for (index, actor) in ready.section.actors.iter().enumerate() {
                    let name = format!("actor_{stage}_{place}_{index}");
                    if let Some(input) = &actor.input {
                        let buffer = &ready.section.buffers[input.buffer];
                        for (other, from) in ready.section.actors.iter().enumerate() {
                            if from.output.as_ref().is_some_and(|port| port.buffer == input.buffer) {
                                let _ = writeln!(text, "  actor_{stage}_{place}_{other} -> {name};");
                            }
                        }
                        if buffer.role == Role::Input {
                            let _ = writeln!(text, "  {} -> {name};", graph.tapes[buffer.tape].from.0);
                        }
                    }
                    if let Some(output) = &actor.output {
                        let buffer = &ready.section.buffers[output.buffer];
                        if buffer.role == Role::Output {
                            writers.entry(buffer.tape.index()).or_default().push(name);
                        }
                    }
                }
            }
        }
        for (id, node) in graph.nodes.iter() {
            if matches!(self.classified[id.index()].placement, Placement::Host(_)) {
                let _ = writeln!(text, "  {id} [label=\"{}\", style=dashed];", node.name.replace('"', "'"));
            }
        }
        for (id, tape) in graph.tapes.iter() {
            let on_host = |node: crate::graph::NodeId| matches!(self.classified[node.index()].placement, Placement::Host(_));
            if on_host(tape.from.0) && on_host(tape.to.0) {
                let _ = writeln!(text, "  {} -> {};", tape.from.0, tape.to.0);
            }
            for writer in writers.get(&id.index()).into_iter().flatten() {
                let _ = writeln!(text, "  {writer} -> {};", tape.to.0);
            }
        }
        text + "}\n"
    }
}

/// Where the tapes of an actor lie.
fn tapes(cut: &Cut, actor: &Actor) -> String {
    let mut text = String::new();
    for (word, port) in [("from", &actor.input), ("to", &actor.output)] {
        let Some(port) = port else { continue };
        let place = match cut.places[port.buffer] {
            Place::Read | Place::Written => "global memory",
            Place::Local => "registers",
            Place::Shared(_) => "shared memory",
            Place::Staged(_) => "global memory, staged in shared memory",
            Place::Elsewhere => "nowhere",
        };
        let _ = write!(text, ", {word} {place}");
        let by = if word == "from" { "splitter" } else { "joiner" };
        if !port.steps.is_empty() {
            let _ = write!(text, " ({by} as index arithmetic)");
        }
    }
    text
}
