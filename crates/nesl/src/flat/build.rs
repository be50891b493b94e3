//! Construction of functions, with common subexpression elimination and simplification.
//!
//! It handles common subexpressions, in a block and the blocks around it; `LENGTHS` of a descriptor that was
//! made of lengths; sums with 0 and of constants; checks that always hold. Segment descriptors are results of
//! operations like any others, so each is computed once.

use super::{Block, Function, Op, SpaceId, Stmt, Var, VarId, Vars};
use crate::hash::QuickMap;
use crate::vcode::{self, Constant, Type};
use broadloom_diag::Span;
use cranelift_entity::SecondaryMap;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// Number of characters from which on a string that is held elsewhere is compared by identity.
const LONG: usize = 1 << 12;

/// Function under construction.
pub(crate) struct Builder {
    pub(crate) function: Function,
    /// Open blocks, the innermost last, with the results of operations in them.
    open: Vec<(Vec<Stmt>, OperationResults)>,
    /// Operations that later simplifications read: constants, distributions, descriptors and their lengths.
    definitions: SecondaryMap<VarId, Option<(Op, Vars)>>,
    /// The key of the operation being added.
    key: OperationKey,
    /// Number of each call of the implementation, by its text.
    calls: QuickMap<String, u32>,
    /// Place of new statements.
    pub(crate) span: Span,
}

/// Words of an operation: itself, the spaces of its results and its operands.
type OperationKey = SmallVec<[u32; 12]>;

/// Results of operations, by their keys: the first result and their number. Results have consecutive ids.
type OperationResults = QuickMap<OperationKey, (u32, u32)>;

impl Builder {
    pub(crate) fn new(name: String, source: Option<String>) -> Self {
        let function = Function { name, source, ..Function::default() };
        let (definitions, key, calls) = (SecondaryMap::new(), OperationKey::new(), QuickMap::default());
        Builder { function, open: vec![(vec![], OperationResults::default())], definitions, key, calls, span: Span::default() }
    }

    pub(crate) fn space(&mut self) -> SpaceId {
        self.function.spaces.push(None)
    }

    fn find(&self, mut space: SpaceId) -> SpaceId {
        while let Some(other) = self.function.spaces[space] {
            space = other;
        }
        space
    }

    /// Joins two spaces.
    pub(crate) fn join_spaces(&mut self, a: SpaceId, b: SpaceId) {
        let (a, b) = (self.find(a), self.find(b));
        if a != b {
            self.function.spaces[b] = Some(a);
        }
    }

    pub(crate) fn var(&mut self, ty: Type, space: SpaceId) -> VarId {
        self.function.vars.push(Var { ty: ty.stacked(), space })
    }

    pub(crate) fn param(&mut self, ty: Type, space: SpaceId) -> VarId {
        let var = self.var(ty, space);
        self.function.params.push(var);
        var
    }

    pub(crate) fn space_of(&self, var: VarId) -> SpaceId {
        self.find(self.function.vars[var].space)
    }

    pub(crate) fn ty_of(&self, var: VarId) -> Type {
        self.function.vars[var].ty
    }

    pub(crate) fn open(&mut self) {
        self.open.push((vec![], OperationResults::default()));
    }

    pub(crate) fn close(&mut self, results: Vec<VarId>) -> Block {
        let (stmts, _) = self.open.pop().unwrap_or_default();
        Block { stmts, results }
    }

    pub(crate) fn finish(mut self, results: Vec<VarId>) -> Function {
        self.function.body = self.close(results);
        let spaces: Vec<SpaceId> = self.function.vars.values().map(|var| self.find(var.space)).collect();
        for (var, space) in self.function.vars.values_mut().zip(spaces) {
            var.space = space;
        }
        self.function
    }

