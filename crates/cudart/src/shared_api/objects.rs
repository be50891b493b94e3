//! User objects.

use crate::boundary::exported;
use crate::objects::user_objects::{RetainedReferences, UserObject};
use crate::pointer::Out;
use crate::status::Status;
use std::sync::{Arc, PoisonError};

/// Flag: the caller's references are moved to the graph.
const MOVE: u32 = 1;

exported! { runtime
    fn cudaUserObjectCreate | cuUserObjectCreate(call, object: Out<usize>, data: usize, destroy: usize, references: u32, flags: u32) {
        object.wanted()?;
        // The only flag is mandatory: no one waits for the destructor.
        if flags != 1 {
            return Err(Status::INVALID_VALUE);
        }
        object.set(call.runtime.user_objects.insert(UserObject::new(data, destroy, references)?))
    }

    fn cudaUserObjectRetain | cuUserObjectRetain(call, object: usize, count: u32)
        => call.runtime.user_objects.get(object).map_err(|_| Status::INVALID_VALUE)?.retain(count);

    fn cudaUserObjectRelease | cuUserObjectRelease(call, object: usize, count: u32) {
        let found = call.runtime.user_objects.get(object).map_err(|_| Status::INVALID_VALUE)?;
        if found.release(count)? {
            call.runtime.user_objects.remove(object)?;
        }
        Ok(())
    }

    fn cudaGraphRetainUserObject | cuGraphRetainUserObject(call, graph: usize, object: usize, count: u32, flags: u32) {
        let graph = call.runtime.graphs.get(graph)?;
        let object = call.runtime.user_objects.get(object).map_err(|_| Status::INVALID_VALUE)?;
        if count == 0 || count > i32::MAX as u32 || flags > MOVE {
            return Err(Status::INVALID_VALUE);
        }
        if flags != MOVE {
            object.retain(count)?;
        }
        graph.objects.lock().unwrap_or_else(PoisonError::into_inner).push(RetainedReferences { object, count });
        Ok(())
    }

    fn cudaGraphReleaseUserObject | cuGraphReleaseUserObject(call, graph: usize, object: usize, count: u32) {
        let graph = call.runtime.graphs.get(graph)?;
        let object = call.runtime.user_objects.get(object).map_err(|_| Status::INVALID_VALUE)?;
        let mut objects = graph.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let held = objects.iter_mut().find(|held| Arc::ptr_eq(&held.object, &object) && held.count >= count && count > 0);
        let held = held.ok_or(Status::INVALID_VALUE)?;
        held.count -= count;
        objects.retain(|held| held.count > 0);
        drop(objects);
        object.release(count).map(drop)
    }
}
