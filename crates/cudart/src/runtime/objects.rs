//! User objects.

use crate::boundary::{Call, exported};
use crate::pointer::Out;
use crate::status::{Outcome, Status};
use crate::user_objects::{Retained, UserObject};
use std::sync::PoisonError;

/// References go to the graph, they are not new ones.
const MOVE: u32 = 1;

pub(crate) fn create(call: &Call, object: Out<usize>, data: usize, destroy: usize, references: u32, flags: u32) -> Outcome {
    object.wanted()?;
    // The one flag there is has to be given: nobody waits for the destructor.
    if flags != 1 {
        return Err(Status::INVALID_VALUE);
    }
    object.set(call.runtime.user_objects.insert(UserObject::new(data, destroy, references)?))
}

pub(crate) fn retain(call: &Call, object: usize, count: u32) -> Outcome {
    call.runtime.user_objects.get(object).map_err(|_| Status::INVALID_VALUE)?.retain(count)
}

pub(crate) fn release(call: &Call, object: usize, count: u32) -> Outcome {
    let found = call.runtime.user_objects.get(object).map_err(|_| Status::INVALID_VALUE)?;
    if found.release(count)? {
        call.runtime.user_objects.remove(object)?;
    }
    Ok(())
}

pub(crate) fn give_to_graph(call: &Call, graph: usize, object: usize, count: u32, flags: u32) -> Outcome {
    let graph = call.runtime.graphs.get(graph)?;
    let object = call.runtime.user_objects.get(object).map_err(|_| Status::INVALID_VALUE)?;
    if count == 0 || count > i32::MAX as u32 || flags > MOVE {
        return Err(Status::INVALID_VALUE);
    }
    if flags != MOVE {
        object.retain(count)?;
    }
    graph.objects.lock().unwrap_or_else(PoisonError::into_inner).push(Retained { object, count });
    Ok(())
}

pub(crate) fn take_from_graph(call: &Call, graph: usize, object: usize, count: u32) -> Outcome {
    let graph = call.runtime.graphs.get(graph)?;
    let object = call.runtime.user_objects.get(object).map_err(|_| Status::INVALID_VALUE)?;
    let mut objects = graph.objects.lock().unwrap_or_else(PoisonError::into_inner);
    let held = objects.iter_mut().find(|held| std::sync::Arc::ptr_eq(&held.object, &object) && held.count >= count && count > 0);
    let held = held.ok_or(Status::INVALID_VALUE)?;
    held.count -= count;
    objects.retain(|held| held.count > 0);
    drop(objects);
    object.release(count).map(drop)
}

exported! { runtime
    /// Something that lives as long as it is referred to.
    fn cudaUserObjectCreate(call, object: Out<usize>, data: usize, destroy: usize, references: u32, flags: u32) {
        create(call, object, data, destroy, references, flags)
    }

    /// More references.
    fn cudaUserObjectRetain(call, object: usize, count: u32) {
        retain(call, object, count)
    }

    /// Fewer references.
    fn cudaUserObjectRelease(call, object: usize, count: u32) {
        release(call, object, count)
    }

    /// References of a graph.
    fn cudaGraphRetainUserObject(call, graph: usize, object: usize, count: u32, flags: u32) {
        give_to_graph(call, graph, object, count, flags)
    }

    /// Fewer references of a graph.
    fn cudaGraphReleaseUserObject(call, graph: usize, object: usize, count: u32) {
        take_from_graph(call, graph, object, count)
    }
}