    /// Adds an operation whose results have the given types and spaces.
    pub(crate) fn push(&mut self, op: Op, args: Vars, results: &[(Type, SpaceId)]) -> Vars {
        if let Op::Check(check) = op
            && self.always_holds(check, &args)
        {
            return Vars::new();
        }
        // Equal operations into two spaces give two vectors: one element may be a scalar or a sequence. A
        // check of a length that was made before holds.
        let is_once = op.is_pure() || matches!(op, Op::Check(vcode::Check::Length | vcode::Check::Total));
        if is_once {
            self.write_key(&op, &args, results);
            let known = |(_, known): &(Vec<Stmt>, OperationResults)| known.get(self.key.as_slice()).copied();
            if let Some((first, count)) = self.open.iter().rev().find_map(known) {
                return (first..first + count).map(VarId::from_u32).collect();
            }
        }
        let vars: Vars = results.iter().map(|&(ty, space)| self.var(ty, space)).collect();
        if let (true, Some((_, known))) = (is_once, self.open.last_mut()) {
            let first = vars.first().map_or(0, |var| var.as_u32());
            known.insert(self.key.clone(), (first, vars.len() as u32));
        }
        self.add(op, args, vars)
    }

    /// Writes the key of an operation. Floats are their bits.
    fn write_key(&mut self, op: &Op, args: &[VarId], results: &[(Type, SpaceId)]) {
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        let mut wide = |tag: u32, words: &mut dyn Iterator<Item = u64>| {
            key.extend([tag, 0]);
            words.for_each(|word| key.extend([word as u32, (word >> 32) as u32]));
            key[1] = key.len() as u32;
        };
        match op {
            Op::Vector(op, ty) => key.extend([0, *op as u32, *ty as u32]),
            Op::Const(Constant::Int(values)) => wide(1, &mut values.iter().map(|value| *value as u64)),
            // Zeros of both signs and all NaNs are different constants.
            Op::Const(Constant::Float(values)) => wide(2, &mut values.iter().map(|value| value.to_bits())),
            Op::Const(Constant::Bool(values)) => wide(3, &mut values.iter().map(|value| u64::from(*value))),
            Op::Const(Constant::Segdes(values)) => wide(4, &mut values.iter().map(|value| *value as u64)),
            // A string that is held elsewhere, such as a variable, is the same only as itself.
            Op::Const(Constant::Text(bytes)) if bytes.len() > LONG && Arc::strong_count(bytes) > 1 => {
                wide(8, &mut [bytes.as_ptr().addr() as u64, bytes.len() as u64].into_iter());
            }
            Op::Const(Constant::Text(bytes)) => wide(5, &mut bytes.iter().map(|byte| u64::from(*byte))),
            Op::Check(check) => key.extend([6, *check as u32]),
            Op::Foreign(_) | Op::Call(_) | Op::Small | Op::Sequential(..) | Op::Loop(..) | Op::If(_) => {
                let next = self.calls.len() as u32;
                let number = *self.calls.entry(format!("{op:?}")).or_insert(next);
                key.extend([7, number]);
            }
        }
        // The space of the result of `PACK` follows from its operands.
        let packs = matches!(op, Op::Vector(vcode::Op::Pack, _));
        key.push(results.len() as u32);
        key.extend(results.iter().skip(usize::from(packs)).map(|&(_, space)| self.find(space).as_u32()));
        key.extend(args.iter().map(|arg| arg.as_u32()));
        self.key = key;
    }

    /// Adds an operation whose result vectors exist already.
    pub(crate) fn define(&mut self, op: Op, args: Vars, results: Vars) {
        self.add(op, args, results);
    }

    fn add(&mut self, op: Op, args: Vars, vars: Vars) -> Vars {
        use vcode::Op::{Distribute, Lengths, MakeSegdes};
        if let ([var], Op::Const(_) | Op::Vector(Distribute | Lengths | MakeSegdes, _)) = (&vars[..], &op) {
            self.definitions[*var] = Some((op.clone(), args.clone()));
        }
        let span = self.span;
        if let Some((stmts, _)) = self.open.last_mut() {
            stmts.push(Stmt { op, args, results: vars.clone(), span });
        }
        vars
    }

