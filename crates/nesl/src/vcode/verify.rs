//! Checks the types on the stack.
//!
//! Checked: operands of every instruction have its types; both branches of a conditional leave the same
//! number of entries with the same types; a function leaves the results that it declares; `IF` takes a bool;
//! `UNPAIR` takes a pair. Not checked: lengths of vectors, which the machine checks; functions that never
//! return.
//!
//! A program need not declare the types of a function. They are inferred: if a function takes more entries
//! than were pushed, these are its operands. A call of a function that is not known yet ends its branch. The
//! branch that ends a recursion therefore gives the first signature. Passes over the whole program repeat
//! until nothing changes.

use super::{FuncId, Inst, Program, Slot, Type};
use crate::codes;
use broadloom_diag::{Diagnostic, Diagnostics};
use cranelift_entity::SecondaryMap;
use std::fmt;

/// Operands and results of a function, the top of the stack last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The operands; `None` for any type.
    pub operands: Vec<Option<Type>>,
    /// The results; `None` if the type is that of an operand or a pair.
    pub results: Vec<Option<Type>>,
}

/// Type of an entry during inference, by its index.
type EntryType = usize;

#[derive(Clone, Copy)]
enum EntryNode {
    Unknown,
    Same(EntryType),
    Is(Type),
    Pair(EntryType, EntryType),
}

/// Operands and results with shared variables.
#[derive(Clone)]
struct Effect {
    nodes: Vec<EntryNode>,
    operands: Vec<EntryType>,
    results: Vec<EntryType>,
}

/// Reason why an instruction does not fit the stack.
enum StackMismatch {
    TooManyEntries,
    /// The numbers of entries that the branches of a conditional leave.
    Branches(usize, usize),
    NestedPairs,
    Types {
        found: &'static str,
        wanted: &'static str,
    },
    /// A mismatch of an operation or a call, which is named first.
    Within(String, Box<StackMismatch>),
}

impl StackMismatch {
    fn within(self, place: String) -> StackMismatch {
        StackMismatch::Within(place, Box::new(self))
    }
}

impl fmt::Display for StackMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StackMismatch::TooManyEntries => write!(f, "more than {MAX_ENTRIES} entries of the stack are in use"),
            StackMismatch::Branches(a, b) => {
                write!(f, "the branches of a conditional leave different numbers of entries: {a} and {b}")
            }
            StackMismatch::NestedPairs => f.write_str("pairs nest too deeply"),
            StackMismatch::Types { found, wanted } => write!(f, "found {found} instead of {wanted}"),
            StackMismatch::Within(place, mismatch) => write!(f, "{place}: {mismatch}"),
        }
    }
}

/// Maximum number of passes over a program.
const MAX_PASSES: usize = 32;

/// Maximum number of entries that a function may leave or take.
const MAX_ENTRIES: usize = 1 << 16;

/// Checks a program and returns the signatures of its functions.
pub fn verify(program: &Program) -> Result<SecondaryMap<FuncId, Option<Signature>>, Diagnostics> {
    let mut effects: SecondaryMap<FuncId, Option<Effect>> = SecondaryMap::new();
    let order = callees_first(program);
    let mut errors = Diagnostics::new();
    for pass in 0..MAX_PASSES {
        let mut changed = false;
        errors = Diagnostics::new();
        for &id in &order {
            match VcodeChecker::new(program, &effects).function(id) {
                Ok(None) => {}
                Ok(Some(effect)) => {
                    let size = |effect: &Effect| (effect.operands.len(), effect.results.len());
                    let known = effects[id].as_ref().map(|known| (size(known), known.signature()));
                    changed |= known != Some((size(&effect), effect.signature()));
                    effects[id] = Some(effect);
                }
                Err(error) => errors.push(*error),
            }
        }
        if !changed || pass + 1 == MAX_PASSES {
            break;
        }
    }
    if let Some(main) = program.main
        && effects[main].as_ref().is_some_and(|effect| !effect.operands.is_empty())
    {
        let span = program.functions[main].spans.first().copied().unwrap_or_default();
        let message =
            format!("the function `{}`, where the program starts, takes entries of an empty stack", program.functions[main].name);
        errors.push(Diagnostic::error(codes::VCODE_TYPES, message).at(span, ""));
    }
    if errors.has_errors() {
        return Err(errors);
    }
    let mut signatures = SecondaryMap::new();
    for id in program.functions.keys() {
        signatures[id] = effects[id].as_ref().map(Effect::signature);
    }
    Ok(signatures)
}

