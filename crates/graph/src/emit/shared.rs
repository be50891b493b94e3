//! Values that neighbouring positions share.
//!
//! Calls of a function at several positions of a patch share operations: sums of neighbours have common
//! parts, for example. Equal operations on equal values become one value when functions are inlined, so they
//! count once here.

use super::fused::FusedTraces;
use crate::emit::trace::{ElementIndex, IndexId, Item, ItemId, Trace};
use crate::expr::elementwise::Elementwise;
use crate::hash::QuickMap;
use crate::tape::entries::{Id, Kind};
use broadloom_scalar::{Function, Op, Type};
use broadloom_skeleton::cost;
use smallvec::SmallVec;

/// The values of a patch that its price depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SharedValues {
    /// Cost of operations that calls share, without the first of each.
    pub(crate) saved: u64,
    /// Values that a thread keeps at the same time.
    pub(crate) live: u32,
}

type ValueNumber = u32;

/// A function and the values that it is called with.
type SharedCall = (Function, SmallVec<[ValueNumber; 4]>);

/// Values by number: when each is computed and when it is used last, counted in reads.
#[derive(Default)]
struct Values {
    born: Vec<u32>,
    used: Vec<u32>,
    /// Operations inside of calls, without their operands, and the values that they take.
    known: QuickMap<(Op, Type, SmallVec<[ValueNumber; 3]>), ValueNumber>,
    /// Results of calls.
    calls: QuickMap<SharedCall, SmallVec<[ValueNumber; 2]>>,
    saved: u64,
}

impl Values {
    fn add(&mut self, born: u32) -> ValueNumber {
        self.born.push(born);
        self.used.push(0);
        (self.born.len() - 1) as ValueNumber
    }

    /// Adds a value that is computed as soon as all its operands are.
    fn computed(&mut self, inputs: &[ValueNumber]) -> ValueNumber {
        let time = inputs.iter().map(|input| self.born[*input as usize]).max().unwrap_or(0);
        inputs.iter().for_each(|input| self.used(*input, time));
        self.add(time)
    }

    fn used(&mut self, value: ValueNumber, time: u32) {
        let used = &mut self.used[value as usize];
        *used = time.max(*used);
    }

    /// Adds the result of a call.
    fn call(&mut self, function: &Function, result: usize, inputs: &[ValueNumber]) -> ValueNumber {
        let key = (function.clone(), SmallVec::from_slice(inputs));
        if let Some(results) = self.calls.get(&key) {
            return results.get(result).copied().unwrap_or(0);
        }
        let body = function.body();
        let mut own: Vec<ValueNumber> = Vec::with_capacity(body.nodes().len());
        let Some(nobody) = body.nodes().next().map(|(id, _)| id) else { return 0 };
        for (_, node) in body.nodes() {
            if let Op::Parameter(number) = &node.op {
                let input = inputs.get(*number as usize).copied();
                own.push(input.unwrap_or_else(|| self.add(0)));
                continue;
            }
            let mut operands: SmallVec<[ValueNumber; 3]> = SmallVec::new();
            node.op.each_operand(|operand| operands.push(own[operand.index()]));
            let key = (node.op.with_operands(|_| nobody), node.ty, operands);
            let value = match self.known.get(&key) {
                Some(known) if node.op.is_pure() => {
                    let is_sign = matches!(node.op, Op::Unary(op, _) if cost::is_sign(op, node.ty));
                    self.saved += if is_sign { 0 } else { cost::operation(&node.op) };
                    *known
                }
                _ => {
                    let value = self.computed(&key.2);
                    self.known.insert(key, value);
                    value
                }
            };
            own.push(value);
        }
        let results: SmallVec<[ValueNumber; 2]> = function.results().iter().map(|id| own[id.index()]).collect();
        let found = results.get(result).copied().unwrap_or(0);
        self.calls.insert(key, results);
        found
    }

    /// Returns the maximum number of values that are live at the same time.
    fn most(&self, reads: u32) -> u32 {
        let mut change = vec![0i64; reads as usize + 2];
        for (born, used) in self.born.iter().zip(&self.used).filter(|(born, used)| **born > 0 && used > born) {
            change[*born as usize] += 1;
            change[*used as usize] -= 1;
        }
        let mut live = 0i64;
        let most = change.iter().map(|change| {
            live += change;
            live
        });
        most.max().unwrap_or(0).max(0) as u32
    }
}

impl Trace<'_> {
    /// Returns the function that an item calls, and the number of its result, if the function is straight
    /// code.
    fn callee(&self, item: &Item) -> Option<(&Function, usize)> {
        let Item::Apply(node, _) = item else { return None };
        let Kind::Elementwise(Elementwise::Call(function, result)) = &self.tape().entry(*node).kind else { return None };
        (function.body().blocks().count() == 1).then_some((function, usize::from(*result)))
    }

    /// Returns the values that the positions of some roots share. A thread reads `columns` columns together,
    /// computes a value as soon as its operands are read, and stores results in their order.
    pub(crate) fn shared(&self, roots: &[ItemId], columns: u32) -> SharedValues {
        let mut groups: QuickMap<(Id, SmallVec<[IndexId; 4]>, i64), u32> = QuickMap::default();
        let mut reads = 0u32;
        let mut values = Values::default();
        let mut own: Vec<ValueNumber> = Vec::with_capacity(self.items.len());
        for item in &self.items {
            let mut next = || {
                reads += 1;
                reads
            };
            let value = match item {
                Item::Read { node, place } => {
                    let born = match (self.column_group(*node, place, columns), place) {
                        (Some((group, _)), ElementIndex::Axes(indices)) => {
                            let key = (*node, SmallVec::from_slice(&indices[..indices.len() - 1]), group);
                            *groups.entry(key).or_insert_with(next)
                        }
                        _ => next(),
                    };
                    values.add(born)
                }
                item => {
                    let mut inputs = vec![];
                    self.needed_by_item(item, &mut inputs);
                    let inputs: SmallVec<[ValueNumber; 8]> = inputs.iter().map(|input| own[*input as usize]).collect();
                    match self.callee(item) {
                        Some((function, result)) => values.call(function, result, &inputs),
                        None => values.computed(&inputs),
                    }
                }
            };
            own.push(value);
        }
        let mut stored = 0;
        for root in roots {
            let root = own[*root as usize];
            stored = values.born[root as usize].max(stored);
            values.used(root, stored);
        }
        SharedValues { saved: values.saved, live: values.most(reads) + columns }
    }
}

impl FusedTraces<'_> {
    /// Returns how many values of the interior a thread keeps at the same time.
    pub(crate) fn live(&self, columns: u32) -> u32 {
        self.interior.shared(&self.roots, columns).live
    }
}
