//! Memory order and scope of an instruction, from its modifiers.

use crate::op::Op;
use crate::watch::{Order, Scope};
use broadloom_ptx::Modifier;

/// Returns the scope among the modifiers; system scope if there is none. Plain accesses do not use it.
pub(super) fn scope(op: &Op) -> Scope {
    if op.has(Modifier::Cta) {
        Scope::Cta
    } else if op.has(Modifier::Gpu) || op.has(Modifier::Gl) || op.has(Modifier::Cluster) {
        Scope::Gpu
    } else {
        Scope::System
    }
}

/// Returns the memory order of an access.
pub(super) fn order(op: &Op) -> Order {
    if op.has(Modifier::AcqRel) {
        Order::AcquireRelease
    } else if op.has(Modifier::Acquire) {
        Order::Acquire
    } else if op.has(Modifier::Release) {
        Order::Release
    } else if op.has(Modifier::Relaxed) || op.has(Modifier::Volatile) || op.has(Modifier::Mmio) {
        Order::Relaxed
    } else {
        Order::Weak
    }
}
