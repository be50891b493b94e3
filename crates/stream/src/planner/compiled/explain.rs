//! Explanations: what was done to each filter on which device, and why.

use super::program::{Compiled, CompiledIsland, CompiledPiece, CompiledSection, CompiledStage};
use super::techniques::{is_high_traffic, traffic};
use crate::language::graph::NodeKind;
use crate::language::text::plural;
use crate::planner::classify::Placement;
use crate::planner::restructure::cut::{BufferPlace, Cut, Shape, cost};
use crate::planner::restructure::{Actor, Role};
use cranelift_entity::EntityRef;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

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
        let states = self.largest_batch();
        let why = match self.options.latency {
            Some(latency) if latency.max(1) == states => "the latency that is asked for",
            _ => "what keeps the machine busy and tapes small",
        };
        let _ = writeln!(
            text,
            "a batch has at most {}, {why}; its tapes on the device have {} KiB",
            plural(states, "steady state"),
            self.batch_bytes().div_ceil(1024)
        );
        for (number, stage) in self.stages.iter().enumerate() {
            match stage {
                CompiledStage::Host(chosen) => {
                    let _ = writeln!(text, "stage {number}, host");
                    self.explain_host(chosen, &mut text);
                }
                CompiledStage::Device(pieces) => {
                    for piece in pieces {
                        let ready = match piece {
                            CompiledPiece::Section(ready) => ready,
                            CompiledPiece::Island(sole) => {
                                self.explain_island(number, sole, &mut text);
                                continue;
                            }
                        };
                        let _ = writeln!(
                            text,
                            "stage {number}, device: {}{} in a steady state, after {}",
                            plural(ready.section.units * ready.parts as u64, "unit"),
                            if ready.parts > 1 { ", parts that no tape connects," } else { "" },
                            plural(ready.warm_up, "steady state") + " on the host"
                        );
                        ready.cuts.iter().enumerate().for_each(|(kernel, cut)| self.explain_cut(ready, kernel, cut, &mut text));
                    }
                }
            }
        }
        text
    }

    /// Describes the runs so far: steady states, the time of each stage, firings of each filter.
    pub fn report(&self) -> String {
        let statistics = self.statistics();
        let mut text = format!(
            "{} on the device in {}",
            plural(statistics.states, "steady state"),
            plural(statistics.batches, "batch").replace("batchs", "batches")
        );
        if statistics.handed_back > 0 {
            text += "; the evaluator ran the rest";
        }
        text.push('\n');
        for (number, stage) in self.stages.iter().enumerate() {
            let time = self.counters.stages[number].load(Ordering::Relaxed);
            let place = if matches!(stage, CompiledStage::Host(_)) { "host" } else { "device" };
            let _ = writeln!(text, "stage {number}, {place}: {:.3} ms", time as f64 / 1e6);
            if let CompiledStage::Device(pieces) = stage {
                pieces.iter().for_each(|piece| self.report_kernels(piece, &mut text));
            }
            for (id, node) in self.program.graph.nodes.iter() {
                let inside = match stage {
                    CompiledStage::Host(chosen) => chosen[id.index()],
                    CompiledStage::Device(pieces) => pieces.iter().any(|piece| piece.nodes().contains(&id)),
                };
                let repetition = self.program.schedule.as_ref().map_or(0, |schedule| schedule.repetition(id));
                if inside {
                    let _ = writeln!(text, "  {}: {}", node.name, plural(repetition * statistics.states, "firing"));
                }
            }
        }
        text
    }

    /// Describes launches, times and filters of the kernels of a piece.
    fn report_kernels(&self, piece: &CompiledPiece, text: &mut String) {
        let mut tell = |number: usize, (launches, time): &(AtomicU64, AtomicU64), names: &[&str]| {
            let launches = launches.load(Ordering::Relaxed);
            let _ = write!(text, "  kernel {number}: {}", plural(launches, "launch").replace("launchs", "launches"));
            if self.options.timed {
                let _ = write!(text, ", {:.3} ms", time.load(Ordering::Relaxed) as f64 / 1e6);
            }
            let more = names.len().saturating_sub(8);
            let _ = write!(text, ": {}", names[..names.len() - more].join(", "));
            let _ = writeln!(text, "{}", if more > 0 { format!(" and {more} more") } else { String::new() });
        };
        match piece {
            CompiledPiece::Section(ready) => {
                for (number, (cut, counted)) in ready.cuts.iter().zip(&ready.counted).enumerate() {
                    let names: Vec<&str> = cut.actors.iter().map(|index| &*ready.fine.actors[*index].name).collect();
                    tell(number, counted, &names);
                }
            }
            CompiledPiece::Island(sole) => {
                let names: Vec<&str> = sole.island.nodes.iter().map(|node| &*self.program.graph.nodes[*node].name).collect();
                tell(0, &sole.counted, &names);
            }
        }
    }

    fn explain_host(&self, chosen: &[bool], text: &mut String) {
        for (id, node) in self.program.graph.nodes.iter().filter(|(id, _)| chosen[id.index()]) {
            let found = &self.classified[id.index()];
            if let Placement::Host(reason) = &found.placement {
                let _ = writeln!(text, "  {}: {}; {reason}", node.name, found.class);
            }
        }
    }

    fn explain_island(&self, stage: usize, sole: &CompiledIsland, text: &mut String) {
        let island = &sole.island;
        let how = match island.rounds.first() {
            _ if sole.scan.is_some() => "its firings are combined in three passes: chunks, tiles, firings again".to_owned(),
            Some(round) if island.threads > 1 => format!(
                "{} of one block share the firings of {} at a time, which the delay of the loop allows",
                plural(island.threads, "thread"),
                plural(round.units as u64, "unit")
            ),
            _ => "one thread runs the firings in order".to_owned(),
        };
        let bytes: u64 = island.state_words.iter().zip([4, 4, 8]).map(|(words, size)| words * size).sum();
        let _ = writeln!(
            text,
            "stage {stage}, device: {} in a steady state\n  kernel 0: {how}; {bytes} bytes of state stay in memory of the device",
            plural(island.units, "unit")
        );
        for (number, node) in island.nodes.iter().enumerate() {
            let (name, class) = (&self.program.graph.nodes[*node].name, self.classified[node.index()].class);
            let firings = plural(island.firings[number] as u64, "firing");
            let _ = writeln!(text, "    {name}: {class}, {firings} in a unit");
            if !matches!(self.program.graph.nodes[*node].kind, NodeKind::Filter(_)) {
                continue;
            }
            let _ = match &sole.scan {
                Some(_) => writeln!(text, "      scan: yes, its state is a recurrence"),
                None => {
                    writeln!(text, "      scan: no, its state is no recurrence, or one core runs its firings faster in order")
                }
            };
            let together = island.nodes.len() - 1;
            let _ = match together {
                0 => writeln!(text, "      vertical fusion: no, its neighbours run in parallel or on the host"),
                some => writeln!(text, "      vertical fusion: yes, {} in the kernel", plural(some as u64, "other node")),
            };
        }
        for inner in &island.inner {
            let place = if inner.local { "registers" } else { "a ring in memory of the device" };
            let _ = writeln!(text, "    {}: {place}", self.program.graph.describe(inner.crossing.tape));
        }
    }

    fn explain_cut(&self, ready: &CompiledSection, number: usize, cut: &Cut, text: &mut String) {
        let shape = match cut.shape {
            Shape::Thread => format!(
                "{} for each thread, items between filters in registers and local arrays",
                if cut.per_thread == 1 { "a unit".to_owned() } else { plural(cut.per_thread as u64, "unit") }
            ),
            Shape::Block(units) => format!(
                "{} for each block of {}, items between filters in {} bytes of shared memory",
                plural(units as u64, "unit"),
                plural(cut.threads, "thread"),
                cut.shared_bytes
            ),
            Shape::Spectrum(points) => format!(
                "a block of {} for each two windows of {points} items, which it transforms, multiplies and transforms back",
                plural(cut.threads, "thread")
            ),
            Shape::Firing => format!(
                "a block of {} for each firing, or several where it is long; they share the rounds of its loops",
                plural(cut.threads, "thread")
            ),
        };
        let _ = writeln!(text, "  kernel {number}: {shape}");
        for index in &cut.actors {
            let actor = &ready.fine.actors[*index];
            let class = match actor.nodes.first() {
                Some(node) => self.classified[node.index()].class.to_string(),
                None => "copy".to_owned(),
            };
            let mut line = format!("    {}: {class}, {} in a unit", actor.name, plural(actor.firings as u64, "firing"));
            if actor.nodes.len() > 1 {
                let what = if actor.combined { "linear filters" } else { "branches" };
                let _ = write!(line, ", {} {what} as one", actor.nodes.len());
            }
            let word = if is_high_traffic(ready, actor, self.device.machine()) { "high" } else { "low" };
            let bytes = traffic(ready, cut, actor);
            let _ = write!(line, ", {} operations and {bytes} bytes of memory each, {word} traffic", cost(actor));
            if let (Some(range), Shape::Block(units)) = (cut.block.firings[*index], cut.shape) {
                let again = range.len() - actor.firings * units;
                if again > 0 {
                    let _ = write!(line, ", {} computed again for each block", plural(again as u64, "firing"));
                }
            }
            let _ = writeln!(text, "{line}{}", tapes(cut, actor));
            for technique in self.techniques(ready, cut, *index) {
                let word = if technique.applied { "yes" } else { "no" };
                let _ = writeln!(text, "      {}: {word}, {}", technique.name, technique.reason);
            }
        }
    }

    /// Draws the restructured program in the DOT language: kernels as clusters, tapes that hold items as
    /// edges.
    pub fn to_dot(&self) -> String {
        let graph = &self.program.graph;
        let mut text = "digraph compiled {\n  node [shape=box];\n".to_owned();
        let mut writers: std::collections::HashMap<usize, Vec<String>> = Default::default();
        let mut readers = writers.clone();
        for (stage, part) in self.stages.iter().enumerate() {
            let CompiledStage::Device(pieces) = part else { continue };
            for (place, piece) in pieces.iter().enumerate() {
                let ready = match piece {
                    CompiledPiece::Section(ready) => ready,
                    CompiledPiece::Island(sole) => {
                        let _ = writeln!(text, "  subgraph cluster_{stage}_{place} {{ label=\"kernel in order\";");
                        for node in &sole.island.nodes {
                            let _ = writeln!(text, "    {node} [label=\"{}\"];", graph.nodes[*node].name.replace('"', "'"));
                        }
                        text += "  }\n";
                        for output in &sole.island.outputs {
                            writers.entry(output.tape.index()).or_default().push(graph.tapes[output.tape].from.0.to_string());
                        }
                        continue;
                    }
                };
                for (number, cut) in ready.cuts.iter().enumerate() {
                    let _ = writeln!(text, "  subgraph cluster_{stage}_{place}_{number} {{ label=\"kernel {number}\";");
                    for index in &cut.actors {
                        let name = ready.fine.actors[*index].name.replace('"', "'");
                        let _ = writeln!(text, "    actor_{stage}_{place}_{index} [label=\"{name}\"];");
                    }
                    text += "  }\n";
                }
                for (index, actor) in ready.fine.actors.iter().enumerate() {
                    let name = format!("actor_{stage}_{place}_{index}");
                    if let Some(input) = &actor.input {
                        let buffer = &ready.fine.buffers[input.buffer];
                        for (other, from) in ready.fine.actors.iter().enumerate() {
                            if from.output.as_ref().is_some_and(|port| port.buffer == input.buffer) {
                                let _ = writeln!(text, "  actor_{stage}_{place}_{other} -> {name};");
                            }
                        }
                        if buffer.role == Role::Input {
                            readers.entry(buffer.tape.index()).or_default().push(name.clone());
                        }
                    }
                    if let Some(output) = &actor.output {
                        let buffer = &ready.fine.buffers[output.buffer];
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
        // A tape between placements leads from its writers to its readers.
        for (id, tape) in graph.tapes.iter() {
            let inside = |node: crate::language::graph::NodeId| match self.classified[node.index()].placement {
                Placement::Host(_) | Placement::Sequential | Placement::Scan(_) => Some(vec![node.to_string()]),
                Placement::Kernel(_) | Placement::Wire => None,
            };
            let from = writers.get(&id.index()).cloned().or_else(|| inside(tape.from.0));
            let to = readers.get(&id.index()).cloned().or_else(|| inside(tape.to.0));
            for (writer, reader) in from.iter().flatten().flat_map(|from| to.iter().flatten().map(move |to| (from, to))) {
                let _ = writeln!(text, "  {writer} -> {reader};");
            }
        }
        text + "}\n"
    }
}

/// Returns a description of where the tapes of an actor are stored.
fn tapes(cut: &Cut, actor: &Actor) -> String {
    let mut text = String::new();
    for (word, port) in [("from", &actor.input), ("to", &actor.output)] {
        let Some(port) = port else { continue };
        let place = match cut.places[port.buffer] {
            BufferPlace::Read | BufferPlace::Written => "global memory",
            BufferPlace::Local => "registers",
            BufferPlace::Shared(_) => "shared memory",
            BufferPlace::Staged(_) => "global memory, staged in shared memory",
            BufferPlace::Collected(_) => "global memory, collected in shared memory",
            BufferPlace::Loaded | BufferPlace::Kept => "global memory, several words at a time",
            BufferPlace::Elsewhere => "nowhere",
        };
        let _ = write!(text, ", {word} {place}");
        let by = if word == "from" { "splitter" } else { "joiner" };
        if !port.steps.is_empty() {
            let _ = write!(text, " ({by} as index arithmetic)");
        }
    }
    text
}
