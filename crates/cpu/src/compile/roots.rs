//! Kernel parameters that addresses are derived from, and non-temporal stores.
//!
//! A store that fills whole lines of an array that the kernel does not read need not load those lines into
//! the cache first. That pays only if the launch touches more memory than the cache holds; the runtime
//! decides it ([`crate::abi::Warp::streams`]). A store of the whole warp with `.cs` is non-temporal in any
//! launch. Non-temporal stores may become visible late, so kernels whose blocks communicate have none.

use super::emitter::Emitter;
use super::state::{NonTemporalArrays, Root};
use broadloom_ptx::{Base, Class, Effects, Function, Imm, InstData, Opcode, Operand, Reg, Space, Type};
use std::collections::{HashMap, HashSet};

/// Most words of an element that lies next to others: a pixel, a record.
const FEW_COMPONENTS: i64 = 4;

impl Emitter<'_> {
    /// Analyses all accesses of the kernel.
    pub(crate) fn find_streams(&self) -> NonTemporalArrays {
        let function = self.function;
        let mut streams = NonTemporalArrays::default();
        if function.instructions().any(|(_, inst)| meets_others(inst)) {
            return streams;
        }
        streams.are_free = true;
        let mut read: HashMap<Root, u64> = HashMap::new();
        let mut written: HashMap<Root, u64> = HashMap::new();
        for (_, inst) in function.instructions() {
            let (load, store) = (inst.opcode() == Some(Opcode::Ld), inst.opcode() == Some(Opcode::St));
            let Some(address) = inst.address() else { continue };
            let space = self.space_of(inst, &address);
            if !(load || store) || !matches!(space, Space::Global | Space::Generic) {
                continue;
            }
            let Base::Reg(reg) = address.base else { continue };
            let bytes = inst.accessed_bytes().unwrap_or(4);
            let roots = self.roots(reg);
            // Non-temporal stores occupy the buffers that scattered loads wait for. The rotation of an image
            // took twice as long with them.
            let is_anywhere = !self.is_kept_as_scalar(reg) && (self.is_loaded(reg) || self.is_rounded(reg));
            if load && (roots.is_empty() || is_anywhere) {
                return streams;
            }
            for root in roots {
                if load {
                    let most = read.entry(root).or_default();
                    *most = bytes.max(*most);
                } else {
                    *written.entry(root).or_default() += bytes;
                }
            }
        }
        streams.written = written.keys().filter(|root| !read.contains_key(*root)).copied().collect();
        if !streams.written.is_empty() {
            streams.thread_bytes = read.values().chain(written.values()).sum();
        }
        streams
    }

    /// Returns whether a store through a register goes to a write-only array.
    pub(crate) fn is_streamed(&self, reg: Reg) -> bool {
        if self.streams.written.is_empty() {
            return false;
        }
        let roots = self.roots(reg);
        !roots.is_empty() && roots.iter().all(|root| self.streams.written.contains(root))
    }

    /// Returns the parameters that an address may be derived from; none if that is unknown.
    pub(super) fn roots(&self, reg: Reg) -> HashSet<Root> {
        let mut found = HashSet::new();
        let (mut work, mut seen) = (vec![reg], HashSet::new());
        while let Some(reg) = work.pop() {
            if !seen.insert(reg) || self.function.regs[reg].ty.bits() != 64 {
                continue;
            }
            let Some(inst) = self.definition(reg) else {
                work.extend(arguments(self.function, reg));
                continue;
            };
            let is = |opcodes: &[Opcode]| inst.opcode().is_some_and(|opcode| opcodes.contains(&opcode));
            if is(&[Opcode::Ld]) {
                if inst.space() != Space::Param {
                    return HashSet::new();
                }
                found.extend(inst.operands.iter().filter_map(|operand| match operand {
                    Operand::Memory(address) => match address.base {
                        Base::Symbol(symbol) => Some((symbol, address.offset)),
                        Base::Reg(_) | Base::Absolute => None,
                    },
                    _ => None,
                }));
            } else if is(&[Opcode::Add, Opcode::Sub, Opcode::Mov, Opcode::Cvta, Opcode::CvtaTo, Opcode::Selp]) {
                work.extend(inst.reads());
            } else if is(&[Opcode::Mad])
                && let Some(Operand::Reg(reg)) = inst.operands.get(3)
            {
                // The product is an offset.
                work.push(*reg);
            }
        }
        found
    }

    /// Returns the uniform registers that an address is a sum of, such as the start of a row.
    pub(super) fn bases(&self, reg: Reg) -> HashSet<Reg> {
        let mut found = HashSet::new();
        let (mut work, mut seen) = (vec![reg], HashSet::new());
        while let Some(reg) = work.pop() {
            if !seen.insert(reg) || self.function.regs[reg].ty.bits() != 64 {
                continue;
            }
            match self.definition(reg) {
                Some(inst) if !self.is_kept_as_scalar(reg) => work.extend(inst.reads()),
                _ => {
                    found.insert(reg);
                }
            }
        }
        found
    }

    /// Returns whether an address depends on loaded values. Nothing is then known about the lanes' addresses.
    pub(crate) fn is_loaded(&self, reg: Reg) -> bool {
        self.depends(reg, is_load)
    }

    /// Returns whether an address depends on rounded floats. Such addresses are computed and scattered.
    pub(super) fn is_rounded(&self, reg: Reg) -> bool {
        self.depends(reg, is_rounded)
    }

    /// Returns whether lanes have rows of their own: a loaded or rounded value is multiplied by the length of a row, as in
    /// an image that is turned. Such addresses are seldom close together.
    pub(super) fn has_rows(&self, reg: Reg) -> bool {
        self.any_varying(reg, |inst| match is_load(inst) || is_rounded(inst) || !inst.effects().is_pure() {
            true => Some(false),
            false => self.is_row(inst).then_some(true),
        })
    }

    /// Returns whether an instruction multiplies a value that was loaded or rounded in each lane by more than a few.
    fn is_row(&self, inst: &InstData) -> bool {
        let [_, a, b, ..] = inst.operands.as_slice() else { return false };
        let is_own = |value: &Operand| match value {
            Operand::Reg(reg) => self.depends(*reg, |inst| is_load(inst) || is_rounded(inst)),
            _ => false,
        };
        let is_few = |by: &Operand, most: i64| matches!(by, Operand::Imm(Imm::Int(by)) if by.abs() <= most);
        let is_product = matches!(inst.opcode(), Some(Opcode::Mul | Opcode::Mad));
        let is_shift = inst.opcode() == Some(Opcode::Shl);
        is_product && (is_own(a) && !is_few(b, FEW_COMPONENTS) || is_own(b) && !is_few(a, FEW_COMPONENTS))
            || is_shift && is_own(a) && !is_few(b, FEW_COMPONENTS.ilog2().into())
    }

    /// Returns whether the varying part of a register depends on an instruction that satisfies `on`, or on
    /// one with effects.
    fn depends(&self, reg: Reg, on: fn(&InstData) -> bool) -> bool {
        self.any_varying(reg, |inst| match inst.effects().is_pure() {
            _ if on(inst) => Some(true),
            _ if inst.opcode() == Some(Opcode::Ld) && inst.space() == Space::Param => Some(false),
            true => None,
            false => Some(true),
        })
    }

    /// Looks for an instruction that the varying part of a register is computed by. `is_found` answers for one of them; without an
    /// answer its operands are looked at.
    fn any_varying(&self, reg: Reg, is_found: impl Fn(&InstData) -> Option<bool>) -> bool {
        let (mut work, mut seen) = (vec![reg], HashSet::new());
        while let Some(reg) = work.pop() {
            if !seen.insert(reg) || self.shapes.shape(reg).is_uniform() {
                continue;
            }
            let Some(inst) = self.definition(reg) else {
                work.extend(arguments(self.function, reg));
                continue;
            };
            match is_found(inst) {
                Some(true) => return true,
                Some(false) => {}
                None => work.extend(inst.reads()),
            }
        }
        false
    }
}

