//! Which instruction is run how: one line each.

use crate::op::{Handler, Machine};
use crate::pure::float::{self, approx, arith, order, sign};
use crate::pure::{bits, convert_float, convert_int};
use broadloom_ptx::{Opcode, Type};

/// How an instruction is run whose first type is one, and its second the other or the same.
pub(crate) fn handler(opcode: Opcode, ty: Type, source_ty: Type) -> Handler {
    let on_floats = float::is_float(ty);
    match opcode {
        Opcode::Add if on_floats => Handler::Pure(arith::add),
        Opcode::Sub if on_floats => Handler::Pure(arith::sub),
        Opcode::Mul if on_floats => Handler::Pure(arith::mul),
        Opcode::Mad if on_floats => Handler::Pure(arith::fma),
        Opcode::Div if on_floats => Handler::Pure(arith::div),
        Opcode::Abs if on_floats => Handler::Pure(sign::abs),
        Opcode::Neg if on_floats => Handler::Pure(sign::neg),
        Opcode::Min if on_floats => Handler::Pure(order::min),
        Opcode::Max if on_floats => Handler::Pure(order::max),
        Opcode::Fma => Handler::Pure(arith::fma),
        Opcode::Rcp => Handler::Pure(arith::rcp),
        Opcode::Sqrt => Handler::Pure(arith::sqrt),
        Opcode::Rsqrt => Handler::Pure(approx::rsqrt),
        Opcode::Sin => Handler::Pure(approx::sin),
        Opcode::Cos => Handler::Pure(approx::cos),
        Opcode::Lg2 => Handler::Pure(approx::lg2),
        Opcode::Ex2 => Handler::Pure(approx::ex2),
        Opcode::Tanh => Handler::Pure(approx::tanh),
        Opcode::Testp => Handler::Pure(sign::testp),
        Opcode::Copysign => Handler::Pure(sign::copysign),
        Opcode::Cvt if ty.is_integer() && source_ty.is_integer() => Handler::Pure(convert_int::cvt),
        Opcode::Cvt => Handler::Pure(convert_float::cvt),

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
