//! Pure instructions drawn from the table.

use crate::config::Config;
use crate::pools::{Pool, pool_of};
use broadloom_ptx::table::{Length, OperandKind, OperandSpec, Presence, TypeRule};
use broadloom_ptx::{Class, Exactness, Form, FormId, IsaVersion, Modifier, Opcode, Row, Type, TypeKind};
use broadloom_random::Random;

/// Returns whether instructions of a class are functions of their operands and independent of others. The
/// carry flag is set by one instruction and read by another: chains have a separate template.
fn is_pure(class: Class) -> bool {
    class.is_function() && class != Class::Carry || class == Class::Move
}

/// Returns whether a target has a form.
pub(crate) fn is_there(form: &Form, config: &Config) -> bool {
    form.only.is_none() && form.sm <= config.sm && form.isa <= IsaVersion::new(config.isa.0, config.isa.1)
}

/// Returns whether machines implement a form as the manual says, and the manual defines it completely.
fn is_portable(form: &Form) -> bool {
    let takes = |modifier: Modifier| form.slots.iter().any(|slot| slot.choices.contains(&modifier));
    match form.opcode {
        Opcode::Fns => false,
        Opcode::Cvt => {
            let flushes_to_half = takes(Modifier::Ftz) && takes(Modifier::F16);
            let saturates_double = takes(Modifier::Sat) && takes(Modifier::F64);
            !takes(Modifier::Tf32) && !flushes_to_half && !saturates_double
        }
        opcode => opcode.row().class != Class::Video || opcode.name().ends_with(['2', '4']),
    }
}

/// Returns whether machines agree on a form with the chosen types, in the order of the form.
fn are_portable(opcode: Opcode, mut types: impl Iterator<Item = Type>) -> bool {
    match opcode {
        // For a constant operand, the assembler folds a shift by more than the width differently from the
        // machine.
        Opcode::Shl | Opcode::Shr => types.all(|ty| ty.bytes() != 2),
        // Machines do not truncate positions to 8 bits.
        Opcode::Bfe | Opcode::Bfi => types.all(|ty| ty.bytes() != 8),
        // The assembler keeps the absolute value of the smallest number in 32 bits, where it is another
        // number.
        Opcode::Abs => types.all(|ty| ty != Type::S16),
        // The assembler treats a half result as a truth value. A sign or a conversion after it is folded as
        // that of the number 0 or 1, so that -0 becomes 0, and the bits of one half format are not those of
        // the other.
        Opcode::Set => types.next().is_none_or(|ty| !matches!(ty, Type::F16 | Type::Bf16)),
        _ => true,
    }
}

/// Returns whether the assembler emits one instruction for it, so that a guard applies to all of it.
pub(crate) fn may_be_guarded(form: &Form) -> bool {
    let takes = |modifier: Modifier| form.slots.iter().any(|slot| slot.choices.contains(&modifier));
    // Two comparisons with two results: the second sees the guard that the first may have written.
    let pair = form.opcode == Opcode::Setp && (takes(Modifier::F16x2) || takes(Modifier::Bf16x2));
    let narrows = form.opcode == Opcode::Cvt && takes(Modifier::Bf16);
    let several = matches!(form.opcode, Opcode::Set | Opcode::Testp | Opcode::Slct) || pair || narrows;
    !several && form.opcode.row().class != Class::Video
}

/// Returns the forms that can be drawn.
pub(crate) fn drawable(config: &Config) -> Vec<FormId> {
    let rows = Row::all().iter().filter(|row| is_pure(row.class) && row.effects.is_pure());
    rows.flat_map(Row::forms)
        .filter(|id| {
            let form = id.get();
            is_there(form, config)
                && (!config.portable || is_portable(form))
                && !form.slots.iter().any(|slot| slot.choices.contains(&Modifier::Cc))
                && (config.approximate || form.exactness == Exactness::Exact)
                && form.operands.iter().all(|spec| {
                    matches!(spec.kind, OperandKind::Value | OperandKind::Immediate | OperandKind::Negatable)
                        && matches!(spec.length, Length::One | Length::Parts)
                })
        })
        .collect()
}

