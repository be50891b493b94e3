//! Which instructions executors on the host run: one list for all of them.

use crate::copy::Copy;
use crate::matrix::{Product, Rows, Transfer};
use crate::texture::{Fetch, Query, SurfaceAccess};
use broadloom_ptx::{Class, InstData, Modifier, Opcode};

/// Whether executors on the host run an instruction. The others they refuse, with their place.
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

/// Of mbarriers what there is since ISA 9.3 (a second layout, phases of two types, arrivals at several at once) is not run; whether
/// an mbarrier has the second layout can be asked.
fn is_beyond(opcode: Opcode, inst: &InstData) -> bool {
    let beyond = [Modifier::LayoutV1, Modifier::PhaseTypePrimary, Modifier::PhaseTypeConditional, Modifier::MulticastCluster32b];
    opcode != Opcode::MbarrierCheckLayout && beyond.iter().any(|modifier| inst.has(*modifier))
}
