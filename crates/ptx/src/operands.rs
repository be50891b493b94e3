//! Traversal of the operands of an instruction, for reading and for changing them.
//!
//! Everything that an instruction names is a *mention*: operands and nested operands, addresses in brackets,
//! and callees. Mentions are visited in text order. They determine the registers that an instruction reads
//! and writes. The guard and the base register of an address are read. The form says which operands are
//! written. Nothing is known about an opaque instruction, so each of its registers counts as read and as
//! written.

use crate::ids::Reg;
use crate::inst::{Address, Base, Call, Callee, InstData, Operand, Symbol};
use crate::module::Init;

/// Part of an instruction that names something.
#[derive(Clone, Copy, Debug)]
pub enum Mention<'a> {
    /// Operand, before its nested operands, and whether it is written; `None` if that is unknown.
    Operand(&'a Operand, Option<bool>),
    /// Address in brackets: of memory, or of a texture.
    Address(&'a Address),
    /// Called function.
    Callee(&'a Callee),
}

/// Part of an instruction that names something, mutable.
#[derive(Debug)]
pub enum MentionMut<'a> {
    /// Operand, before its nested operands, and whether it is written; `None` if that is unknown.
    Operand(&'a mut Operand, Option<bool>),
    /// Address in brackets: of memory, or of a texture.
    Address(&'a mut Address),
    /// Called function.
    Callee(&'a mut Callee),
}

/// Selection among the registers of an instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RegisterSelection {
    Read,
    Written,
    All,
}

impl RegisterSelection {
    fn takes(self, written: Option<bool>) -> bool {
        self == RegisterSelection::All || written.is_none_or(|written| written == (self == RegisterSelection::Written))
    }
}

impl InstData {
    /// Returns the registers that it reads, guard first, in operand order.
    pub fn reads(&self) -> Vec<Reg> {
        let mut found = vec![];
        self.each_read(|reg| found.push(reg));
        found
    }

    /// Returns the registers that it writes, in operand order.
    pub fn writes(&self) -> Vec<Reg> {
        let mut found = vec![];
        self.each_written(|reg| found.push(reg));
        found
    }

    /// Calls `see` for each register that it reads, guard first, in operand order.
    pub fn each_read(&self, mut see: impl FnMut(Reg)) {
        see::registers(self, RegisterSelection::Read, &mut |reg| see(*reg));
    }

    /// Calls `see` for each register that it writes, in operand order.
    pub fn each_written(&self, mut see: impl FnMut(Reg)) {
        see::registers(self, RegisterSelection::Written, &mut |reg| see(*reg));
    }

    /// Changes the registers that it reads, guard first.
    pub fn change_reads(&mut self, mut change: impl FnMut(&mut Reg)) {
        change::registers(self, RegisterSelection::Read, &mut change);
    }

    /// Changes the registers that it writes.
    pub fn change_writes(&mut self, mut change: impl FnMut(&mut Reg)) {
        change::registers(self, RegisterSelection::Written, &mut change);
    }

    /// Changes all its registers, in text order.
    pub(crate) fn change_registers(&mut self, mut change: impl FnMut(&mut Reg)) {
        change::registers(self, RegisterSelection::All, &mut change);
    }

    /// Calls `see` for every mention, in text order.
    pub fn each_mention(&self, mut see: impl FnMut(Mention<'_>)) {
        see::mentions(self, &mut see);
    }

    /// Changes every mention, in text order. Operands that a change inserts are visited as well.
    pub fn change_mentions(&mut self, mut change: impl FnMut(MentionMut<'_>)) {
        change::mentions(self, &mut change);
    }

    /// Calls `see` for each symbol whose address it takes, in operands and in brackets. Callees are not
    /// included.
    pub fn each_symbol(&self, mut see: impl FnMut(Symbol)) {
        self.each_mention(|mention| mention.symbol().into_iter().for_each(|symbol| see(*symbol)));
    }

    /// Changes each symbol whose address it takes, in operands and in brackets. Callees are not included.
    pub fn change_symbols(&mut self, mut change: impl FnMut(&mut Symbol)) {
        self.change_mentions(|mention| mention.symbol().into_iter().for_each(&mut change));
    }

    /// Tests if a predicate holds for an operand or a nested operand.
    pub fn any_operand(&self, holds: impl Fn(&Operand) -> bool) -> bool {
        let mut found = false;
        self.each_mention(|mention| found |= matches!(mention, Mention::Operand(operand, _) if holds(operand)));
        found
    }

    /// Returns the memory addresses among its operands.
    pub fn addresses(&self) -> impl Iterator<Item = Address> + '_ {
        self.operands.iter().filter_map(|operand| if let Operand::Memory(address) = operand { Some(*address) } else { None })
    }

    /// Returns the first memory address, if any.
    pub fn address(&self) -> Option<Address> {
        self.addresses().next()
    }

    /// Returns the first address in brackets, of memory or of a texture.
    pub fn bracketed(&self) -> Option<Address> {
        self.operands.iter().find_map(|operand| match operand {
            Operand::Memory(address) => Some(*address),
            Operand::Texture(texture) => Some(texture.base),
            _ => None,
        })
    }

    /// Returns the bytes that one thread loads or stores: the size of the type times the longest vector
    /// length.
    pub fn accessed_bytes(&self) -> Option<u64> {
        let elements = self.operands.iter().map(|operand| operand.elements().len() as u64).max().unwrap_or(1);
        Some(elements * u64::from(self.types().next()?.bytes()))
    }

    /// Returns the operands that it writes.
    pub fn written(&self) -> impl Iterator<Item = &Operand> {
        let specs = self.form().map_or(&[][..], |form| form.operands);
        specs.iter().zip(&self.operands).filter(|(spec, _)| spec.written).map(|(_, operand)| operand)
    }

    /// Returns the operands of a `call`.
    pub fn call(&self) -> Option<&Call> {
        self.operands.iter().find_map(|operand| if let Operand::Call(call) = operand { Some(&**call) } else { None })
    }

    /// Returns the target of a call.
    pub fn callee(&self) -> Option<Callee> {
        self.call().map(|call| call.callee)
    }
}

impl Operand {
    /// Returns the elements of a vector, or the operand itself as a single element.
    pub fn elements(&self) -> &[Operand] {
        match self {
            Operand::Vector(list) => list,
            operand => std::slice::from_ref(operand),
        }
    }
}

impl Init {
    /// Calls `see` for each symbol whose address it contains.
    pub fn each_symbol(&self, see: &mut dyn FnMut(Symbol)) {
        match self {
            Init::Address { symbol, .. } => see(*symbol),
            Init::List(list) => list.iter().for_each(|init| init.each_symbol(see)),
            Init::Imm(_) | Init::Settings(_) => {}
        }
    }

    /// Changes each symbol whose address it contains.
    pub(crate) fn change_symbols(&mut self, change: &mut dyn FnMut(&mut Symbol)) {
        match self {
            Init::Address { symbol, .. } => change(symbol),
            Init::List(list) => list.iter_mut().for_each(|init| init.change_symbols(change)),
            Init::Imm(_) | Init::Settings(_) => {}
        }
    }
}

/// Defines the traversal for immutable and for mutable mentions.
macro_rules! walk {
    ($name:ident, $mention:ident, $iter:ident $(, $mutable:tt)?) => {
        impl<'a> $mention<'a> {
            /// Returns the symbol whose address it takes.
            pub fn symbol(self) -> Option<&'a $($mutable)? Symbol> {
                match self {
                    $mention::Operand(Operand::Symbol(symbol, _), _) => Some(symbol),
                    $mention::Address(Address { base: Base::Symbol(symbol), .. }) => Some(symbol),
                    $mention::Operand(..) | $mention::Address(_) | $mention::Callee(_) => None,
                }
            }

            fn register(self, which: RegisterSelection) -> Option<&'a $($mutable)? Reg> {
                match self {
                    $mention::Operand(Operand::Reg(reg) | Operand::Not(reg) | Operand::Part { reg, .. }, written) => {
                        which.takes(written).then_some(reg)
                    }
                    $mention::Address(Address { base: Base::Reg(reg), .. }) | $mention::Callee(Callee::Indirect { reg, .. }) => {
                        which.takes(Some(false)).then_some(reg)
                    }
                    $mention::Operand(..) | $mention::Address(_) | $mention::Callee(_) => None,
                }
            }
        }

        mod $name {
            use super::{InstData, Operand, $mention as Mention, Reg, RegisterSelection};

            type Visit<'v> = &'v mut dyn FnMut(Mention<'_>);

            pub(super) fn registers(data: &$($mutable)? InstData, which: RegisterSelection, visit: &mut dyn FnMut(&$($mutable)? Reg)) {
                if which != RegisterSelection::Written
                    && let Some(guard) = &$($mutable)? data.guard
                {
                    visit(&$($mutable)? guard.reg);
                }
                mentions(data, &mut |mention| {
                    if let Some(reg) = mention.register(which) {
                        visit(reg);
                    }
                });
            }

            pub(super) fn mentions(data: &$($mutable)? InstData, visit: Visit<'_>) {
                let specs = data.form().map(|form| form.operands);
                for (index, element) in data.operands.$iter().enumerate() {
                    let written = specs.map(|specs| specs.get(index).is_some_and(|spec| spec.written));
                    operand(element, written, visit);
                }
            }

            fn operand(operand: &$($mutable)? Operand, written: Option<bool>, visit: Visit<'_>) {
                visit(Mention::Operand(operand, written));
                match operand {
                    Operand::Vector(elements) => list(elements, written, visit),
                    Operand::Pair(elements) => list(&$($mutable)? elements[..], written, visit),
                    Operand::Memory(address) => visit(Mention::Address(address)),
                    Operand::Texture(texture) => {
                        visit(Mention::Address(&$($mutable)? texture.base));
                        list(&$($mutable)? texture.rest, Some(false), visit);
                    }
                    Operand::Call(call) => {
                        list(&$($mutable)? call.results, Some(true), visit);
                        visit(Mention::Callee(&$($mutable)? call.callee));
                        list(&$($mutable)? call.arguments, Some(false), visit);
                    }
                    Operand::Reg(_) | Operand::Not(_) | Operand::Part { .. } | Operand::Imm(_) | Operand::Special(_) => {}
                    Operand::Symbol(..) | Operand::Label(_) | Operand::Targets(_) | Operand::Sink | Operand::Absent => {}
                }
            }

            fn list(operands: &$($mutable)? [Operand], written: Option<bool>, visit: Visit<'_>) {
                for element in operands.$iter() {
                    operand(element, written, visit);
                }
            }
        }
    };
}

walk!(see, Mention, iter);
walk!(change, MentionMut, iter_mut, mut);
