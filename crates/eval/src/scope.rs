//! Instructions that executors on the host run: one list for all of them.

use crate::copy::Copy;
use crate::matrix::{Product, Rows, Transfer};
use crate::texture::{Fetch, Query, SurfaceAccess};
use broadloom_ptx::{Class, InstData, Modifier, Opcode};

/// Returns whether executors on the host run an instruction. They reject the others, with their span.
pub fn is_run(inst: &InstData) -> bool {
    let (Some(opcode), Some(class)) = (inst.opcode(), inst.class()) else { return false };
    match class {
        Class::Mbarrier => !is_beyond(opcode, inst),
        Class::Matrix => match opcode {
            Opcode::Movmatrix => true,
            _ => Product::of(inst).is_some() || Rows::of(inst).is_some() || Transfer::of(inst).is_some(),
        },
        Class::Async => match opcode {
            Opcode::CpAsync => Copy::of(inst).is_some(),
            opcode => opcode.row().is_general(),
        },
        Class::Texture | Class::Surface => {
            Fetch::of(inst).is_some() || SurfaceAccess::of(inst).is_some() || Query::of(inst).is_some()
        }
        class => class.is_general(),
    }
}

/// Returns whether an mbarrier instruction is beyond what is run: features since ISA 9.3 (a second layout,
/// phases of two types, multicast arrivals). `mbarrier.check_layout`, which tests for the second layout, is
/// run.
fn is_beyond(opcode: Opcode, inst: &InstData) -> bool {
    let beyond = [Modifier::LayoutV1, Modifier::PhaseTypePrimary, Modifier::PhaseTypeConditional, Modifier::MulticastCluster32b];
    opcode != Opcode::MbarrierCheckLayout && beyond.iter().any(|modifier| inst.has(*modifier))
}
