//! Table from instructions to functions: one line each.

use crate::float::{self, approx, order, sign};
use crate::function::{Function, One, Outcome};
use crate::mbarrier::Mbarrier;
use crate::{Inputs, Operation, arith, bits, carry, compare, convert_float, convert_int, dot, video, video_simd};
use broadloom_ptx::{Modifier, Opcode, opcodes};

impl Operation {
    /// Returns the function of its inputs. Returns `None` if the instruction is more than that: if it needs
    /// memory, other threads or the machine, or is a branch.
    pub fn function(&self) -> Option<Function> {
        function(self)
    }

    /// Evaluates the instruction for some inputs and the carry flag; returns `None` like
    /// [`Operation::function`].
    pub fn evaluate(&self, inputs: &Inputs, carry: bool) -> Option<Outcome> {
        Some(match self.function()? {
            Function::One(run) => Outcome::One(run(self, inputs)),
            Function::Pair(run) => Outcome::Pair(run(self, inputs)),
            Function::Carry(run) => {
                let (value, flag) = run(self, inputs, carry);
                Outcome::Carry(value, if self.writes_carry() { flag } else { carry })
            }
        })
    }
}

fn function(op: &Operation) -> Option<Function> {
    Some(match op.opcode {
        Opcode::Add => of_numbers(op, arith::add, float::arith::add),
        Opcode::Sub => of_numbers(op, arith::sub, float::arith::sub),
        Opcode::Mul => of_numbers(op, arith::mul, float::arith::mul),
        Opcode::Mad if op.has(Modifier::Cc) => Function::Carry(carry::mad_cc),
        Opcode::Mad => of_numbers(op, arith::mad, float::arith::fma),
        Opcode::Div => of_numbers(op, arith::div, float::arith::div),
        Opcode::Abs => of_numbers(op, arith::abs, sign::abs),
        Opcode::Neg => of_numbers(op, arith::neg, sign::neg),
        Opcode::Min => of_numbers(op, arith::min, order::min),
        Opcode::Max => of_numbers(op, arith::max, order::max),

        Opcode::Fma => Function::One(float::arith::fma),
        Opcode::Rcp => Function::One(float::arith::rcp),
        Opcode::Sqrt => Function::One(float::arith::sqrt),
        Opcode::Rsqrt => Function::One(approx::rsqrt),
        Opcode::Sin => Function::One(approx::sin),
        Opcode::Cos => Function::One(approx::cos),
        Opcode::Lg2 => Function::One(approx::lg2),
        Opcode::Ex2 => Function::One(approx::ex2),
        Opcode::Tanh => Function::One(approx::tanh),
        Opcode::Testp => Function::One(sign::testp),
        Opcode::Copysign => Function::One(sign::copysign),

        Opcode::Rem => Function::One(arith::rem),
        Opcode::Sad => Function::One(arith::sad),
        Opcode::Mul24 => Function::One(arith::mul24),
        Opcode::Mad24 => Function::One(arith::mad24),
        Opcode::Dp4a => Function::One(dot::dp4a),
        Opcode::Dp2a => Function::One(dot::dp2a),
        Opcode::Clmad => Function::One(dot::clmad),

        Opcode::AddCc => Function::Carry(carry::add_cc),
        Opcode::Addc => Function::Carry(carry::addc),
        Opcode::SubCc => Function::Carry(carry::sub_cc),
        Opcode::Subc => Function::Carry(carry::subc),
        Opcode::Madc => Function::Carry(carry::madc),

        Opcode::Setp => Function::Pair(compare::setp(&op.modifiers)),
        Opcode::Set => Function::One(compare::set),
        Opcode::Selp => Function::One(compare::selp),
        Opcode::Slct => Function::One(compare::slct),

        Opcode::And => Function::One(bits::and),
        Opcode::Or => Function::One(bits::or),
        Opcode::Xor => Function::One(bits::xor),
        Opcode::Not => Function::One(bits::not),
        Opcode::Cnot => Function::One(bits::cnot),
        Opcode::Lop3 if op.results == 2 => Function::Pair(bits::lop3_bool),
        Opcode::Lop3 => Function::One(bits::lop3),
        Opcode::Shl => Function::One(bits::shl),
        Opcode::Shr => Function::One(bits::shr),
        Opcode::Shf => Function::One(bits::shf),
        Opcode::Popc => Function::One(bits::popc),
        Opcode::Clz => Function::One(bits::clz),
        Opcode::Bfind => Function::One(bits::bfind),
        Opcode::Fns => Function::One(bits::fns),
        Opcode::Brev => Function::One(bits::brev),
        Opcode::Bfe => Function::One(bits::bfe),
        Opcode::Bfi => Function::One(bits::bfi),
        Opcode::Szext => Function::One(bits::szext),
        Opcode::Bmsk => Function::One(bits::bmsk),
        Opcode::Prmt => Function::One(bits::prmt),

        Opcode::Cvt if op.ty.is_integer() && op.source_ty.is_integer() => Function::One(convert_int::cvt),
        Opcode::Cvt => Function::One(convert_float::cvt(op)),
        Opcode::CvtPack => Function::One(convert_int::cvt_pack),

        Opcode::MbarrierPendingCount => Function::One(|_, inputs| u64::from(Mbarrier::pending_count(inputs[0]))),

        Opcode::Vadd => Function::One(video::vadd),
        Opcode::Vsub => Function::One(video::vsub),
        Opcode::Vabsdiff => Function::One(video::vabsdiff),
        Opcode::Vmin => Function::One(video::vmin),
        Opcode::Vmax => Function::One(video::vmax),
        Opcode::Vshl => Function::One(video::vshl),
        Opcode::Vshr => Function::One(video::vshr),
        Opcode::Vmad => Function::One(video::vmad),
        Opcode::Vset => Function::One(video::vset),
        Opcode::Vadd2 => Function::One(video_simd::vadd::<2>),
        Opcode::Vsub2 => Function::One(video_simd::vsub::<2>),
        Opcode::Vavrg2 => Function::One(video_simd::vavrg::<2>),
        Opcode::Vabsdiff2 => Function::One(video_simd::vabsdiff::<2>),
        Opcode::Vmin2 => Function::One(video_simd::vmin::<2>),
        Opcode::Vmax2 => Function::One(video_simd::vmax::<2>),
        Opcode::Vset2 => Function::One(video_simd::vset::<2>),
        Opcode::Vadd4 => Function::One(video_simd::vadd::<4>),
        Opcode::Vsub4 => Function::One(video_simd::vsub::<4>),
        Opcode::Vavrg4 => Function::One(video_simd::vavrg::<4>),
        Opcode::Vabsdiff4 => Function::One(video_simd::vabsdiff::<4>),
        Opcode::Vmin4 => Function::One(video_simd::vmin::<4>),
        Opcode::Vmax4 => Function::One(video_simd::vmax::<4>),
        Opcode::Vset4 => Function::One(video_simd::vset::<4>),

        opcodes!(other) => return None,
    })
}

/// Returns the function of an instruction that integers and floats share.
fn of_numbers(op: &Operation, integers: One, floats: One) -> Function {
    Function::One(if float::is_float(op.ty) { floats } else { integers })
}
