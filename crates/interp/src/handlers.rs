//! Which instruction is run how: one line each.

use crate::op::{Handler, Machine};
use crate::pure::bits;
use broadloom_ptx::{Opcode, Type};

/// How an instruction of a type is run.
pub(crate) fn handler(opcode: Opcode, _ty: Type) -> Handler {
    match opcode {
        Opcode::And => Handler::Pure(bits::and),
        Opcode::Or => Handler::Pure(bits::or),
        Opcode::Xor => Handler::Pure(bits::xor),
        Opcode::Shl => Handler::Pure(bits::shl),
        Opcode::Shr => Handler::Pure(bits::shr),

        Opcode::Mov => Handler::Machine(Machine::Move),
        Opcode::Ld | Opcode::Ldu => Handler::Machine(Machine::Load),
        Opcode::St => Handler::Machine(Machine::Store),
        Opcode::Atom | Opcode::Red => Handler::Machine(Machine::Atomic),
        Opcode::Cvta | Opcode::CvtaTo => Handler::Machine(Machine::Convert),
        Opcode::Isspacep => Handler::Machine(Machine::IsSpace),
        Opcode::Bra => Handler::Machine(Machine::Branch),
        Opcode::BrxIdx => Handler::Machine(Machine::BranchIndexed),
        Opcode::Call => Handler::Machine(Machine::Call),
        Opcode::Ret => Handler::Machine(Machine::Return),
        Opcode::Exit => Handler::Machine(Machine::Exit),
        Opcode::Trap => Handler::Machine(Machine::Trap),
        Opcode::Bar | Opcode::Barrier => Handler::Machine(Machine::Barrier),
        Opcode::BarWarpSync
        | Opcode::ShflSync
        | Opcode::Shfl
        | Opcode::VoteSync
        | Opcode::Vote
        | Opcode::MatchAnySync
        | Opcode::MatchAllSync
        | Opcode::Activemask
        | Opcode::ReduxSync
        | Opcode::ElectSync => Handler::Machine(Machine::Warp),
        Opcode::Membar | Opcode::MembarProxy | Opcode::Fence | Opcode::FenceProxy => Handler::Machine(Machine::Fence),
        Opcode::Prefetch
        | Opcode::Prefetchu
        | Opcode::Applypriority
        | Opcode::Discard
        | Opcode::CreatepolicyRange
        | Opcode::CreatepolicyFractional
        | Opcode::CreatepolicyCvt
        | Opcode::Nanosleep
        | Opcode::Pmevent
        | Opcode::Setmaxnreg
        | Opcode::Griddepcontrol
        | Opcode::Brkpt => Handler::Machine(Machine::Nothing),
        Opcode::Stacksave | Opcode::Stackrestore | Opcode::Alloca => Handler::Machine(Machine::Stack),
        _ => Handler::Refused,
    }
}

/// Whether an opcode sets the carry flag by its name alone.
pub(crate) fn writes_carry(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::AddCc | Opcode::SubCc)
}
