//! Pack: the elements selected by flags, and their number.

use crate::expr::amount::Amount;
use crate::expr::apply::{Typing, with_lengths};
use crate::expr::check::same_context;
use crate::expr::elementwise::Elementwise;
use crate::expr::error::{Error, Result};
use crate::expr::host_array::HostArray;
use crate::expr::node::{Length, Node};
use crate::expr::op::zeros;
use crate::expr::operation::{Application, Extent, Feed, Operation, OperationPattern, PatternParts, SharedKernel};
use crate::expr::parsed_call::ParsedCall;
use crate::expr::shape::Shape;
use crate::expr::spelling::Spelling;
use crate::limits::MAX_LINES;
use broadloom_scalar::{Builder, Element, Lanes, Literal, Type};
use broadloom_skeleton::{Boundary, Pack as Kernel, Sink};
use smallvec::{SmallVec, smallvec};

/// Selected elements of all inputs except the first, which has the flags. They are contiguous; the other
/// elements or arbitrary ones follow. The last result is the number of selected elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Pack {
    /// True if the other elements follow.
    rest: bool,
    /// Number of packed lines. It is also the number of the result that counts the elements.
    lines: u8,
}

impl Node {
    /// Returns the elements of a line whose flag is true. Only the device knows their number; nothing waits.
    /// See [`Length`].
    pub fn pack(&self, chosen: &Node) -> Result<Node> {
        let (values, count) = self.pack_counted(chosen)?;
        if values.bound().is_empty() {
            return Ok(values);
        }
        let length = Length::of(count, values.bound().size());
        Ok(values.with_length(Some(length)))
    }

    /// Returns the elements of a line whose flag is true, at the start of a line of the same length, and
    /// their number, a `u32`. The elements after them are arbitrary. Nothing waits.
    pub fn pack_counted(&self, chosen: &Node) -> Result<(Node, Node)> {
        self.packed(chosen, Pack { rest: false, lines: 1 })
    }

    /// Returns the elements of a line whose flag is true, at the start of a line of the same length, and
    /// their number as a length. The elements after them are arbitrary. This line must not be empty. Nothing
    /// waits.
    pub fn pack_measured(&self, chosen: &Node) -> Result<(Node, Length)> {
        let (values, count) = self.pack_counted(chosen)?;
        if values.bound().is_empty() {
            return Err(values.refused("pack", "a line without elements has no length of the device"));
        }
        let length = Length::of(count, values.bound().size());
        Ok((values, length))
    }

    /// Returns the elements of a line whose flag is true, then all others, both in their order; and the
    /// number of the former, a `u32`. Nothing waits.
    pub fn partition(&self, chosen: &Node) -> Result<(Node, Node)> {
        self.packed(chosen, Pack { rest: true, lines: 1 })
    }

    fn packed(&self, chosen: &Node, pack: Pack) -> Result<(Node, Node)> {
        let context = same_context(&pack.name(), &[self, chosen])?;
        let inputs = with_lengths(&pack, &[chosen, self])?;
        let [chosen, line] = [&inputs[0], &inputs[1]];
        pack.results(&[chosen, line])?;
        if line.bound().is_empty() {
            return Ok((line.clone(), Node::fill(context, Shape::from([]), &zeros(Type::U32))?));
        }
        let name = pack.name();
        match <[Node; 2]>::try_from(Node::apply(pack, &[chosen, line])?) {
            Ok([values, count]) => Ok((values, count)),
            Err(_) => Err(Error::Plan { what: name, reason: "expected elements and their number".into() }),
        }
    }

    /// Returns the elements of lines whose flag is true, each at the start of a line of the same length, and
    /// their number, a `u32`. The elements after them are arbitrary. The lines are packed in one pass, or a
    /// few if there are many. Nothing waits.
    pub fn pack_lines(chosen: &Node, lines: &[&Node]) -> Result<(Vec<Node>, Node)> {
        let (mut packed, mut count) = (vec![], None);
        for lines in lines.chunks(MAX_LINES) {
            let pack = Pack { rest: false, lines: lines.len() as u8 };
            let inputs: SmallVec<[&Node; 4]> = std::iter::once(chosen).chain(lines.iter().copied()).collect();
            same_context(&pack.name(), &inputs)?;
            let inputs = with_lengths(&pack, &inputs)?;
            let inputs: SmallVec<[&Node; 4]> = inputs.iter().collect();
            pack.results(&inputs)?;
            if inputs[0].bound().is_empty() {
                packed.extend(inputs[1..].iter().map(|line| (*line).clone()));
                continue;
            }
            let mut results = Node::apply(pack, &inputs)?;
            let own = results.pop();
            packed.append(&mut results);
            count = count.or(own);
        }
        let count = match count {
            Some(count) => count,
            None => chosen.pack_counted(chosen)?.1,
        };
        Ok((packed, count))
    }

