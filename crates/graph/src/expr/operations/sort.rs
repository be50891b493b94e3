//! Sort: sorts lines by keys, as a whole or within short segments.

use crate::expr::apply::Typing;
use crate::expr::check::same_context;
use crate::expr::error::Result;
use crate::expr::host_array::HostArray;
use crate::expr::node::Node;
use crate::expr::op::zeros;
use crate::expr::operation::{Application, Extent, Feed, Operation, OperationPattern, PatternParts, SharedKernel};
use crate::expr::parsed_call::ParsedCall;
use crate::expr::shape::Shape;
use crate::expr::spelling::{Setting, Spelling};
use broadloom_scalar::{Lanes, Literal, Type};
use broadloom_skeleton::cost::{self, KernelWork};
use broadloom_skeleton::{SegmentedSort, Sort as Kernel, SortKey};
use smallvec::{SmallVec, smallvec};
use std::cmp::Ordering;

/// Sort of all inputs, lines, by the first of them as keys; the first key is the most significant. If
/// segments are sorted separately, the last input has their offsets, one more than there are segments.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Sort {
    /// The order of each key.
    keys: SmallVec<[SortKey; 2]>,
    /// Longest segment that the pattern accepts, if there are segments.
    longest: Option<u32>,
}

impl Node {
    /// Sorts lines of one length by keys, the first of which is the most significant. The sort is stable.
    /// Keys come first in the result. NaN comes after all numbers.
    pub fn sort(keys: &[(&Node, SortKey)], values: &[&Node]) -> Result<Vec<Node>> {
        Node::sorted(keys, values, None)
    }

    /// Sorts lines as a whole, or within segments: their offsets, with the longest segment that the pattern
    /// accepts.
    pub(crate) fn sorted(keys: &[(&Node, SortKey)], values: &[&Node], segments: Option<(u32, &Node)>) -> Result<Vec<Node>> {
        let (longest, offsets) = segments.unzip();
        let sort = Sort { keys: keys.iter().map(|(_, key)| *key).collect(), longest };
        let lines = keys.iter().map(|(node, _)| *node).chain(values.iter().copied());
        let inputs: Vec<&Node> = lines.chain(offsets).collect();
        same_context("sort", &inputs[..inputs.len() - usize::from(offsets.is_some())])?;
        Node::apply(sort, &inputs)
    }
}

impl Sort {
    /// Returns the input numbers of the moved lines: the keys, and the values that are used.
    fn moved(&self, application: &Application) -> Vec<usize> {
        let lines = application.types.len() - usize::from(self.longest.is_some());
        (0..lines).filter(|line| *line < self.keys.len() || application.wanted.contains(&(*line as u8))).collect()
    }
}

/// Reads the keys: `ascending`, `descending`, or with the number of significant low bits, `ascending_8`.
fn keys_of(call: &ParsedCall<'_>, lines: usize) -> Result<Vec<SortKey>> {
    let words = call.words("keys")?;
    if words.is_empty() || words.len() > lines {
        return Err(call.error(format!("{} keys for {lines} lines", words.len())));
    }
    let key = |word: &&str| {
        let (order, bits) = word.split_once('_').map_or((*word, None), |(order, bits)| (order, Some(bits)));
        let bits = bits.map(|bits| bits.parse::<u32>().ok().filter(|bits| (1..=64).contains(bits)));
        match (order, bits) {
            ("ascending" | "descending", None | Some(Some(_))) => {
                Ok(SortKey { descending: order == "descending", bits: bits.flatten() })
            }
            _ => Err(call.error(format!("`{word}` is not `ascending`, `descending`, or one of them with bits, `ascending_8`"))),
        }
    };
    words.iter().map(key).collect()
}