/// Lists functions, callees before their callers unless they are recursive.
fn callees_first(program: &Program) -> Vec<FuncId> {
    let mut order = vec![];
    let mut seen: SecondaryMap<FuncId, bool> = SecondaryMap::new();
    for root in program.functions.keys() {
        let mut open = vec![(root, 0usize)];
        while let Some((id, at)) = open.pop() {
            if at == 0 && std::mem::replace(&mut seen[id], true) {
                continue;
            }
            let code = &program.functions[id].code;
            let next = (at..code.len()).find_map(|index| match code[index] {
                Inst::Call(callee) if program.functions.is_valid(callee) && !seen[callee] => Some((index, callee)),
                Inst::Sequential(ref call) if program.functions.is_valid(call.fallback) && !seen[call.fallback] => {
                    Some((index, call.fallback))
                }
                Inst::Loop(ref call) if program.functions.is_valid(call.fallback) && !seen[call.fallback] => {
                    Some((index, call.fallback))
                }
                _ => None,
            });
            match next {
                Some((index, callee)) => {
                    open.push((id, index + 1));
                    open.push((callee, 0));
                }
                None => order.push(id),
            }
        }
    }
    order
}

impl Effect {
    fn signature(&self) -> Signature {
        let known = |&ty: &EntryType| match self.nodes[find(&self.nodes, ty)] {
            EntryNode::Is(ty) => Some(ty),
            EntryNode::Unknown | EntryNode::Same(_) | EntryNode::Pair(..) => None,
        };
        Signature { operands: self.operands.iter().map(known).collect(), results: self.results.iter().map(known).collect() }
    }
}

fn find(nodes: &[EntryNode], mut ty: EntryType) -> EntryType {
    while let EntryNode::Same(other) = nodes[ty] {
        ty = other;
    }
    ty
}

struct VcodeChecker<'a> {
    program: &'a Program,
    effects: &'a SecondaryMap<FuncId, Option<Effect>>,
    nodes: Vec<EntryNode>,
    operands: Vec<EntryType>,
    stack: Vec<EntryType>,
    /// True for unreachable code, and after a call whose effect is not known.
    dead: bool,
}

/// Stack at a branch, with the number of operands known at that point.
struct BranchStack {
    stack: Vec<EntryType>,
    operands: usize,
    dead: bool,
}

impl<'a> VcodeChecker<'a> {
    fn new(program: &'a Program, effects: &'a SecondaryMap<FuncId, Option<Effect>>) -> Self {
        VcodeChecker { program, effects, nodes: vec![], operands: vec![], stack: vec![], dead: false }
    }

