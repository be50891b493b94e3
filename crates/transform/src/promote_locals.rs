//! `promote_locals`: promotes variables in `.local` memory to registers.
//!
//! **In**: register form. **Out**: register form. Keeps the result of every load; removes the memory.
//! Compilers put variables into memory when they do not optimise, and inlined calls pass their arguments
//! there.
//!
//! A variable can be promoted if its address does not escape. Each register that holds its address must be
//! written once, as the address plus a constant (`mov`, `add` of a number, `cvta.local`, `cvta.to.local`). It
//! may be read only for that, or as the address of a plain load or store of the right space. The accessed
//! pieces of such a variable become registers, one each, if accesses to a piece always cover the same bytes.
//! Other pieces stay in memory. Bytes and halves of words are held in 16 bits, bytes zero-extended.
//!
//! Atomic accesses, and accesses outside the variable, keep it in memory. So does an index that is not a
//! constant: it may refer to any piece.

use crate::compact::compact;
use crate::names::Names;
use broadloom_ptx::{
    Address, Base, Callee, Function, Imm, Inst, InstData, Mention, Modifier, Module, Opcode, Operand, Param, Reg, RegData, Space,
    Symbol, Type, Var,
};
use cranelift_entity::{PrimaryMap, SecondaryMap};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Name of the pass.
pub const NAME: &str = "promote_locals";

/// Promotes all variables and pieces that can be promoted.
pub fn run(module: &Module, function: &mut Function) {
    let locals: HashSet<Var> =
        function.variables.iter().filter(|(_, variable)| variable.space == Space::Local).map(|(var, _)| var).collect();
    if locals.is_empty() {
        return;
    }
    let addresses = Addresses::new(function, &locals);
    let uses = Uses::new(function, &addresses, locals);
    let pieces = uses.pieces(module, function);
    rewrite(function, &addresses, &uses, &pieces);
    compact(function);
    drop_variables(function);
}

/// Address in a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct VariableOffset {
    var: Var,
    offset: i64,
    /// True for a generic address.
    generic: bool,
}

/// Registers that hold addresses of local variables.
struct Addresses {
    places: SecondaryMap<Reg, Option<VariableOffset>>,
    /// Instructions that compute the addresses.
    computed_by: HashMap<Inst, VariableOffset>,
}

impl Addresses {
    fn new(function: &Function, locals: &HashSet<Var>) -> Addresses {
        let mut writes: SecondaryMap<Reg, u32> = SecondaryMap::new();
        for (_, data) in function.instructions() {
            data.each_written(|reg| writes[reg] += 1);
        }
        let params = function.params.iter().chain(&function.results);
        params.for_each(|param| {
            if let Param::Reg(reg) = param {
                writes[*reg] += 1
            }
        });
        let mut found = Addresses { places: SecondaryMap::new(), computed_by: HashMap::new() };
        let mut changed = true;
        while changed {
            changed = false;
            for (inst, data) in function.instructions() {
                let Some(Operand::Reg(to)) = data.operands.first() else { continue };
                let once = writes[*to] == 1 && data.guard.is_none() && found.places[*to].is_none();
                if let Some(place) = found.computed(data, locals).filter(|_| once) {
                    found.places[*to] = Some(place);
                    found.computed_by.insert(inst, place);
                    changed = true;
                }
            }
        }
        found
    }

    /// Returns the place whose address an instruction computes from a known one.
    fn computed(&self, data: &InstData, locals: &HashSet<Var>) -> Option<VariableOffset> {
        let number = |operand: &Operand| if let Operand::Imm(imm) = operand { imm.integer_bits() } else { None };
        let source = self.operand(data.operands.get(1)?, locals);
        // Addresses narrower than a pointer may wrap.
        let wide = data.types().next().is_some_and(|ty| ty.bits() == 64);
        match data.opcode()? {
            Opcode::Mov => source.filter(|_| wide),
            Opcode::Cvta if data.has(Modifier::Local) => {
                source.filter(|place| wide && !place.generic).map(|place| VariableOffset { generic: true, ..place })
            }
            Opcode::CvtaTo if data.has(Modifier::Local) => {
                source.filter(|place| wide && place.generic).map(|place| VariableOffset { generic: false, ..place })
            }
            Opcode::Add if wide => {
                let (place, added) = match (source, self.operand(data.operands.get(2)?, locals)) {
                    (Some(place), None) => (place, number(&data.operands[2])?),
                    (None, Some(place)) => (place, number(&data.operands[1])?),
                    (Some(_), Some(_)) | (None, None) => return None,
                };
                Some(VariableOffset { offset: place.offset.wrapping_add(added as i64), ..place })
            }
            _ => None,
        }
    }

