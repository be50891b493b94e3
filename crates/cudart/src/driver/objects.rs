//! User objects.

use crate::boundary::exported;
use crate::pointer::Out;
use crate::runtime::objects::{create, give_to_graph, release, retain, take_from_graph};

exported! { driver
    /// Something that lives as long as it is referred to.
    fn cuUserObjectCreate(call, object: Out<usize>, data: usize, destroy: usize, references: u32, flags: u32) {
        create(call, object, data, destroy, references, flags)
    }

    /// More references.
    fn cuUserObjectRetain(call, object: usize, count: u32) {
        retain(call, object, count)
    }

    /// Fewer references.
    fn cuUserObjectRelease(call, object: usize, count: u32) {
        release(call, object, count)
    }

    /// References of a graph.
    fn cuGraphRetainUserObject(call, graph: usize, object: usize, count: u32, flags: u32) {
        give_to_graph(call, graph, object, count, flags)
    }

    /// Fewer references of a graph.
    fn cuGraphReleaseUserObject(call, graph: usize, object: usize, count: u32) {
        take_from_graph(call, graph, object, count)
    }
}