/// Function that names a written operand: a register of a pool, none twice in one instruction.
pub(crate) type DestinationName<'a> = &'a mut dyn FnMut(&'static Pool, &mut Random) -> String;

/// Returns an instruction of a form as text, without its `;`. Returns `None` if the selected modifiers have
/// no registers here, or are not wanted.
pub(crate) fn instantiate(form: &Form, config: &Config, random: &mut Random, written: DestinationName<'_>) -> Option<String> {
    let mut text = form.opcode.name().to_owned();
    let mut chosen: Vec<Option<Modifier>> = vec![];
    for slot in form.slots {
        let modifier = if slot.optional && random.one_in(2) { None } else { Some(*random.pick(slot.choices)) };
        if let Some(modifier) = modifier {
            text.push('.');
            text.push_str(modifier.text());
        }
        chosen.push(modifier);
    }
    if config.portable && !are_portable(form.opcode, chosen.iter().flatten().filter_map(|modifier| modifier.ty())) {
        return None;
    }
    let mut separator = " ";
    let mut left_out = false;
    let mut sources: Vec<String> = vec![];
    for spec in form.operands {
        match spec.presence {
            Presence::Required => {}
            Presence::Optional => {
                left_out = random.one_in(2);
                if left_out && spec.paired {
                    left_out = false;
                    continue;
                }
            }
            Presence::WithPrevious => {}
        }
        if left_out {
            break;
        }
        text.push_str(if spec.paired { "|" } else { separator });
        separator = ", ";
        let mut name = operand(form.opcode, spec, config, &chosen, random, written)?;
        // An assembler simplifies instructions with equal sources, and NaNs then pass unchanged.
        for _ in 0..4 {
            if spec.written || !sources.contains(&name) {
                break;
            }
            name = operand(form.opcode, spec, config, &chosen, random, written)?;
        }
        text.push_str(&name);
        sources.push(name);
    }
    Some(text)
}

fn operand(
    opcode: Opcode,
    spec: &OperandSpec,
    config: &Config,
    chosen: &[Option<Modifier>],
    random: &mut Random,
    written: DestinationName<'_>,
) -> Option<String> {
    let slot = |index: u8| chosen[usize::from(index)].and_then(Modifier::ty);
    let ty = match spec.ty {
        TypeRule::Fixed(ty) => ty,
        TypeRule::Slot(index) => slot(index)?,
        TypeRule::Wide(index) => slot(index)?.widened()?,
        TypeRule::Untyped => return None,
    };
    if spec.length == Length::Parts {
        return parts(spec, ty, random, written);
    }
    let pool = pool_of(ty, spec.wider)?;
    if spec.written {
        return Some(written(pool, random));
    }
    match spec.kind {
        OperandKind::Immediate => return Some(immediate(opcode, random)),
        OperandKind::Negatable => {
            let bang = if random.one_in(3) { "!" } else { "" };
            return Some(format!("{bang}{}", pool.pick(random)));
        }
        _ => {}
    }
    let class = opcode.row().class;
    if class == Class::Video && !opcode.name().ends_with(['2', '4']) && matches!(spec.name, "a" | "b") && random.one_in(2) {
        let selector = *random.pick(&["b0", "b1", "b2", "b3", "h0", "h1"]);
        return Some(format!("{}.{selector}", pool.pick(random)));
    }
    let takes_immediate =
        class != Class::Video && matches!(ty.kind(), TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed | TypeKind::Float);
    if takes_immediate && !spec.wider && random.one_in(5) {
        return Some(match ty {
            Type::F32 => format!("0f{:08X}", random.finite32()),
            Type::F64 => format!("0d{:08X}{:08X}", random.finite32(), random.corner32()),
            // Positions and lengths of bit fields are bytes. With a position outside the word the assembler
            // treats every number as negative.
            Type::U32
                if config.portable && opcode == Opcode::Bfe && spec.name == "b" && chosen.contains(&Some(Modifier::S32)) =>
            {
                (random.below(256) % 32).to_string()
            }
            Type::U32 if matches!(opcode, Opcode::Bfe | Opcode::Bfi) => random.below(256).to_string(),
            Type::F16 | Type::Bf16 | Type::B128 => pool.pick(random),
            ty if ty.bits() == 16 => format!("{}", random.corner32() as u16 as i16),
            ty if ty.bits() == 64 => format!("{}", i64::from(random.corner32() as i32)),
            _ => format!("{}", random.corner32() as i32),
        });
    }
    Some(pool.pick(random))
}

/// Returns an immediate that every instruction with an immediate-only operand accepts.
fn immediate(opcode: Opcode, random: &mut Random) -> String {
    match opcode {
        Opcode::Lop3 => random.below(256).to_string(),
        _ => random.below(16).to_string(),
    }
}

/// Returns `{a, b}` that together have the width of the type.
fn parts(spec: &OperandSpec, ty: Type, random: &mut Random, written: DestinationName<'_>) -> Option<String> {
    let (part, count) = match ty.bits() {
        32 => (Type::B16, 2),
        64 if random.one_in(2) => (Type::B16, 4),
        64 => (Type::B32, 2),
        _ => return None,
    };
    let pool = pool_of(part, false)?;
    let names: Vec<String> = (0..count).map(|_| if spec.written { written(pool, random) } else { pool.pick(random) }).collect();
    Some(format!("{{{}}}", names.join(", ")))
}
