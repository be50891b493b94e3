//! Capture of streams into graphs.

use crate::boundary::{Call, exported};
use crate::pointer::{In, Out};
use crate::status::{Outcome, Status};
use std::cell::Cell;
use std::sync::atomic::Ordering;

thread_local! {
    static MODE: Cell<u32> = const { Cell::new(0) };
}

/// Returns the status of a capture: none, active or invalidated.
pub(crate) fn state_of(call: &Call, stream: usize) -> Outcome<(u32, u64, usize)> {
    let stream = call.stream(stream)?;
    let capturing = stream.capturing();
    Ok(match capturing.as_ref() {
        None => (0, 0, 0),
        Some(found) => (1 + u32::from(found.capture.invalid.load(Ordering::Relaxed)), found.capture.id, found.after.len()),
    })
}

/// Returns status, number, graph and nodes of a capture.
#[allow(clippy::too_many_arguments, reason = "they are those of the function of the runtime")]
pub(crate) fn info(
    call: &Call,
    stream: usize,
    status: Out<u32>,
    id: Out<u64>,
    graph: Out<usize>,
    nodes: Out<usize>,
    edges: Out<usize>,
    count: Out<usize>,
) -> Outcome {
    thread_local! {
        /// List of nodes, valid until the next call.
        static NODES: Cell<Vec<usize>> = const { Cell::new(vec![]) };
    }
    let (state, number, _) = state_of(call, stream)?;
    status.set(state)?;
    if state == 0 {
        return Ok(());
    }
    id.set_if_wanted(number);
    let stream = call.stream(stream)?;
    let capturing = stream.capturing();
    let Some(found) = capturing.as_ref() else { return Ok(()) };
    if !graph.is_null() {
        let graphs = &call.runtime.graphs;
        let handle = graphs.handle_of(&found.capture.graph).unwrap_or_else(|| {
            let handle = graphs.reserve();
            graphs.put(handle, found.capture.graph.clone());
            handle
        });
        graph.set(handle)?;
    }
    let list = found.capture.graph.nodes();
    let handles: Vec<usize> = found.after.iter().map(|index| list[*index].handle).collect();
    count.set_if_wanted(handles.len());
    nodes.set_if_wanted(handles.as_ptr() as usize);
    edges.set_if_wanted(0);
    NODES.set(handles);
    Ok(())
}

pub(crate) fn update(call: &Call, stream: usize, nodes: &[usize], flags: u32) -> Outcome {
    let stream = call.stream(stream)?;
    let mut capturing = stream.capturing();
    let found = capturing.as_mut().ok_or(Status::ILLEGAL_STATE)?;
    let places = call.runtime.places(&found.capture.graph, nodes)?;
    match flags {
        0 => found.after.extend(places),
        1 => found.after = places,
        _ => return Err(Status::INVALID_VALUE),
    }
    Ok(())
}

exported! { runtime
    fn cudaStreamBeginCapture / cudaStreamBeginCapture_ptsz | cuStreamBeginCapture_v2 / cuStreamBeginCapture_v2_ptsz(call, stream: usize, mode: u32) {
        if mode > 2 {
            return Err(Status::INVALID_VALUE);
        }
        call.runtime.begin_capture(&*call.stream(stream)?, None, vec![])
    }

    fn cudaStreamBeginCaptureToGraph / cudaStreamBeginCaptureToGraph_ptsz | cuStreamBeginCaptureToGraph / cuStreamBeginCaptureToGraph_ptsz(call, stream: usize, graph: usize, nodes: In<usize>, _edges: usize, count: usize, mode: u32) {
        if mode > 2 {
            return Err(Status::INVALID_VALUE);
        }
        let graph = call.runtime.graphs.get(graph)?;
        let after = call.runtime.places(&graph, &nodes.get_all(count)?)?;
        call.runtime.begin_capture(&*call.stream(stream)?, Some(graph), after)
    }

    /// Ends a capture and returns the graph. `graph` may be null for a capture into an existing graph.
    fn cudaStreamEndCapture / cudaStreamEndCapture_ptsz | cuStreamEndCapture / cuStreamEndCapture_ptsz(call, stream: usize, graph: Out<usize>) {
        let stream = call.stream(stream)?;
        let graphs = &call.runtime.graphs;
        let known = stream.capturing().as_ref().and_then(|found| graphs.handle_of(&found.capture.graph));
        if known.is_none() {
            graph.wanted()?;
        }
        graph.set_if_wanted(0);
        let captured = call.runtime.end_capture(&stream)?;
        let handle = known.unwrap_or_else(|| {
            let handle = graphs.reserve();
            graphs.put(handle, captured);
            handle
        });
        graph.set_if_wanted(handle);
        Ok(())
    }

    fn cudaStreamIsCapturing / cudaStreamIsCapturing_ptsz | cuStreamIsCapturing / cuStreamIsCapturing_ptsz(call, stream: usize, status: Out<u32>)
        => status.set(state_of(call, stream)?.0);
    /// Returns the state of a capture, without edges.
    fn cudaStreamGetCaptureInfo_v2 / cudaStreamGetCaptureInfo_v2_ptsz | cuStreamGetCaptureInfo_v2 / cuStreamGetCaptureInfo_v2_ptsz(call, stream: usize, status: Out<u32>, id: Out<u64>, graph: Out<usize>, nodes: Out<usize>, count: Out<usize>)
        => info(call, stream, status, id, graph, nodes, Out::at(0), count);
    /// Returns the state of a capture, with edges.
    fn cudaStreamGetCaptureInfo_v3 / cudaStreamGetCaptureInfo_v3_ptsz | cuStreamGetCaptureInfo_v3 / cuStreamGetCaptureInfo_v3_ptsz(call, stream: usize, status: Out<u32>, id: Out<u64>, graph: Out<usize>, nodes: Out<usize>, edges: Out<usize>, count: Out<usize>)
        => info(call, stream, status, id, graph, nodes, edges, count);
    /// Changes the dependencies of later work, with edges.
    fn cudaStreamUpdateCaptureDependencies_v2 / cudaStreamUpdateCaptureDependencies_v2_ptsz | cuStreamUpdateCaptureDependencies_v2 / cuStreamUpdateCaptureDependencies_v2_ptsz(call, stream: usize, nodes: In<usize>, _edges: usize, count: usize, flags: u32)
        => update(call, stream, &nodes.get_all(count)?, flags);

    /// Exchanges the capture mode of this thread. Calls are never restricted here.
    fn cudaThreadExchangeStreamCaptureMode | cuThreadExchangeStreamCaptureMode(_call, mode: Out<u32>) {
        let wanted = mode.get()?;
        if wanted > 2 {
            return Err(Status::INVALID_VALUE);
        }
        mode.set(MODE.replace(wanted))
    }
}