/// Reads `sort(key, value, keys: [ascending])`: the first inputs are keys, one for each word; the others are
/// moved with them. `segmented_sort(key, value, offsets, keys: [ascending], longest: 64)`: the last input has
/// the offsets of the segments.
pub(super) fn read(call: &ParsedCall<'_>) -> Result<Vec<Node>> {
    let mut lines = call.inputs();
    let offsets = if call.name() == "segmented_sort" { lines.pop() } else { None };
    let keys = keys_of(call, lines.len())?;
    let values = lines.split_off(keys.len());
    let keys: Vec<(&Node, SortKey)> = lines.into_iter().zip(keys).collect();
    let Some(offsets) = offsets else { return Node::sort(&keys, &values) };
    let longest = if call.has("longest") { Some(call.number("longest")?.into()) } else { None };
    Node::segmented_sort(offsets, longest, &keys, &values)
}

impl Typing for Sort {
    fn results(&self, inputs: &[&Node]) -> Result<Vec<(Type, Shape)>> {
        let lines = &inputs[..inputs.len() - usize::from(self.longest.is_some())];
        for node in lines {
            node.check_line("sort")?;
            lines[0].check_shape_of("sort", node)?;
        }
        lines.iter().take(self.keys.len()).try_for_each(|key| key.check_numbers("sort"))?;
        if self.keys.is_empty() || lines.len() > usize::from(u8::MAX) {
            return Err(
                lines[0].refused("sort", format!("{} keys and {} values", self.keys.len(), lines.len() - self.keys.len()))
            );
        }
        Ok(lines.iter().map(|line| (line.ty(), line.bound().clone())).collect())
    }
}

impl Operation for Sort {
    fn name(&self) -> String {
        if self.longest.is_some() { "segmented sort".into() } else { "sort".into() }
    }

    fn spelling(&self) -> Option<Spelling> {
        let word = |key: &SortKey| {
            let order = if key.descending { "descending" } else { "ascending" };
            key.bits.map_or(order.to_owned(), |bits| format!("{order}_{bits}"))
        };
        let spelling = Spelling::new(if self.longest.is_some() { "segmented_sort" } else { "sort" });
        let spelling = spelling.with("keys", Setting::Words(self.keys.iter().map(word).collect()));
        Some(self.longest.iter().fold(spelling, |spelling, longest| spelling.number("longest", *longest as usize)))
    }

    fn extents(&self, result: u8, _: &[usize], rank: usize) -> SmallVec<[Extent; 4]> {
        Extent::all_of(usize::from(result), rank)
    }

    fn alike(&self, inputs: usize) -> SmallVec<[usize; 4]> {
        (0..inputs - usize::from(self.longest.is_some())).collect()
    }

    fn absent(&self, types: &[Type]) -> SmallVec<[Option<Lanes>; 4]> {
        if self.longest.is_some() {
            return SmallVec::new();
        }
        let last = |(number, ty): (usize, &Type)| {
            let element = ty.element();
            // The sort is stable, so padding after the last element stays there.
            Some(match (self.keys.get(number), element.range()) {
                (None, _) => zeros(*ty),
                (Some(key), Some((low, high))) => smallvec![Literal::from_i128(element, if key.descending { low } else { high })],
                (Some(_), None) => smallvec![Literal::from_f64(element, f64::NAN).unwrap_or(Literal::zero(element))],
            })
        };
        types.iter().enumerate().map(last).collect()
    }

    fn naive(&self, result: u8, inputs: &[&HostArray], ty: Type, shape: &Shape) -> Result<HostArray> {
        let mut order: Vec<usize> = (0..shape.count()).collect();
        let offsets: Vec<usize> = match (self.longest, inputs.last()) {
            (Some(_), Some(offsets)) => offsets.lanes.iter().map(|offset| offset.as_i128().unwrap_or(0) as usize).collect(),
            _ => vec![0, shape.count()],
        };
        for segment in offsets.windows(2) {
            let Some(part) = order.get_mut(segment[0]..segment[1]) else { continue };
            part.sort_by(|a, b| {
                let keys = self.keys.iter().zip(inputs);
                let by_key = keys.map(|(key, input)| compare_keys(input.at(*a)[0], input.at(*b)[0], key.descending));
                by_key.fold(Ordering::Equal, Ordering::then)
            });
        }
        let lanes = order.iter().flat_map(|index| inputs[usize::from(result)].at(*index).iter().copied()).collect();
        Ok(HostArray { ty, shape: shape.clone(), lanes })
    }