    fn one(&mut self, op: Op, args: Vars, ty: Type, space: SpaceId) -> VarId {
        let vars = self.push(op, args, &[(ty, space)]);
        vars[0]
    }

    /// Tells whether a check is known to hold.
    fn always_holds(&self, check: vcode::Check, args: &[VarId]) -> bool {
        let int = |var: VarId| match self.scalar_of(var) {
            Some(Constant::Int(values)) => Some(values[0]),
            _ => None,
        };
        match (check, args) {
            (vcode::Check::Each | vcode::Check::Put | vcode::Check::Unpack, [a, b]) => a == b,
            (vcode::Check::Index, &[index, length]) => {
                matches!((int(index), int(length)), (Some(index), Some(length)) if (0..length).contains(&index))
            }
            (vcode::Check::Count | vcode::Check::Length, &[count]) => int(count).is_some_and(|count| count >= 0),
            (vcode::Check::Require, &[condition, ..]) => {
                matches!(self.scalar_of(condition), Some(Constant::Bool(values)) if values[0])
            }
            _ => false,
        }
    }

    /// Computes an operation on constants, if the result fits the minimum width of ints.
    fn folded(&self, op: vcode::Op, args: &[VarId]) -> Option<i64> {
        let int = |var: VarId| match &self.definitions[var] {
            Some((Op::Const(Constant::Int(values)), _)) if values.len() == 1 => Some(values[0]),
            _ => None,
        };
        let (a, b) = match *args {
            [a, b] => (int(a)?, int(b)?),
            _ => return None,
        };
        let value = match op {
            vcode::Op::Add => a.checked_add(b)?,
            vcode::Op::Subtract => a.checked_sub(b)?,
            vcode::Op::Multiply => a.checked_mul(b)?,
            _ => return None,
        };
        i32::try_from(value).ok().map(i64::from)
    }

    fn definition(&self, var: VarId) -> Option<(&vcode::Op, &[VarId])> {
        match &self.definitions[var] {
            Some((Op::Vector(op, _), args)) => Some((op, args)),
            _ => None,
        }
    }

    /// Returns the scalar of a vector whose elements are all one constant of the program.
    pub(crate) fn scalar_of(&self, var: VarId) -> Option<Constant> {
        match &self.definitions[var] {
            Some((Op::Const(constant), _)) => match constant {
                Constant::Int(values) if values.len() == 1 => Some(constant.clone()),
                Constant::Float(values) if values.len() == 1 => Some(constant.clone()),
                Constant::Bool(values) if values.len() == 1 => Some(constant.clone()),
                Constant::Segdes(values) if values.len() == 1 => Some(constant.clone()),
                _ => None,
            },
            Some((Op::Vector(vcode::Op::Distribute, _), args)) => self.scalar_of(args[0]),
            _ => None,
        }
    }

    pub(crate) fn is_int(&self, var: VarId, value: i64) -> bool {
        matches!(self.scalar_of(var), Some(Constant::Int(values)) if values[0] == value)
    }

    pub(crate) fn constant(&mut self, constant: Constant, space: SpaceId) -> VarId {
        let ty = constant.ty();
        self.one(Op::Const(constant), Vars::new(), ty, space)
    }

    /// Adds an elementwise operation.
    pub(crate) fn element(&mut self, op: vcode::Op, ty: Type, args: &[VarId]) -> VarId {
        if let (vcode::Op::Add, Type::Int, &[a, b]) = (op, ty, args) {
            if self.is_int(a, 0) {
                return b;
            }
            if self.is_int(b, 0) {
                return a;
            }
        }
        if let (vcode::Op::Subtract, Type::Int, &[a, b]) = (op, ty, args)
            && self.is_int(b, 0)
        {
            return a;
        }
        if let Some(value) = self.folded(op, args) {
            let space = self.space_of(args[0]);
            return self.constant(Constant::Int([value].into()), space);
        }
        let space = self.space_of(args[0]);
        self.one(Op::Vector(op, ty), args.into(), op.result(ty), space)
    }

