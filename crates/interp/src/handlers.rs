//! Which instruction is run how: one line each.

use crate::op::{Exchange, Handler, Machine, Op, Pure};
use crate::pure::float::{self, approx, order, sign};
use crate::pure::{arith, bits, carry, compare, convert_float, convert_int, dot, video, video_simd};
use broadloom_ptx::{Modifier, Opcode};

/// How an instruction is run.
pub(crate) fn handler(op: &Op) -> Handler {
    match op.opcode {
        Opcode::Add => of_numbers(op, arith::add, float::arith::add),
        Opcode::Sub => of_numbers(op, arith::sub, float::arith::sub),
        Opcode::Mul => of_numbers(op, arith::mul, float::arith::mul),
        Opcode::Mad if op.has(Modifier::Cc) => Handler::Carry(carry::mad_cc),
        Opcode::Mad => of_numbers(op, arith::mad, float::arith::fma),
        Opcode::Div => of_numbers(op, arith::div, float::arith::div),
        Opcode::Abs => of_numbers(op, arith::abs, sign::abs),
        Opcode::Neg => of_numbers(op, arith::neg, sign::neg),
        Opcode::Min => of_numbers(op, arith::min, order::min),
        Opcode::Max => of_numbers(op, arith::max, order::max),

        Opcode::Fma => Handler::Pure(float::arith::fma),
        Opcode::Rcp => Handler::Pure(float::arith::rcp),
        Opcode::Sqrt => Handler::Pure(float::arith::sqrt),
        Opcode::Rsqrt => Handler::Pure(approx::rsqrt),
        Opcode::Sin => Handler::Pure(approx::sin),
        Opcode::Cos => Handler::Pure(approx::cos),
        Opcode::Lg2 => Handler::Pure(approx::lg2),
        Opcode::Ex2 => Handler::Pure(approx::ex2),
        Opcode::Tanh => Handler::Pure(approx::tanh),
        Opcode::Testp => Handler::Pure(sign::testp),
        Opcode::Copysign => Handler::Pure(sign::copysign),

        Opcode::Rem => Handler::Pure(arith::rem),
        Opcode::Sad => Handler::Pure(arith::sad),
        Opcode::Mul24 => Handler::Pure(arith::mul24),
        Opcode::Mad24 => Handler::Pure(arith::mad24),
        Opcode::Dp4a => Handler::Pure(dot::dp4a),
        Opcode::Dp2a => Handler::Pure(dot::dp2a),
        Opcode::Clmad => Handler::Pure(dot::clmad),

        Opcode::AddCc => Handler::Carry(carry::add_cc),
        Opcode::Addc => Handler::Carry(carry::addc),
        Opcode::SubCc => Handler::Carry(carry::sub_cc),
        Opcode::Subc => Handler::Carry(carry::subc),
        Opcode::Madc => Handler::Carry(carry::madc),

        Opcode::Setp => Handler::Pair(compare::setp(&op.modifiers)),
        Opcode::Set => Handler::Pure(compare::set),
        Opcode::Selp => Handler::Pure(compare::selp),
        Opcode::Slct => Handler::Pure(compare::slct),

        Opcode::And => Handler::Pure(bits::and),
        Opcode::Or => Handler::Pure(bits::or),
        Opcode::Xor => Handler::Pure(bits::xor),
        Opcode::Not => Handler::Pure(bits::not),
        Opcode::Cnot => Handler::Pure(bits::cnot),
        Opcode::Lop3 if op.writes.len() == 2 => Handler::Pair(bits::lop3_bool),
        Opcode::Lop3 => Handler::Pure(bits::lop3),
        Opcode::Shl => Handler::Pure(bits::shl),
        Opcode::Shr => Handler::Pure(bits::shr),
        Opcode::Shf => Handler::Pure(bits::shf),
        Opcode::Popc => Handler::Pure(bits::popc),
        Opcode::Clz => Handler::Pure(bits::clz),
        Opcode::Bfind => Handler::Pure(bits::bfind),
        Opcode::Fns => Handler::Pure(bits::fns),
        Opcode::Brev => Handler::Pure(bits::brev),
        Opcode::Bfe => Handler::Pure(bits::bfe),
        Opcode::Bfi => Handler::Pure(bits::bfi),
        Opcode::Szext => Handler::Pure(bits::szext),
        Opcode::Bmsk => Handler::Pure(bits::bmsk),
        Opcode::Prmt => Handler::Pure(bits::prmt),

        Opcode::Cvt if op.ty.is_integer() && op.source_ty.is_integer() => Handler::Pure(convert_int::cvt),
        Opcode::Cvt => Handler::Pure(convert_float::cvt(op)),
        Opcode::CvtPack => Handler::Pure(convert_int::cvt_pack),

        Opcode::Vadd => Handler::Pure(video::vadd),
        Opcode::Vsub => Handler::Pure(video::vsub),
        Opcode::Vabsdiff => Handler::Pure(video::vabsdiff),
        Opcode::Vmin => Handler::Pure(video::vmin),
        Opcode::Vmax => Handler::Pure(video::vmax),
        Opcode::Vshl => Handler::Pure(video::vshl),
        Opcode::Vshr => Handler::Pure(video::vshr),
        Opcode::Vmad => Handler::Pure(video::vmad),
        Opcode::Vset => Handler::Pure(video::vset),
        Opcode::Vadd2 => Handler::Pure(video_simd::vadd::<2>),
        Opcode::Vsub2 => Handler::Pure(video_simd::vsub::<2>),
        Opcode::Vavrg2 => Handler::Pure(video_simd::vavrg::<2>),
        Opcode::Vabsdiff2 => Handler::Pure(video_simd::vabsdiff::<2>),
        Opcode::Vmin2 => Handler::Pure(video_simd::vmin::<2>),
        Opcode::Vmax2 => Handler::Pure(video_simd::vmax::<2>),
        Opcode::Vset2 => Handler::Pure(video_simd::vset::<2>),
        Opcode::Vadd4 => Handler::Pure(video_simd::vadd::<4>),
        Opcode::Vsub4 => Handler::Pure(video_simd::vsub::<4>),
        Opcode::Vavrg4 => Handler::Pure(video_simd::vavrg::<4>),
        Opcode::Vabsdiff4 => Handler::Pure(video_simd::vabsdiff::<4>),
        Opcode::Vmin4 => Handler::Pure(video_simd::vmin::<4>),
        Opcode::Vmax4 => Handler::Pure(video_simd::vmax::<4>),
        Opcode::Vset4 => Handler::Pure(video_simd::vset::<4>),

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
        | Opcode::Nanosleep
        | Opcode::Pmevent
        | Opcode::Setmaxnreg
        | Opcode::Griddepcontrol
        | Opcode::Brkpt => Handler::Machine(Machine::Nothing),
        Opcode::Stacksave => Handler::Machine(Machine::SaveStack),
        Opcode::Stackrestore => Handler::Machine(Machine::RestoreStack),
        Opcode::Alloca => Handler::Machine(Machine::Allocate),

        // Textures and surfaces.
        Opcode::Tex
        | Opcode::Tld4
        | Opcode::Txq
        | Opcode::Istypep
        | Opcode::Suld
        | Opcode::Sust
        | Opcode::Sured
        | Opcode::Suq => Handler::Refused,
        // Matrices.
        Opcode::Mma
        | Opcode::Ldmatrix
        | Opcode::Stmatrix
        | Opcode::Movmatrix
        | Opcode::WmmaLoad
        | Opcode::WmmaStore
        | Opcode::WmmaMma
        | Opcode::WgmmaMmaAsync
        | Opcode::WgmmaMmaAsyncSp
        | Opcode::WgmmaFence
        | Opcode::WgmmaCommitGroup
        | Opcode::WgmmaWaitGroup
        | Opcode::Tcgen05Alloc
        | Opcode::Tcgen05Dealloc
        | Opcode::Tcgen05RelinquishAllocPermit
        | Opcode::Tcgen05Ld
        | Opcode::Tcgen05LdRed
        | Opcode::Tcgen05St
        | Opcode::Tcgen05WaitLd
        | Opcode::Tcgen05WaitSt
        | Opcode::Tcgen05Cp
        | Opcode::Tcgen05Shift
        | Opcode::Tcgen05FenceBeforeThreadSync
        | Opcode::Tcgen05FenceAfterThreadSync
        | Opcode::Tcgen05Commit
        | Opcode::Tcgen05Mma
        | Opcode::Tcgen05MmaSp
        | Opcode::Tcgen05MmaWs
        | Opcode::Tcgen05MmaWsSp => Handler::Refused,
        // Asynchronous copies.
        Opcode::MbarrierInit
        | Opcode::MbarrierInval
        | Opcode::MbarrierExpectTx
        | Opcode::MbarrierCompleteTx
        | Opcode::MbarrierArrive
        | Opcode::MbarrierArriveDrop
        | Opcode::MbarrierTestWait
        | Opcode::MbarrierTryWait
        | Opcode::MbarrierPendingCount
        | Opcode::MbarrierCheckLayout
        | Opcode::CpAsync
        | Opcode::CpAsyncCommitGroup
        | Opcode::CpAsyncWaitGroup
        | Opcode::CpAsyncWaitAll
        | Opcode::CpAsyncMbarrierArrive
        | Opcode::CpAsyncBulk
        | Opcode::CpReduceAsyncBulk
        | Opcode::CpAsyncBulkPrefetch
        | Opcode::CpAsyncBulkCommitGroup
        | Opcode::CpAsyncBulkWaitGroup
        | Opcode::CpAsyncBulkTensor
        | Opcode::CpReduceAsyncBulkTensor
        | Opcode::CpAsyncBulkPrefetchTensor
        | Opcode::ApplypriorityAsyncBulk
        | Opcode::ApplypriorityAsyncBulkTensor
        | Opcode::TensormapReplace
        | Opcode::TensormapCpFenceproxy => Handler::Refused,
        // Clusters.
        Opcode::BarrierClusterArrive
        | Opcode::BarrierClusterWait
        | Opcode::Mapa
        | Opcode::Getctarank
        | Opcode::ClusterlaunchcontrolTryCancel
        | Opcode::ClusterlaunchcontrolQueryCancel
        | Opcode::StAsync
        | Opcode::StBulk
        | Opcode::RedAsync
        | Opcode::MultimemLdReduce
        | Opcode::MultimemSt
        | Opcode::MultimemRed
        | Opcode::MultimemStAsync
        | Opcode::MultimemRedAsync
        | Opcode::MultimemCpAsyncBulk
        | Opcode::MultimemCpReduceAsyncBulk => Handler::Refused,
    }
}

/// An instruction that integers share with floating-point numbers.
fn of_numbers(op: &Op, integers: Pure, floats: Pure) -> Handler {
    Handler::Pure(if float::is_float(op.ty) { floats } else { integers })
}

/// Whether an opcode sets the carry flag by its name alone.
pub(crate) fn writes_carry(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::AddCc | Opcode::SubCc)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pure::testing;
    use broadloom_ptx::Row;

    #[test]
    fn every_general_instruction_is_run_and_no_other() {
        for row in Row::all() {
            let is_run = !matches!(handler(&testing::op(row.name)), Handler::Refused);
            assert_eq!(is_run, row.class.is_general(), "{}", row.name);
        }
    }
}