    /// Returns the elements of a line whose flag is true, padded with a value to the length of the line, and
    /// their number, a `u32`. Nothing waits.
    pub fn pack_padded(&self, chosen: &Node, value: &[Literal]) -> Result<(Node, Node)> {
        let inputs = with_lengths(&Pack { rest: false, lines: 1 }, &[chosen, self])?;
        let (values, count) = inputs[1].pack_counted(&inputs[0])?;
        if values.bound().is_empty() {
            return Ok((values, count));
        }
        let f = Builder::function("packed");
        let (place, found) = (f.parameter("place", Type::I64), f.parameter("count", Type::U32));
        let place = f.select(f.lt(place, f.convert(found, Type::I64)), place, -1i64);
        let function = f.finish_function(&[place])?;
        let places = inputs[1].position_like(0, Element::I64)?;
        let places = Node::elementwise(Elementwise::Call(function, 0), &[&places, &count])?;
        Ok((values.gather(&[&places], &Boundary::Constant(value.into()))?, count))
    }
}

/// Reads `values, count = pack(chosen, x)`, also of several lines. `partition` appends all other elements.
pub(super) fn read(call: &ParsedCall<'_>) -> Result<Vec<Node>> {
    let inputs = call.inputs();
    let [chosen, lines @ ..] = &inputs[..] else { return Err(call.error("expected flags and a line")) };
    match lines {
        [line] => {
            let (values, count) = line.packed(chosen, Pack { rest: call.name() == "partition", lines: 1 })?;
            Ok(vec![values, count])
        }
        [_, _, ..] if call.name() == "pack" && lines.len() <= MAX_LINES => {
            let (mut packed, count) = Node::pack_lines(chosen, lines)?;
            packed.push(count);
            Ok(packed)
        }
        _ => Err(call.error(format!("expected flags and a line, or for `pack` up to {MAX_LINES} lines"))),
    }
}

impl Typing for Pack {
    fn results(&self, inputs: &[&Node]) -> Result<Vec<(Type, Shape)>> {
        let chosen = inputs[0];
        inputs[1..].iter().try_for_each(|values| values.check_line(&self.name()))?;
        chosen.check_type(&self.name(), Type::BOOL)?;
        inputs[1..].iter().try_for_each(|values| values.check_shape_of(&self.name(), chosen))?;
        if Amount::from(i64::from(u32::MAX)).is_less(&chosen.bound().size()) {
            return Err(chosen.refused(&self.name(), "fewer than 2^32 elements can be counted"));
        }
        let lines = inputs[1..].iter().map(|values| (values.ty(), values.bound().clone()));
        Ok(lines.chain([(Type::U32, Shape::from([]))]).collect())
    }
}

impl Operation for Pack {
    fn name(&self) -> String {
        if self.rest { "partition".into() } else { "pack".into() }
    }

    fn spelling(&self) -> Option<Spelling> {
        Some(Spelling::new(self.name()))
    }

    fn extents(&self, result: u8, _: &[usize], rank: usize) -> SmallVec<[Extent; 4]> {
        match result {
            count if count == self.lines => SmallVec::new(),
            _ if self.rest => Extent::all_of(1, rank),
            _ => smallvec![Extent::New(0); rank],
        }
    }

    fn counted_by(&self, result: u8) -> Option<u8> {
        (!self.rest && result < self.lines).then_some(self.lines)
    }

    fn alike(&self, inputs: usize) -> SmallVec<[usize; 4]> {
        (0..inputs).collect()
    }

    fn absent(&self, types: &[Type]) -> SmallVec<[Option<Lanes>; 4]> {
        types.iter().map(|ty| Some(zeros(*ty))).collect()
    }

    fn naive(&self, result: u8, inputs: &[&HostArray], ty: Type, shape: &Shape) -> Result<HostArray> {
        let (chosen, others): (Vec<usize>, Vec<usize>) =
            (0..inputs[0].lanes.len()).partition(|index| inputs[0].lanes[*index].bits() != 0);
        let mut lanes = vec![];
        if result == self.lines {
            lanes.push(Literal::from(chosen.len() as u32));
        } else {
            chosen.iter().for_each(|index| lanes.extend(inputs[usize::from(result) + 1].at(*index)));
            others.iter().filter(|_| self.rest).for_each(|index| lanes.extend(inputs[usize::from(result) + 1].at(*index)));
            lanes.resize(shape.count() * ty.lanes(), Literal::zero(ty.element()));
        }
        Ok(HostArray { ty, shape: shape.clone(), lanes })
    }

    /// Returns one feed: the flags and the used lines. Unused lines are not packed.
    fn feeds(&self, application: &Application) -> Vec<Feed> {
        let wanted = (0..self.lines).filter(|line| application.wanted.contains(line)).map(|line| usize::from(line) + 1);
        vec![Feed::new(std::iter::once(0).chain(wanted), true)]
    }

    fn visits_all(&self) -> bool {
        true
    }

    fn pattern(&self, mut parts: PatternParts) -> Result<OperationPattern> {
        let rest = self.rest && parts.application.wanted.contains(&0);
        Ok(OperationPattern::One(Kernel { source: parts.source()?, sink: Sink::STORE, rest }.into()))
    }

    /// Returns no values: the number of elements is not known, so the pattern stores them.
    fn values(&self, _: &Application) -> Vec<Type> {
        vec![]
    }

    fn joining(&self) -> SharedKernel {
        SharedKernel::Results
    }

    fn always(&self) -> Option<(u8, Type, Shape)> {
        Some((self.lines, Type::U32, Shape::from([])))
    }
}
