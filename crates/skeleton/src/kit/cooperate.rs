//! Cooperation of the threads of a warp or a block: ordered reductions and scans of one list of values per
//! thread.

use super::Writer;
use crate::operator::Operator;
use broadloom_scalar::{Memory, Shuffle, Type, Value};

/// Arrays in shared memory, one for each value of a list.
#[derive(Clone, Debug)]
pub struct Shared(Vec<(Memory, Type)>);

impl Shared {
    /// Declares arrays of these types with `length` elements each.
    pub fn new(k: &Writer, types: &[Type], length: u32) -> Shared {
        Shared(types.iter().map(|ty| (k.shared(ty.element(), length * ty.lanes() as u32), *ty)).collect())
    }

    /// Returns an array of one type over shared memory that is already declared.
    pub fn over(k: &Writer, memory: Memory, ty: Type) -> Shared {
        Shared(vec![(k.shared_view(memory, ty.element(), 0), ty)])
    }

    /// Loads the values at an index.
    pub fn get(&self, k: &Writer, index: Value) -> Vec<Value> {
        self.0.iter().map(|(memory, ty)| k.load_element(*memory, *ty, index)).collect()
    }

    /// Stores values at an index.
    pub fn set(&self, k: &Writer, index: Value, values: &[Value]) {
        for ((memory, _), value) in self.0.iter().zip(values) {
            k.store_element(*memory, index, *value, broadloom_scalar::Cache::Normal);
        }
    }
}

/// Runs `act` for each lane whose bit is set in a ballot, from the first to the last. All lanes run it
/// together.
pub fn each_lane(k: &Writer, ballot: Value, mut act: impl FnMut(Value)) {
    let left = k.variable_with(ballot);
    k.while_loop(
        || k.ne(k.get(left), 0),
        || {
            let lane = k.trailing_zeros(k.get(left));
            k.set(left, k.and(k.get(left), k.sub(k.get(left), 1)));
            act(lane);
        },
    );
}

/// Combines the values of the first `lanes` lanes, a power of two. Lane 0 has the result. The order of lanes
/// is kept unless the operator is commutative.
///
/// With a commutative operator, distant lanes exchange values first. Both halves of the warp then do the same
/// work, and vector code does it once.
pub fn reduce_warp(k: &Writer, operator: &Operator, values: &[Value], lanes: u32) -> Vec<Value> {
    (0..lanes.ilog2()).fold(values.to_vec(), |values, step| {
        let (shuffle, distance) = match operator.is_commutative() {
            true => (Shuffle::Xor, lanes >> (step + 1)),
            false => (Shuffle::Down, 1 << step),
        };
        let other: Vec<Value> = values.iter().map(|value| k.shuffle(shuffle, *value, distance)).collect();
        operator.combine(k, &values, &other)
    })
}

/// Combines the values of all threads of a block in the order of threads. Thread 0 has the result. All
/// threads of the block must call it. `thread` is the number of the thread. The number of warps must be a
/// power of two.
pub fn reduce_block(k: &Writer, operator: &Operator, values: &[Value], thread: Value, threads: u32) -> Vec<Value> {
    let whole = reduce_warp(k, operator, values, 32);
    let warps = threads / 32;
    if warps <= 1 {
        return whole;
    }
    let shared = Shared::new(k, &operator.types(), warps);
    let lane = k.and(thread, 31);
    k.if_then(k.eq(lane, 0), || shared.set(k, k.shr(thread, 5), &whole));
    k.barrier();
    let mine = shared.get(k, k.and(thread, warps - 1));
    let all = reduce_warp(k, operator, &mine, warps);
    // After this barrier the shared arrays may be overwritten.
    k.barrier();
    all
}

/// Returns for each lane the values of all lanes up to and including it, combined in the order of lanes.
pub fn scan_warp(k: &Writer, operator: &Operator, values: &[Value], lane: Value) -> Vec<Value> {
    let mut values = values.to_vec();
    for distance in [1u32, 2, 4, 8, 16] {
        let before: Vec<Value> = values.iter().map(|value| k.shuffle(Shuffle::Up, *value, distance)).collect();
        let both = operator.combine(k, &before, &values);
        let has = k.ge(lane, distance);
        values = both.iter().zip(&values).map(|(both, own)| k.select_value(has, *both, *own)).collect();
    }
    values
}

/// Scans a warp that is split into parts. `heads` has one bit per lane at which a part starts, and is the
/// same in all lanes. Returns for each lane the values from the start of its part up to and including the
/// lane. Also returns a flag: the part of the lane starts in this warp.
///
/// The lanes that take part in a step are bits of a number too, so only values move between lanes.
pub fn scan_from_heads(k: &Writer, operator: &Operator, values: &[Value], heads: Value, lane: Value) -> (Vec<Value>, Value) {
    let own = k.shl(k.literal(1u32), lane);
    let among = |lanes: Value| k.ne(k.and(lanes, own), 0);
    let step = |values: &[Value], distance: u32, lanes: Value| {
        let left: Vec<Value> = values.iter().map(|value| k.shuffle(Shuffle::Up, *value, distance)).collect();
        choose(k, among(lanes), &operator.combine(k, &left, values), values)
    };
    let mut lanes = vec![k.and(k.not(heads), u32::MAX - 1)];
    for distance in [1u32, 2, 4, 8] {
        let reach = lanes[lanes.len() - 1];
        lanes.push(k.and(reach, k.shl(reach, distance)));
    }
    let values = (0..3).fold(values.to_vec(), |values, number| step(&values, 1 << number, lanes[number]));
    // Steps of distance 8 and 16 are needed only if a part has more than 8 lanes.
    let far = || (3..5).fold(values.clone(), |values, number| step(&values, 1 << number, lanes[number]));
    let scanned = k.choose_list(k.ne(lanes[3], 0), far, || values.clone());
    // All bits below the first head. All bits if there is no head.
    let before = k.sub(k.and(heads, k.sub(0, heads)), 1);
    (scanned, k.not(among(before)))
}

/// Returns the number of the highest set bit, or 0 if no bit is set.
pub(crate) fn last_bit(k: &Writer, bits: Value) -> Value {
    k.sub(31u32, k.leading_zeros(k.or(bits, 1)))
}

/// Selects one of two lists of values.
pub(crate) fn choose(k: &Writer, condition: Value, yes: &[Value], no: &[Value]) -> Vec<Value> {
    yes.iter().zip(no).map(|(yes, no)| k.select_value(condition, *yes, *no)).collect()
}

/// Shifts an inclusive scan of a warp by one lane, which makes it exclusive. Lane 0 gets the identity.
pub fn shift_warp(k: &Writer, operator: &Operator, values: &[Value], lane: Value) -> Vec<Value> {
    let first = k.eq(lane, 0);
    let nothing = operator.nothing(k);
    let before = values.iter().map(|value| k.shuffle(Shuffle::Up, *value, 1));
    before.zip(nothing).map(|(before, nothing)| k.select_value(first, nothing, before)).collect()
}

/// Broadcasts the values of one lane to all lanes.
pub fn broadcast(k: &Writer, values: &[Value], lane: u32) -> Vec<Value> {
    values.iter().map(|value| k.shuffle(Shuffle::Index, *value, lane)).collect()
}