    fn operand(&self, operand: &Operand, locals: &HashSet<Var>) -> Option<VariableOffset> {
        match operand {
            Operand::Reg(reg) => self.places[*reg],
            Operand::Symbol(Symbol::Local(var), offset) if locals.contains(var) => {
                Some(VariableOffset { var: *var, offset: *offset, generic: false })
            }
            _ => None,
        }
    }

    fn address(&self, address: Address, locals: &HashSet<Var>) -> Option<VariableOffset> {
        let place = match address.base {
            Base::Reg(reg) => self.places[reg]?,
            Base::Symbol(Symbol::Local(var)) if locals.contains(&var) => VariableOffset { var, offset: 0, generic: false },
            Base::Symbol(_) | Base::Absolute => return None,
        };
        Some(VariableOffset { offset: place.offset.wrapping_add(address.offset), ..place })
    }
}

/// Load or store.
#[derive(Clone, Copy, Debug)]
struct LocalAccess {
    place: VariableOffset,
    /// Bytes of an element.
    bytes: u32,
    /// Number of elements.
    count: u32,
}

/// Uses of local variables.
struct Uses {
    /// Variables whose address does not escape.
    hidden: HashSet<Var>,
    accesses: HashMap<Inst, LocalAccess>,
}

impl Uses {
    fn new(function: &Function, addresses: &Addresses, locals: HashSet<Var>) -> Uses {
        let mut known = HashSet::new();
        let mut accesses = HashMap::new();
        for (inst, data) in function.instructions() {
            if addresses.computed_by.contains_key(&inst) {
                continue;
            }
            let access = access(data, addresses, &locals).filter(|access| is_inside(function, access));
            // The address of an access is not an escaping use of its register; all other uses are.
            data.each_mention(|mention| match mention {
                Mention::Address(_) if access.is_some() => {}
                other => known.extend(mentioned(other, addresses, &locals)),
            });
            if let Some(access) = access {
                accesses.insert(inst, access);
            }
        }
        Uses { hidden: locals.difference(&known).copied().collect(), accesses }
    }

    /// Allocates the registers for pieces of variables, by their first byte.
    fn pieces(&self, module: &Module, function: &mut Function) -> HashMap<(Var, i64), Reg> {
        let mut ranges: HashMap<Var, BTreeMap<(i64, u32), bool>> = HashMap::new();
        for (inst, access) in self.accesses.iter().filter(|(_, access)| self.hidden.contains(&access.place.var)) {
            let whole = registers_fit(function, &function.insts[*inst]);
            for (var, start) in access.pieces() {
                *ranges.entry(var).or_default().entry((start, access.bytes)).or_insert(true) &= whole;
            }
        }
        let mut alone: BTreeMap<(Var, i64), Type> = BTreeMap::new();
        for (var, ranges) in &ranges {
            alone.extend(apart(ranges).into_iter().map(|(start, ty)| ((*var, start), ty)));
        }
        // Pieces that are accessed together are promoted together or not at all.
        let mut changed = true;
        while changed {
            changed = false;
            for access in self.accesses.values() {
                if !access.pieces().all(|piece| alone.contains_key(&piece)) {
                    access.pieces().for_each(|piece| changed |= alone.remove(&piece).is_some());
                }
            }
        }
        let mut names = Names::all(module, function);
        let mut number = 0;
        let mut hold = |ty: Type| function.regs.push(RegData { name: names.next("%held", &mut number), ty });
        alone.into_iter().map(|(piece, ty)| (piece, hold(ty))).collect()
    }
}