    fn add(&mut self, node: EntryNode) -> EntryType {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Returns the effect of a function; `None` while it depends on an unknown one.
    fn function(mut self, id: FuncId) -> Result<Option<Effect>, Box<Diagnostic>> {
        let function = &self.program.functions[id];
        let declared = function.signature.is_some();
        if let Some((operands, _)) = &function.signature {
            self.operands = operands.iter().map(|&ty| self.add(EntryNode::Is(ty))).collect();
            self.stack = self.operands.clone();
        }
        let mut open: Vec<BranchStack> = vec![];
        for (index, inst) in function.code.iter().enumerate() {
            let done = match inst {
                Inst::If(_) => self.take(Type::Bool).map(|()| open.push(self.saved())),
                Inst::Else(_) => {
                    let then = self.saved();
                    match open.pop() {
                        Some(before) => self.restore(before),
                        None => return Ok(None),
                    }
                    open.push(then);
                    Ok(())
                }
                Inst::EndIf => match open.pop() {
                    Some(other) => self.merge(other),
                    None => return Ok(None),
                },
                _ if self.dead => Ok(()),
                _ => self.inst(inst),
            };
            let done = done.and_then(|()| {
                let grown = self.operands.len() > MAX_ENTRIES || self.stack.len() > MAX_ENTRIES;
                if grown { Err(StackMismatch::TooManyEntries) } else { Ok(()) }
            });
            if let Err(reason) = done {
                let span = function.spans.get(index).copied().unwrap_or_default();
                let message = format!("{reason}, in the function `{}`", function.name);
                return Err(Box::new(Diagnostic::error(codes::VCODE_TYPES, message).at(span, "")));
            }
        }
        if self.dead {
            return Ok(None);
        }
        if let (true, Some((operands, results))) = (declared, &function.signature) {
            let found = Effect { nodes: self.nodes.clone(), operands: self.operands.clone(), results: self.stack.clone() };
            let wanted: Vec<Option<Type>> = results.iter().map(|&ty| Some(ty)).collect();
            if self.operands.len() != operands.len() || found.signature().results != wanted {
                let span = function.spans.last().copied().unwrap_or_default();
                let message = format!("the function `{}` does not take and leave what it declares", function.name);
                return Err(Box::new(Diagnostic::error(codes::VCODE_TYPES, message).at(span, "")));
            }
        }
        Ok(Some(Effect { nodes: self.nodes, operands: self.operands, results: self.stack }))
    }

    fn saved(&self) -> BranchStack {
        BranchStack { stack: self.stack.clone(), operands: self.operands.len(), dead: self.dead }
    }

    fn aligned(&self, saved: BranchStack) -> BranchStack {
        let added = self.operands.len() - saved.operands;
        let stack = self.operands[..added].iter().copied().chain(saved.stack).collect();
        BranchStack { stack, operands: self.operands.len(), dead: saved.dead }
    }

    fn restore(&mut self, saved: BranchStack) {
        let saved = self.aligned(saved);
        self.stack = saved.stack;
        self.dead = saved.dead;
    }

    fn merge(&mut self, other: BranchStack) -> Result<(), StackMismatch> {
        let other = self.aligned(other);
        match (self.dead, other.dead) {
            (_, true) => Ok(()),
            (true, false) => {
                self.stack = other.stack;
                self.dead = false;
                Ok(())
            }
            (false, false) => {
                if self.stack.len() != other.stack.len() {
                    return Err(StackMismatch::Branches(other.stack.len(), self.stack.len()));
                }
                let pairs: Vec<(EntryType, EntryType)> = self.stack.iter().copied().zip(other.stack).collect();
                pairs.into_iter().try_for_each(|(a, b)| self.unify(a, b, 0))
            }
        }
    }

    /// Ensures that the stack has this many entries; missing ones become operands of the function.
    fn need(&mut self, count: usize) {
        while self.stack.len() < count && self.operands.len() <= MAX_ENTRIES {
            let new = self.add(EntryNode::Unknown);
            self.operands.insert(0, new);
            self.stack.insert(0, new);
        }
    }

    fn pop(&mut self) -> EntryType {
        self.need(1);
        match self.stack.pop() {
            Some(ty) => ty,
            None => self.add(EntryNode::Unknown),
        }
    }

    fn take(&mut self, ty: Type) -> Result<(), StackMismatch> {
        if self.dead {
            return Ok(());
        }
        let (found, wanted) = (self.pop(), self.add(EntryNode::Is(ty.stacked())));
        self.unify(found, wanted, 0)
    }

    fn push(&mut self, ty: Type) {
        let ty = self.add(EntryNode::Is(ty.stacked()));
        self.stack.push(ty);
    }

    fn inst(&mut self, inst: &Inst) -> Result<(), StackMismatch> {
        match inst {
            Inst::Op(op, given) => {
                let of = |slot: &Slot| match slot {
                    Slot::Given => *given,
                    Slot::Is(ty) => *ty,
                };
                for slot in op.operands().iter().rev() {
                    self.take(of(slot)).map_err(|mismatch| mismatch.within(op.name().to_owned()))?;
                }
                op.results().iter().for_each(|slot| self.push(of(slot)));
            }
            Inst::Const(constant) => self.push(constant.ty()),
            Inst::Copy(count, from) => {
                let range = self.range(*count, *from)?;
                let copies = self.stack[range].to_vec();
                self.stack.extend(copies);
            }
            Inst::Pop(count, from) => {
                let range = self.range(*count, *from)?;
                self.stack.drain(range);
            }
            Inst::CopyPop(count, from) => {
                let range = self.range(*count, *from)?;
                let moved = range.len();
                self.stack[range.start..].rotate_left(moved);
            }
            Inst::Pair => {
                let (second, first) = (self.pop(), self.pop());
                let pair = self.add(EntryNode::Pair(first, second));
                self.stack.push(pair);
            }
            Inst::Unpair => {
                let (first, second) = (self.add(EntryNode::Unknown), self.add(EntryNode::Unknown));
                let (pair, found) = (self.add(EntryNode::Pair(first, second)), self.pop());
                self.unify(found, pair, 0)?;
                self.stack.extend([first, second]);
            }
            Inst::Check(check) => check.operands().iter().rev().try_for_each(|&ty| self.take(ty))?,
            Inst::Foreign(call) => {
                let (mut operands, mut results) = (vec![], vec![]);
                call.argument.types(&mut operands);
                call.result.types(&mut results);
                operands.into_iter().rev().try_for_each(|ty| self.take(ty))?;
                results.into_iter().for_each(|ty| self.push(ty));
            }
            Inst::Small => {
                self.take(Type::Int)?;
                self.push(Type::Int);
                self.push(Type::Int);
            }
            Inst::Sequential(call) => return self.inst(&Inst::Call(call.fallback)),
            Inst::Loop(call) => return self.inst(&Inst::Call(call.fallback)),
            Inst::Call(callee) => match &self.effects[*callee] {
                None => self.dead = true,
                Some(effect) => {
                    let base = self.nodes.len();
                    let moved = effect.nodes.iter().map(|node| match *node {
                        EntryNode::Same(ty) => EntryNode::Same(ty + base),
                        EntryNode::Pair(a, b) => EntryNode::Pair(a + base, b + base),
                        other => other,
                    });
                    self.nodes.extend(moved);
                    for &operand in effect.operands.iter().rev() {
                        let found = self.pop();
                        let name = &self.program.functions[*callee].name;
                        self.unify(found, operand + base, 0)
                            .map_err(|mismatch| mismatch.within(format!("the call of `{name}`")))?;
                    }
                    self.stack.extend(effect.results.iter().map(|&result| result + base));
                }
            },
            Inst::If(_) | Inst::Else(_) | Inst::EndIf | Inst::Exit | Inst::Return => {}
        }
        Ok(())
    }

    fn range(&mut self, count: u32, from: u32) -> Result<std::ops::Range<usize>, StackMismatch> {
        let (count, from) = (count as usize, from as usize);
        self.need(count + from);
        let size = self.stack.len();
        if count + from > size {
            return Err(StackMismatch::TooManyEntries);
        }
        Ok(size - from - count..size - from)
    }

    fn unify(&mut self, a: EntryType, b: EntryType, depth: u32) -> Result<(), StackMismatch> {
        let (a, b) = (find(&self.nodes, a), find(&self.nodes, b));
        if a == b {
            return Ok(());
        }
        if depth > 200 {
            return Err(StackMismatch::NestedPairs);
        }
        match (self.nodes[a], self.nodes[b]) {
            (EntryNode::Unknown, _) => self.nodes[a] = EntryNode::Same(b),
            (_, EntryNode::Unknown) => self.nodes[b] = EntryNode::Same(a),
            (EntryNode::Is(x), EntryNode::Is(y)) if x == y => {}
            (EntryNode::Pair(p, q), EntryNode::Pair(r, s)) => {
                self.nodes[a] = EntryNode::Same(b);
                self.unify(p, r, depth + 1)?;
                self.unify(q, s, depth + 1)?;
            }
            (found, wanted) => return Err(StackMismatch::Types { found: name(found), wanted: name(wanted) }),
        }
        Ok(())
    }
}

fn name(node: EntryNode) -> &'static str {
    match node {
        EntryNode::Is(ty) => ty.name(),
        EntryNode::Pair(..) => "a pair",
        EntryNode::Unknown | EntryNode::Same(_) => "an entry",
    }
}