    /// Adds a scan, whose result has the space of the values.
    pub(crate) fn scan(&mut self, op: vcode::Op, values: VarId, segments: VarId) -> VarId {
        let (ty, space) = (self.ty_of(values), self.space_of(values));
        let result = if matches!(op, vcode::Op::RankUp | vcode::Op::RankDown) { Type::Int } else { ty };
        self.one(Op::Vector(op, ty), smallvec![values, segments], result, space)
    }

    /// Adds a reduction, whose result has the space of the segment descriptor.
    pub(crate) fn reduce(&mut self, op: vcode::Op, values: VarId, segments: VarId) -> VarId {
        let (ty, space) = (self.ty_of(values), self.space_of(segments));
        self.one(Op::Vector(op, ty), smallvec![values, segments], ty, space)
    }

    pub(crate) fn lengths(&mut self, segments: VarId) -> VarId {
        if let Some((vcode::Op::MakeSegdes, &[lengths])) = self.definition(segments) {
            return lengths;
        }
        let space = self.space_of(segments);
        if let Some(Constant::Segdes(values)) = self.scalar_of(segments) {
            return self.constant(Constant::Int(values), space);
        }
        self.one(Op::Vector(vcode::Op::Lengths, Type::Int), smallvec![segments], Type::Int, space)
    }

    pub(crate) fn make_segdes(&mut self, lengths: VarId) -> VarId {
        if let Some((vcode::Op::Lengths, &[segments])) = self.definition(lengths) {
            return segments;
        }
        let space = self.space_of(lengths);
        if let Some((Op::Const(Constant::Int(values)), _)) = &self.definitions[lengths] {
            let values = values.clone();
            return self.constant(Constant::Segdes(values), space);
        }
        self.one(Op::Vector(vcode::Op::MakeSegdes, Type::Segdes), smallvec![lengths], Type::Segdes, space)
    }

    /// Distributes values over segments into a space.
    pub(crate) fn dist(&mut self, values: VarId, segments: VarId, space: SpaceId) -> VarId {
        let ty = self.ty_of(values);
        self.one(Op::Vector(vcode::Op::Distribute, ty), smallvec![values, segments], ty, space)
    }

    pub(crate) fn index(&mut self, start: VarId, step: VarId, segments: VarId, space: SpaceId) -> VarId {
        self.one(Op::Vector(vcode::Op::Index, Type::Int), smallvec![start, step, segments], Type::Int, space)
    }

    /// Adds any other operation with one result.
    pub(crate) fn vector(&mut self, op: vcode::Op, ty: Type, args: &[VarId], space: SpaceId) -> VarId {
        self.one(Op::Vector(op, ty), args.into(), ty, space)
    }

    pub(crate) fn pack(&mut self, values: VarId, flags: VarId, segments: VarId, space: SpaceId) -> (VarId, VarId) {
        let (ty, outer) = (self.ty_of(values), self.space_of(segments));
        let vars =
            self.push(Op::Vector(vcode::Op::Pack, ty), smallvec![values, flags, segments], &[(ty, space), (Type::Segdes, outer)]);
        (vars[0], vars[1])
    }

    /// Adds an operation in its simplest form.
    pub(crate) fn simplified(&mut self, op: vcode::Op, ty: Type, args: Vars, results: &[(Type, SpaceId)]) -> Vars {
        match (op, &args[..], results) {
            (vcode::Op::Lengths, &[segments], _) => smallvec![self.lengths(segments)],
            (vcode::Op::MakeSegdes, &[lengths], _) => smallvec![self.make_segdes(lengths)],
            (vcode::Op::Distribute, &[values, segments], &[(_, space)]) => smallvec![self.dist(values, segments, space)],
            _ if op.is_elementwise() => smallvec![self.element(op, ty, &args)],
            _ => self.push(Op::Vector(op, ty), args, results),
        }
    }

    pub(crate) fn check(&mut self, check: vcode::Check, args: &[VarId]) {
        self.push(Op::Check(check), args.into(), &[]);
    }
}
