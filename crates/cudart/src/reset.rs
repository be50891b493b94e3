//! `cudaDeviceReset`: destroys all objects of a program.

use crate::objects::memory::AllocationKind;
use crate::state::Runtime;
use crate::status::Outcome;

impl Runtime {
    /// Waits for all work and destroys streams, events, graphs, textures, arrays and memory. Modules of the
    /// program stay, since the program would not register them again. Registered host memory is unregistered.
    pub(crate) fn reset(&self) -> Outcome {
        self.wait_for_all()?;
        self.execs.retain(|_| false);
        for graph in self.graphs.handles() {
            // A graph may have been destroyed together with its parent.
            let _ = self.destroy_graph(graph);
        }
        self.nodes.retain(|_| false);
        for object in self.objects.handles() {
            self.destroy_object(object as u64)?;
        }
        self.mipmaps.retain(|_| false);
        for array in self.arrays.handles() {
            self.destroy_array(array)?;
        }
        for event in self.events.handles() {
            self.destroy_event(event)?;
        }
        for stream in self.streams.handles() {
            self.destroy_stream(stream)?;
        }
        for found in self.memory.all() {
            match found.kind {
                AllocationKind::Device | AllocationKind::Managed | AllocationKind::Array => self.free(found.start)?,
                AllocationKind::Graph => self.free_condition(found.start)?,
                AllocationKind::Host(_) => self.free_host(found.start)?,
                AllocationKind::Registered(_) => self.unregister_host(found.start)?,
                AllocationKind::Variable | AllocationKind::ManagedVariable | AllocationKind::Mapped => {}
            }
        }
        self.wait_for_all()?;
        self.judge(self.device()?.backend().trim())
    }
}
