//! The picture of a restructured program: the remaining graph, coloured by kernel.

use super::program::Compiled;
use crate::language::graph::NodeId;
use crate::language::picture::{Line, Picture, PictureBox};
use crate::language::text::plural;
use crate::planner::classify::Placement;
use crate::planner::restructure::Role;
use cranelift_entity::EntityRef;
use std::collections::HashMap;

impl Compiled<'_> {
    /// Draws the restructured program: filters in kernels, one colour per kernel, and nodes on the host.
    pub fn picture(&self) -> Picture {
        let graph = &self.program.graph;
        let mut picture = Picture::default();
        let on_host = |node: NodeId| matches!(self.classified[node.index()].placement, Placement::Host(_));
        let mut hosts: HashMap<NodeId, usize> = HashMap::new();
        for (id, node) in graph.nodes.iter().filter(|(id, _)| on_host(*id)) {
            hosts.insert(id, picture.boxes.len());
            let class = self.classified[id.index()].class.to_string();
            picture.boxes.push(PictureBox { label: node.name.clone(), note: format!("host, {class}"), ..PictureBox::default() });
        }
        for sole in self.islands() {
            let colour = Some(picture.legend.len());
            for id in &sole.island.nodes {
                hosts.insert(*id, picture.boxes.len());
                let (label, class) = (graph.nodes[*id].name.clone(), self.classified[id.index()].class.to_string());
                picture.boxes.push(PictureBox { label, note: format!("in order, {class}"), colour, is_wire: false });
            }
            picture.legend.push(format!("kernel in order: {}", plural(sole.island.nodes.len() as u64, "node")));
        }
        for tape in graph.tapes.values() {
            if let (Some(from), Some(to)) = (hosts.get(&tape.from.0), hosts.get(&tape.to.0)) {
                picture.lines.push(Line { from: *from, to: *to, is_back: tape.is_back_edge });
            }
        }
        for ready in self.sections() {
            let first = picture.boxes.len();
            let actors = &ready.fine.actors;
            for (index, actor) in actors.iter().enumerate() {
                let kernel = ready.cuts.iter().position(|cut| cut.actors.contains(&index)).unwrap_or(0);
                let mut note = plural(actor.firings as u64, "firing");
                if actor.nodes.len() > 1 {
                    note += &format!(", {} branches", actor.nodes.len());
                }
                let colour = Some(picture.legend.len() + kernel);
                picture.boxes.push(PictureBox { label: actor.name.clone(), note, colour, is_wire: actor.nodes.is_empty() });
            }
            for (index, actor) in actors.iter().enumerate() {
                if let Some(port) = &actor.input {
                    let buffer = &ready.fine.buffers[port.buffer];
                    let writes = |other: usize| actors[other].output.as_ref().is_some_and(|output| output.buffer == port.buffer);
                    for from in (0..actors.len()).filter(|other| writes(*other)) {
                        picture.lines.push(Line { from: first + from, to: first + index, is_back: false });
                    }
                    if let (Role::Input, Some(from)) = (buffer.role, hosts.get(&graph.tapes[buffer.tape].from.0)) {
                        picture.lines.push(Line { from: *from, to: first + index, is_back: false });
                    }
                }
                if let Some(port) = &actor.output {
                    let buffer = &ready.fine.buffers[port.buffer];
                    if let (Role::Output, Some(to)) = (buffer.role, hosts.get(&graph.tapes[buffer.tape].to.0)) {
                        picture.lines.push(Line { from: first + index, to: *to, is_back: false });
                    }
                }
            }
            for (number, cut) in ready.cuts.iter().enumerate() {
                picture.legend.push(format!("kernel {number}: {}", plural(cut.actors.len() as u64, "filter")));
            }
        }
        picture
    }
}
