//! Dispatch of an instruction to the code that emits it.

use super::emitter::{Emitter, TranslationError, TranslationResult};
use super::moves::is_computed;
use broadloom_ptx::{InstData, Opcode, opcodes};

impl Emitter<'_> {
    /// Emits an instruction that does not end its block.
    pub(crate) fn instruction(&mut self, inst: &InstData) -> TranslationResult<()> {
        let opcode = inst.opcode().ok_or_else(|| TranslationError("an opaque instruction".into()))?;
        if is_computed(inst) {
            return self.compute(inst);
        }
        self.machine(opcode, inst)
    }

    /// Emits an instruction that needs memory, other threads or the machine.
    fn machine(&mut self, opcode: Opcode, inst: &InstData) -> TranslationResult<()> {
        match opcode {
            Opcode::Ld | Opcode::Ldu => self.load(inst),
            Opcode::St => self.store(inst),
            Opcode::Atom | Opcode::Red => self.atomic(inst),
            Opcode::Call => self.call(inst),
            Opcode::Bar | Opcode::Barrier => self.barrier(inst),
            Opcode::Shfl | Opcode::ShflSync => self.warp_operation(inst, Self::shuffle),
            Opcode::Vote | Opcode::VoteSync => self.warp_operation(inst, Self::vote),
            Opcode::MatchAnySync => self.warp_operation(inst, Self::match_any),
            Opcode::MatchAllSync => self.warp_operation(inst, Self::match_all),
            Opcode::ReduxSync => self.warp_operation(inst, Self::redux),
            Opcode::ElectSync => self.warp_operation(inst, Self::elect),
            Opcode::Activemask => self.warp_operation(inst, Self::active_mask),
            Opcode::BarWarpSync => self.warp_operation(inst, Self::warp_barrier),
            Opcode::Membar | Opcode::Fence => {
                self.ir.fence();
                Ok(())
            }
            Opcode::MembarProxy | Opcode::FenceProxy => {
                self.ir.compiler_fence();
                Ok(())
            }
            Opcode::Nanosleep => {
                self.pause();
                Ok(())
            }
            Opcode::Prefetch => self.prefetch(inst),
            Opcode::Prefetchu
            | Opcode::Applypriority
            | Opcode::Discard
            | Opcode::Pmevent
            | Opcode::Setmaxnreg
            | Opcode::Griddepcontrol
            | Opcode::Brkpt => Ok(()),
            Opcode::CreatepolicyRange | Opcode::CreatepolicyFractional | Opcode::CreatepolicyCvt => {
                for (operand, ty) in self.written(inst) {
                    let zero = self.constant(0, ty, true);
                    self.assign(&operand, ty, zero)?;
                }
                Ok(())
            }
            Opcode::MbarrierInit
            | Opcode::MbarrierInval
            | Opcode::MbarrierExpectTx
            | Opcode::MbarrierCompleteTx
            | Opcode::MbarrierArrive
            | Opcode::MbarrierArriveDrop
            | Opcode::MbarrierTestWait
            | Opcode::MbarrierTryWait
            | Opcode::MbarrierCheckLayout => self.mbarrier(opcode, inst),
            Opcode::BarrierClusterArrive | Opcode::BarrierClusterWait => self.cluster_barrier(opcode, inst),
            Opcode::StAsync | Opcode::RedAsync => self.access_async(opcode, inst),
            Opcode::StBulk => self.store_bulk(inst),
            Opcode::Mma
            | Opcode::Ldmatrix
            | Opcode::Stmatrix
            | Opcode::Movmatrix
            | Opcode::WmmaLoad
            | Opcode::WmmaStore
            | Opcode::WmmaMma => self.matrix(opcode, inst),
            Opcode::Tex | Opcode::Tld4 | Opcode::Txq | Opcode::Suld | Opcode::Sust | Opcode::Sured | Opcode::Suq => {
                self.image(opcode, inst)
            }
            Opcode::Stacksave | Opcode::Stackrestore => self.stack_top(inst),
            Opcode::Alloca => self.allocate_on_stack(inst),
            // A kernel that reaches one of the first is rejected before this point, and copies are lowered.
            opcodes!(refused)
            | Opcode::CpAsync
            | Opcode::CpAsyncCommitGroup
            | Opcode::CpAsyncWaitGroup
            | Opcode::CpAsyncWaitAll
            | Opcode::CpAsyncMbarrierArrive => Err(TranslationError(format!("`{}`", opcode.name()))),
            // These end a block.
            Opcode::Bra | Opcode::BrxIdx | Opcode::Ret | Opcode::Exit | Opcode::Trap => {
                Err(TranslationError(format!("`{}` inside of a block", opcode.name())))
            }
            // These are computed from registers. A form that `eval` does not have is unknown.
            Opcode::Mov
            | Opcode::Cvta
            | Opcode::CvtaTo
            | Opcode::Isspacep
            | Opcode::Mapa
            | Opcode::Getctarank
            | opcodes!(function) => Err(TranslationError(format!("`{}`", inst.mnemonic_text()))),
        }
    }
}
