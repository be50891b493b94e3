//! Table from instructions to handlers: one line each.

use crate::op::{CopyOp, Exchange, Handler, Machine, MbarrierOp};
use broadloom_eval::{Function, Operation};
use broadloom_ptx::{Opcode, opcodes};

/// Returns the handler of an instruction, if it is run ([`broadloom_eval::is_run`]).
pub(crate) fn handler(operation: &Operation) -> Handler {
    match operation.opcode {
        opcodes!(function) => match operation.function() {
            Some(Function::One(run)) => Handler::Pure(run),
            Some(Function::Pair(run)) => Handler::Pair(run),
            Some(Function::Carry(run)) => Handler::Carry(run),
            None => Handler::Refused,
        },

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
        Opcode::ShflSync | Opcode::Shfl => Handler::Machine(Machine::Warp(Exchange::Shuffle)),
        Opcode::VoteSync | Opcode::Vote => Handler::Machine(Machine::Warp(Exchange::Vote)),
        Opcode::MatchAnySync => Handler::Machine(Machine::Warp(Exchange::MatchAny)),
        Opcode::MatchAllSync => Handler::Machine(Machine::Warp(Exchange::MatchAll)),
        Opcode::ReduxSync => Handler::Machine(Machine::Warp(Exchange::Reduce)),
        Opcode::ElectSync => Handler::Machine(Machine::Warp(Exchange::Elect)),
        Opcode::Activemask => Handler::Machine(Machine::Warp(Exchange::Members)),
        Opcode::BarWarpSync => Handler::Machine(Machine::Warp(Exchange::Nothing)),
        Opcode::Membar | Opcode::MembarProxy | Opcode::Fence | Opcode::FenceProxy => Handler::Machine(Machine::Fence),
        Opcode::Prefetch
        | Opcode::Prefetchu
        | Opcode::Applypriority
        | Opcode::Discard
        | Opcode::CreatepolicyRange
        | Opcode::CreatepolicyFractional
        | Opcode::CreatepolicyCvt
        | Opcode::Pmevent
        | Opcode::Setmaxnreg
        | Opcode::Griddepcontrol
        | Opcode::Brkpt => Handler::Machine(Machine::Nothing),
        Opcode::MbarrierInit => Handler::Machine(Machine::Mbarrier(MbarrierOp::Init)),
        Opcode::MbarrierInval => Handler::Machine(Machine::Mbarrier(MbarrierOp::Invalidate)),
        Opcode::MbarrierExpectTx => Handler::Machine(Machine::Mbarrier(MbarrierOp::ExpectTx)),
        Opcode::MbarrierCompleteTx => Handler::Machine(Machine::Mbarrier(MbarrierOp::CompleteTx)),
        Opcode::MbarrierArrive => Handler::Machine(Machine::Mbarrier(MbarrierOp::Arrive)),
        Opcode::MbarrierArriveDrop => Handler::Machine(Machine::Mbarrier(MbarrierOp::ArriveAndDrop)),
        Opcode::MbarrierTestWait | Opcode::MbarrierTryWait => Handler::Machine(Machine::Mbarrier(MbarrierOp::Wait)),
        Opcode::MbarrierCheckLayout => Handler::Machine(Machine::Mbarrier(MbarrierOp::CheckLayout)),
        Opcode::BarrierClusterArrive => Handler::Machine(Machine::ClusterArrive),
        Opcode::BarrierClusterWait => Handler::Machine(Machine::ClusterWait),
        Opcode::Mapa => Handler::Machine(Machine::MapAddress),
        Opcode::Getctarank => Handler::Machine(Machine::RankOfAddress),
        Opcode::StAsync => Handler::Machine(Machine::StoreAsync),
        Opcode::RedAsync => Handler::Machine(Machine::ReduceAsync),
        Opcode::StBulk => Handler::Machine(Machine::StoreBulk),
        Opcode::Nanosleep => Handler::Machine(Machine::Sleep),
        Opcode::Stacksave => Handler::Machine(Machine::SaveStack),
        Opcode::Stackrestore => Handler::Machine(Machine::RestoreStack),
        Opcode::Alloca => Handler::Machine(Machine::Allocate),

        // Textures and surfaces.
        Opcode::Tex | Opcode::Tld4 | Opcode::Txq | Opcode::Suld | Opcode::Sust | Opcode::Sured | Opcode::Suq => {
            Handler::Machine(Machine::Image)
        }
        // Matrices.
        Opcode::Mma | Opcode::WmmaMma | Opcode::Ldmatrix | Opcode::Stmatrix | Opcode::Movmatrix => {
            Handler::Machine(Machine::Warp(Exchange::Matrix))
        }
        Opcode::WmmaLoad | Opcode::WmmaStore => Handler::Machine(Machine::Fragment),
        // Asynchronous copies.
        Opcode::CpAsync => Handler::Machine(Machine::Copy(CopyOp::Start)),
        Opcode::CpAsyncCommitGroup => Handler::Machine(Machine::Copy(CopyOp::Commit)),
        Opcode::CpAsyncWaitGroup => Handler::Machine(Machine::Copy(CopyOp::WaitGroup)),
        Opcode::CpAsyncWaitAll => Handler::Machine(Machine::Copy(CopyOp::WaitAll)),
        Opcode::CpAsyncMbarrierArrive => Handler::Machine(Machine::Copy(CopyOp::Arrive)),
        opcodes!(refused) => Handler::Refused,
    }
}

/// Returns whether the interpreter runs an instruction.
pub fn is_run(operation: &Operation) -> bool {
    !matches!(handler(operation), Handler::Refused)
}