/// Returns whether an instruction orders memory, or makes earlier writes visible to threads of other blocks.
fn meets_others(inst: &InstData) -> bool {
    let effects = inst.effects();
    inst.is_ordered()
        || inst.is_atomic() && inst.space() != Space::Shared
        || inst.class() == Some(Class::Fence)
        || effects.has(Effects::CALL)
}

/// Returns whether an instruction reads memory.
fn is_load(inst: &InstData) -> bool {
    inst.opcode() == Some(Opcode::Ld) && inst.space() != Space::Param
}

/// Returns whether an instruction converts a float to an integer, as computed indices do.
fn is_rounded(inst: &InstData) -> bool {
    let mut types = inst.types();
    inst.opcode() == Some(Opcode::Cvt) && types.next().is_some_and(|to| !to.is_float()) && types.any(Type::is_float)
}

/// Returns the arguments of a block parameter on all edges to the block.
fn arguments(function: &Function, param: Reg) -> Vec<Reg> {
    let place = function.blocks.iter().find_map(|(block, data)| {
        let index = data.params.iter().position(|other| *other == param)?;
        Some((block, index))
    });
    let Some((block, index)) = place else { return vec![] };
    let edges = function.blocks.values().flat_map(|data| &data.edges).filter(|edge| edge.target == block);
    edges.filter_map(|edge| edge.args.get(index).copied()).collect()
}