    /// Returns the feeds: the moved lines, and the offsets.
    fn feeds(&self, application: &Application) -> Vec<Feed> {
        let offsets = self.longest.map(|_| Feed::new([application.types.len() - 1], true));
        std::iter::once(Feed::new(self.moved(application), true)).chain(offsets).collect()
    }

    fn pattern(&self, mut parts: PatternParts) -> Result<OperationPattern> {
        let (source, keys) = (parts.source()?, self.keys.to_vec());
        Ok(OperationPattern::One(match self.longest {
            None => Kernel { source, keys, sink: parts.sink }.into(),
            Some(longest) => SegmentedSort { source, offsets: parts.source()?, keys, sink: parts.sink, longest }.into(),
        }))
    }

    fn values(&self, application: &Application) -> Vec<Type> {
        self.moved(application).into_iter().map(|line| application.types[line]).collect()
    }

    fn value(&self, application: &Application, result: u8) -> usize {
        self.moved(application).iter().position(|line| *line == usize::from(result)).unwrap_or(0)
    }

    fn joining(&self) -> SharedKernel {
        SharedKernel::Results
    }

    fn sorted_by(&self) -> Option<SortKey> {
        match self.keys[..] {
            [key] if self.longest.is_none() => Some(key),
            _ => None,
        }
    }

    /// Counts the rounds of a radix sort, each of which moves all lines; for short segments, the steps of a
    /// sorting network.
    fn further_work(&self, types: &[Type], sizes: &[u64]) -> KernelWork {
        let count = sizes.first().copied().unwrap_or(0);
        if let Some(longest) = self.longest {
            let levels = u64::from(longest.max(1).next_power_of_two().trailing_zeros());
            let steps = levels * (levels + 1) / 2;
            return KernelWork { operations: count.saturating_mul(steps * cost::NETWORK_STEP), ..KernelWork::default() };
        }
        let bits = self.keys.iter().zip(types).map(|(key, ty)| key.bits.unwrap_or(8 * ty.bytes()));
        let rounds: u64 = bits.map(|bits| u64::from(bits.div_ceil(8))).sum();
        let moved: u64 = types.iter().map(|ty| u64::from(ty.bytes())).sum();
        let bytes = count.saturating_mul(2 * moved * rounds.saturating_sub(1));
        KernelWork { launches: 0, bytes, operations: count.saturating_mul(rounds * cost::SORT_ROUND) }
    }

    /// Returns the length of the lines, and the number of segments.
    fn sizes(&self, domain: &[u64], inputs: &[&Shape], _: &Shape) -> Vec<u64> {
        let offsets = inputs.last().filter(|_| self.longest.is_some());
        let segments = offsets.map(|offsets| offsets.count().saturating_sub(1) as u64);
        domain.iter().copied().chain(segments).collect()
    }
}

/// Compares numbers: -0 before +0, NaN after all numbers in either direction.
fn compare_keys(a: Literal, b: Literal, descending: bool) -> Ordering {
    let order = match (a.as_f64(), b.as_f64()) {
        (Some(x), Some(y)) => match (x.is_nan(), y.is_nan()) {
            (true, true) => return Ordering::Equal,
            (true, false) => return Ordering::Greater,
            (false, true) => return Ordering::Less,
            (false, false) => x.total_cmp(&y),
        },
        _ => a.as_i128().cmp(&b.as_i128()),
    };
    if descending { order.reverse() } else { order }
}
