//! Which parameter of a kernel an address comes from, and what follows for stores.
//!
//! A store that fills whole lines of an array that the kernel does not read need not bring those lines into the cache first. Whether
//! that pays depends on how much a launch touches, which the runtime says ([`crate::abi::Warp::streams`]): only when it is more than
//! the cache holds. A store of the whole warp that says itself that nobody reads it soon (`.cs`) goes around the cache in any launch. Such stores may become visible late, so kernels
//! whose blocks talk to each other have none.

use super::emit::Emitter;
use broadloom_ptx::{Base, Class, Effects, Function, InstData, Opcode, Operand, Reg, Space, Symbol, Type};
use std::collections::{HashMap, HashSet};

/// A parameter by its name and the offset in it.
type Root = (Symbol, i64);

/// Arrays that are only written, whole rows at a time.
#[derive(Default)]
pub(crate) struct Streams {
    written: HashSet<Root>,
    /// What a thread touches of all arrays, in bytes; 0 when nothing is streamed.
    pub(crate) thread_bytes: u64,
    /// Whether no thread of another block looks at what is stored before the launch is over.
    pub(crate) are_free: bool,
}

impl Emitter<'_> {
    /// Looks at all accesses of the kernel.
    pub(crate) fn find_streams(&self) -> Streams {
        let function = self.function;
        let mut streams = Streams::default();
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
            // Stores around the cache hold the buffers that loads from anywhere wait for: an image that is turned took twice as long.
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

    /// Whether a store through a register goes to an array that is only written.
    pub(crate) fn is_streamed(&self, reg: Reg) -> bool {
        if self.streams.written.is_empty() {
            return false;
        }
        let roots = self.roots(reg);
        !roots.is_empty() && roots.iter().all(|root| self.streams.written.contains(root))
    }

    /// The parameters that an address may have been made from; none when that cannot be told.
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

    /// Whether an address depends on what lanes loaded: then nothing is known of where they go.
    pub(crate) fn is_loaded(&self, reg: Reg) -> bool {
        self.depends(reg, is_load)
    }

    /// Whether an address depends on what lanes rounded: places that were computed, and lie anywhere.
    pub(super) fn is_rounded(&self, reg: Reg) -> bool {
        self.depends(reg, is_rounded)
    }

    /// Whether what lanes have of their own in a register comes from a certain instruction, or from one with effects.
    fn depends(&self, reg: Reg, on: fn(&InstData) -> bool) -> bool {
        let (mut work, mut seen) = (vec![reg], HashSet::new());
        while let Some(reg) = work.pop() {
            if !seen.insert(reg) || self.shapes.shape(reg).is_uniform() {
                continue;
            }
            match self.definition(reg) {
                None => work.extend(arguments(self.function, reg)),
                Some(inst) if on(inst) => return true,
                Some(inst) if inst.opcode() == Some(Opcode::Ld) && inst.space() == Space::Param => {}
                Some(inst) if inst.effects().is_pure() => work.extend(inst.reads()),
                Some(_) => return true,
            }
        }
        false
    }
}

/// Whether an instruction orders memory, or lets threads of other blocks see what was done before.
fn meets_others(inst: &InstData) -> bool {
    let effects = inst.effects();
    inst.is_ordered()
        || inst.is_atomic() && inst.space() != Space::Shared
        || inst.class() == Some(Class::Fence)
        || effects.has(Effects::CALL)
}

/// Whether an instruction reads memory.
fn is_load(inst: &InstData) -> bool {
    inst.opcode() == Some(Opcode::Ld) && inst.space() != Space::Param
}

/// Whether an instruction makes an integer of a float: a place that was computed.
fn is_rounded(inst: &InstData) -> bool {
    let mut types = inst.types();
    inst.opcode() == Some(Opcode::Cvt) && types.next().is_some_and(|to| !to.is_float()) && types.any(Type::is_float)
}

/// What a parameter of a block gets on all ways to it.
fn arguments(function: &Function, param: Reg) -> Vec<Reg> {
    let place = function.blocks.iter().find_map(|(block, data)| {
        let index = data.params.iter().position(|other| *other == param)?;
        Some((block, index))
    });
    let Some((block, index)) = place else { return vec![] };
    let edges = function.blocks.values().flat_map(|data| &data.edges).filter(|edge| edge.target == block);
    edges.filter_map(|edge| edge.args.get(index).copied()).collect()
}