/// Returns the byte ranges that no other overlaps and that registers can hold, in order of their first byte.
fn apart(ranges: &BTreeMap<(i64, u32), bool>) -> Vec<(i64, Type)> {
    let mut reach = i64::MIN;
    let mut found: Vec<(i64, u32, bool)> = vec![];
    for ((start, bytes), whole) in ranges {
        let apart = *start >= reach;
        if let Some(last) = found.last_mut().filter(|_| !apart) {
            last.2 = false;
        }
        found.push((*start, *bytes, apart && *whole));
        reach = reach.max(start + i64::from(*bytes));
    }
    found.into_iter().filter(|(_, _, alone)| *alone).filter_map(|(start, bytes, _)| Some((start, held_in(bytes)?))).collect()
}

impl LocalAccess {
    /// Returns the pieces that it accesses, by their first byte.
    fn pieces(self) -> impl Iterator<Item = (Var, i64)> {
        (0..self.count).map(move |element| (self.place.var, self.place.offset + i64::from(element * self.bytes)))
    }
}

/// Returns the type of a register for a piece.
fn held_in(bytes: u32) -> Option<Type> {
    Some(match bytes {
        1 | 2 => Type::B16,
        4 => Type::B32,
        8 => Type::B64,
        _ => return None,
    })
}

/// Returns the access of an instruction to a local variable.
fn access(data: &InstData, addresses: &Addresses, locals: &HashSet<Var>) -> Option<LocalAccess> {
    // A third operand is a cache policy.
    if !matches!(data.opcode(), Some(Opcode::Ld | Opcode::St)) || data.operands.len() != 2 {
        return None;
    }
    let address = data.address()?;
    let place = addresses.address(address, locals)?;
    let right = match data.space() {
        Space::Local => !place.generic,
        Space::Generic => place.generic,
        Space::Reg | Space::Const | Space::Global | Space::Shared | Space::Param | Space::Tex => false,
    };
    let count = data.modifiers().find_map(Modifier::vector_length).unwrap_or(1);
    let bytes = data.types().next()?.bytes();
    right.then_some(LocalAccess { place, bytes, count: u32::from(count) })
}

fn is_inside(function: &Function, access: &LocalAccess) -> bool {
    let size = function.variables[access.place.var].bytes().unwrap_or(0);
    let end = access.place.offset.checked_add(i64::from(access.bytes * access.count));
    access.place.offset >= 0 && end.is_some_and(|end| end as u64 <= size)
}

/// Returns the variable whose address a mention exposes.
fn mentioned(mention: Mention<'_>, addresses: &Addresses, locals: &HashSet<Var>) -> Option<Var> {
    match mention {
        Mention::Operand(Operand::Reg(reg) | Operand::Not(reg) | Operand::Part { reg, .. }, _)
        | Mention::Callee(Callee::Indirect { reg, .. }) => addresses.places[*reg].map(|place| place.var),
        Mention::Operand(Operand::Symbol(Symbol::Local(var), _), _) => Some(*var),
        Mention::Address(address) => addresses.address(*address, locals).map(|place| place.var),
        Mention::Operand(..) | Mention::Callee(Callee::Direct(_)) => None,
    }
}

/// Returns whether the loaded or stored registers can be converted from and to the register of a piece. None
/// may be a byte wide, and those wider than the access must hold integers.
fn registers_fit(function: &Function, data: &InstData) -> bool {
    let Some(ty) = data.types().next() else { return false };
    let mut fit = true;
    let mut see = |reg: Reg| {
        let register = function.regs[reg].ty;
        let wider = register.bits() > ty.bits();
        fit &= register.bits() >= 16 && register != Type::Pred && (!wider || (!ty.is_float() && !register.is_float()));
    };
    for element in elements(data) {
        if let Operand::Reg(reg) = element {
            see(*reg);
        }
    }
    fit
}

/// Returns the values of a load or store.
fn elements(data: &InstData) -> Vec<&Operand> {
    let values = data.operands.iter().filter(|operand| !matches!(operand, Operand::Memory(_)));
    values.flat_map(|operand| if let Operand::Vector(list) = operand { list.iter().collect() } else { vec![operand] }).collect()
}

