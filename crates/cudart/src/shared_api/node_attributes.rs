//! Launch attributes of kernel nodes: cooperative launch and cluster size. Hints are stored and returned.

use crate::boundary::{Call, exported};
use crate::objects::kernels::Kernel;
use crate::objects::work::{NodeRef, Work};
use crate::pointer::{In, Out};
use crate::status::{Outcome, Status};
use broadloom_device::Launch;
use std::sync::Arc;

/// `cudaLaunchAttributeValue`.
type Value = [u32; 16];

const COOPERATIVE: u32 = 2;
const CLUSTER: u32 = 4;
/// Last attribute number.
const LAST: u32 = 18;

/// Returns a kernel node with its kernel and launch.
fn node(call: &Call, node: usize) -> Outcome<(Arc<NodeRef>, Arc<Kernel>, Launch)> {
    let node = call.runtime.nodes.get(node)?;
    let found = match &node.graph.nodes()[node.index].work {
        Some(Work::Launch { kernel, launch, .. }) => Some((kernel.clone(), launch.clone())),
        _ => None,
    };
    let (kernel, launch) = found.ok_or(Status::INVALID_VALUE)?;
    Ok((node, kernel, launch))
}

fn set(call: &Call, handle: usize, attribute: u32, value: Value) -> Outcome {
    let (node, kernel, mut launch) = node(call, handle)?;
    match attribute {
        COOPERATIVE => launch.cooperative = value[0] != 0,
        CLUSTER => {
            let size = kernel.cluster(kernel.resolved(call.runtime)?, Some([value[0], value[1], value[2]]))?;
            let fits = size.is_none_or(|size| (0..3).all(|axis| launch.grid[axis].is_multiple_of(size[axis])));
            if !fits {
                return Err(Status::INVALID_CLUSTER_SIZE);
            }
            launch.cluster = size;
        }
        1..=LAST => {}
        _ => return Err(Status::INVALID_VALUE),
    }
    let mut nodes = node.graph.nodes();
    let place = &mut nodes[node.index];
    if let Some(Work::Launch { launch: old, .. }) = &mut place.work {
        *old = launch;
    }
    place.attributes.insert(attribute, value);
    Ok(())
}

fn get(call: &Call, handle: usize, attribute: u32) -> Outcome<Value> {
    let (node, _, launch) = node(call, handle)?;
    let mut value = [0; 16];
    match attribute {
        COOPERATIVE => value[0] = u32::from(launch.cooperative),
        CLUSTER => value[..3].copy_from_slice(&launch.cluster.unwrap_or([1; 3])),
        1..=LAST => return Ok(node.graph.nodes()[node.index].attributes.get(&attribute).copied().unwrap_or(value)),
        _ => return Err(Status::INVALID_VALUE),
    }
    Ok(value)
}

exported! { runtime
    fn cudaGraphKernelNodeSetAttribute | cuGraphKernelNodeSetAttribute(call, node: usize, attribute: u32, value: In<Value>)
        => set(call, node, attribute, value.get()?);
    fn cudaGraphKernelNodeGetAttribute | cuGraphKernelNodeGetAttribute(call, node: usize, attribute: u32, value: Out<Value>)
        => value.set_by(|| get(call, node, attribute));

    fn cudaGraphKernelNodeCopyAttributes | cuGraphKernelNodeCopyAttributes(call, to: usize, from: usize) {
        let (source, _, launch) = node(call, from)?;
        node(call, to)?;
        let mut all = source.graph.nodes()[source.index].attributes.clone();
        all.insert(COOPERATIVE, get(call, from, COOPERATIVE)?);
        if launch.cluster.is_some() {
            all.insert(CLUSTER, get(call, from, CLUSTER)?);
        }
        all.into_iter().try_for_each(|(attribute, value)| set(call, to, attribute, value))
    }
}