/// Replaces memory accesses by register accesses.
fn rewrite(function: &mut Function, addresses: &Addresses, uses: &Uses, pieces: &HashMap<(Var, i64), Reg>) {
    let in_memory: HashSet<Var> =
        uses.accesses.values().filter(|access| !is_promoted(access, pieces)).map(|access| access.place.var).collect();
    for block in function.layout.clone() {
        let insts = std::mem::take(&mut function.blocks[block].insts);
        let mut written = Vec::with_capacity(insts.len());
        for inst in insts {
            let address_of = addresses.computed_by.get(&inst).map(|place| place.var);
            if address_of.is_some_and(|var| uses.hidden.contains(&var) && !in_memory.contains(&var)) {
                continue;
            }
            match uses.accesses.get(&inst).filter(|access| is_promoted(access, pieces)) {
                Some(access) => {
                    let data = function.insts[inst].clone();
                    for (piece, value) in access.pieces().zip(elements(&data)) {
                        let held = pieces[&piece];
                        if let Some(moved) = moved(function, &data, held, value) {
                            written.push(function.insts.push(InstData {
                                guard: data.guard,
                                loc: data.loc,
                                span: data.span,
                                ..moved
                            }));
                        }
                    }
                }
                None => written.push(inst),
            }
        }
        function.blocks[block].insts = written;
    }
}

/// Returns whether all pieces of an access are in registers.
fn is_promoted(access: &LocalAccess, pieces: &HashMap<(Var, i64), Reg>) -> bool {
    access.pieces().all(|piece| pieces.contains_key(&piece))
}

/// Returns the replacement of a load or store of one element; `None` if the value is discarded.
fn moved(function: &Function, data: &InstData, held: Reg, value: &Operand) -> Option<InstData> {
    let ty = data.types().next()?;
    let loads = data.opcode() == Some(Opcode::Ld);
    let plain = match ty.bits() {
        8 | 16 => "mov.b16",
        32 => "mov.b32",
        _ => "mov.b64",
    };
    let byte = ty.bits() == 8;
    match (loads, value) {
        (true, Operand::Reg(to)) => {
            let bits = function.regs[*to].ty.bits();
            let held_bits = ty.bits().max(16);
            let signed = ty.is_signed() && (byte || bits > held_bits);
            let mnemonic = match (signed, bits > held_bits) {
                (true, _) => format!("cvt.s{bits}.s{}", ty.bits()),
                (false, true) => format!("cvt.u{bits}.u{held_bits}"),
                (false, false) => plain.to_owned(),
            };
            InstData::of(&mnemonic, [Operand::Reg(*to), Operand::Reg(held)])
        }
        (false, Operand::Reg(from)) => {
            let bits = function.regs[*from].ty.bits();
            let mnemonic = match (byte, bits > ty.bits()) {
                (true, _) => "cvt.u16.u8".to_owned(),
                (false, true) => format!("cvt.u{}.u{bits}", ty.bits()),
                (false, false) => plain.to_owned(),
            };
            InstData::of(&mnemonic, [Operand::Reg(held), Operand::Reg(*from)])
        }
        (false, Operand::Imm(imm)) if byte => {
            let value = imm.integer_bits()? & 0xff;
            InstData::of("mov.b16", [Operand::Reg(held), Operand::Imm(Imm::from_u64(value))])
        }
        (false, other) => InstData::of(plain, [Operand::Reg(held), other.clone()]),
        (true, _) => None,
    }
}

/// Removes local variables that are no longer named.
fn drop_variables(function: &mut Function) {
    let mut named: HashSet<Var> = HashSet::new();
    let params = function.params.iter().chain(&function.results);
    named.extend(params.filter_map(|param| if let Param::Memory(var) = param { Some(*var) } else { None }));
    for (_, data) in function.instructions() {
        data.each_symbol(|symbol| {
            if let Symbol::Local(var) = symbol {
                named.insert(var);
            }
        });
    }
    let mut kept = PrimaryMap::new();
    let mut places: HashMap<Var, Var> = HashMap::new();
    for (var, variable) in function.variables.iter() {
        if variable.space != Space::Local || named.contains(&var) {
            places.insert(var, kept.push(variable.clone()));
        }
    }
    function.variables = kept;
    for param in function.params.iter_mut().chain(&mut function.results) {
        if let Param::Memory(var) = param {
            *var = places[var];
        }
    }
    let insts: Vec<Inst> = function.instructions().map(|(inst, _)| inst).collect();
    for inst in insts {
        function.insts[inst].change_symbols(|symbol| {
            if let Symbol::Local(var) = symbol {
                *var = places[var];
            }
        });
    }
}
