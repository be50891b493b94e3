//! Pack: the elements at chosen positions, and how many they are.

use crate::amount::Amount;
use crate::build::same_context;
use crate::error::{Error, Result};
use crate::length::Length;
use crate::naive::HostArray;
use crate::node::Node;
use crate::op::Elementwise;
use crate::operation::{Extent, Feed, Form, Joining, Operation, Parts, Site};
use crate::shape::Shape;
use crate::text::{Call, Spelling};
use crate::view::Boundary;
use broadloom_scalar::{Builder, Element, Lanes, Literal, Type};
use broadloom_skeleton::{Pack as Kernel, Sink};
use smallvec::{SmallVec, smallvec};

/// The elements of the second input where the first is true, one behind the other, then all others or anything; and how many the former are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Pack {
    /// Whether all others follow.
    rest: bool,
}

/// The result that holds the elements.
const VALUES: u8 = 0;
/// The result that holds their number.
const COUNT: u8 = 1;

impl Node {
    /// The elements of a line where another is true. Only the device knows how many they are; nothing waits. See [`Length`].
    pub fn pack(&self, chosen: &Node) -> Result<Node> {
        let (values, count) = self.pack_counted(chosen)?;
        if self.bound().is_empty() {
            return Ok(values);
        }
        let length = Length::of(count, self.bound().size());
        Ok(values.with_length(Some(length)))
    }

    /// The elements of a line where another is true, at the start of a line as long as this one, and how many they are, a `u32`. What follows them is anything. Nothing
    /// waits.
    pub fn pack_counted(&self, chosen: &Node) -> Result<(Node, Node)> {
        self.packed(chosen, Pack { rest: false })
    }

    /// The elements of a line where another is true, then all others, both in their order; and how many the former are, a `u32`. Nothing waits.
    pub fn partition(&self, chosen: &Node) -> Result<(Node, Node)> {
        self.packed(chosen, Pack { rest: true })
    }

    fn packed(&self, chosen: &Node, pack: Pack) -> Result<(Node, Node)> {
        let context = same_context(&pack.name(), &[self, chosen])?;
        pack.results(&[chosen, self])?;
        if self.bound().is_empty() {
            return Ok((self.clone(), Node::fill(context, Shape::from([]), &[Literal::zero(Element::U32)])?));
        }
        let name = pack.name();
        match <[Node; 2]>::try_from(Node::apply(pack, &[chosen, self])?) {
            Ok([values, count]) => Ok((values, count)),
            Err(_) => Err(Error::Plan { what: name, reason: "elements and their number are wanted".into() }),
        }
    }

    /// The elements of a line where another is true, then a value up to the length of the line; and how many there are, a `u32`. Nothing waits.
    pub fn pack_padded(&self, chosen: &Node, value: &[Literal]) -> Result<(Node, Node)> {
        let (values, count) = self.pack_counted(chosen)?;
        if self.bound().is_empty() {
            return Ok((values, count));
        }
        let f = Builder::function("packed");
        let (place, found) = (f.parameter("place", Type::I64), f.parameter("count", Type::U32));
        let place = f.select(f.lt(place, f.convert(found, Type::I64)), place, -1i64);
        let function = f.finish_function(&[place])?;
        let places = self.position_like(0, Element::I64)?;
        let places = Node::elementwise(Elementwise::Call(function, 0), &[&places, &count])?;
        Ok((values.gather(&[&places], &Boundary::Constant(value.into()))?, count))
    }
}

/// `values, count = pack(chosen, x)`, or `partition`, which has all others behind them.
pub(super) fn read(call: &Call<'_>) -> Result<Vec<Node>> {
    let [chosen, input] = call.exactly()?;
    let (values, count) = input.packed(chosen, Pack { rest: call.name() == "partition" })?;
    Ok(vec![values, count])
}

impl Operation for Pack {
    fn name(&self) -> String {
        if self.rest { "partition".into() } else { "pack".into() }
    }

    fn spelling(&self) -> Option<Spelling> {
        Some(Spelling::new(self.name()))
    }

    fn results(&self, inputs: &[&Node]) -> Result<Vec<(Type, Shape)>> {
        let (chosen, values) = (inputs[0], inputs[1]);
        values.line(&self.name())?;
        if chosen.ty() != Type::BOOL {
            return Err(Error::Types { operation: self.name(), left: Type::BOOL, right: chosen.ty() });
        }
        if chosen.bound() != values.bound() {
            let (left, right) = (values.bound().clone(), chosen.bound().clone());
            return Err(Error::Shapes { operation: self.name(), left, right });
        }
        if Amount::from(i64::from(u32::MAX)).is_less(&values.bound().size()) {
            let reason = "fewer than 2^32 elements can be counted".to_owned();
            return Err(Error::Range { operation: self.name(), shape: values.bound().clone(), reason });
        }
        Ok(vec![(values.ty(), values.bound().clone()), (Type::U32, Shape::from([]))])
    }

    fn extents(&self, result: u8, _: &[usize], rank: usize) -> SmallVec<[Extent; 4]> {
        match result {
            COUNT => SmallVec::new(),
            _ if self.rest => Extent::all_of(1, rank),
            _ => smallvec![Extent::New(0); rank],
        }
    }

    fn alike(&self, _: usize) -> SmallVec<[usize; 4]> {
        smallvec![0, 1]
    }

    fn absent(&self, types: &[Type]) -> SmallVec<[Option<Lanes>; 4]> {
        smallvec![
            Some(smallvec![Literal::from(false)]),
            Some(SmallVec::from_elem(Literal::zero(types[1].element()), types[1].lanes()))
        ]
    }

    fn naive(&self, result: u8, inputs: &[&HostArray], ty: Type, shape: &Shape) -> Result<HostArray> {
        let (chosen, others): (Vec<usize>, Vec<usize>) =
            (0..inputs[0].lanes.len()).partition(|index| inputs[0].lanes[*index].bits() != 0);
        let mut lanes = vec![];
        if result == COUNT {
            lanes.push(Literal::from(chosen.len() as u32));
        } else {
            chosen.iter().for_each(|index| lanes.extend(inputs[1].at(*index)));
            others.iter().filter(|_| self.rest).for_each(|index| lanes.extend(inputs[1].at(*index)));
            lanes.resize(shape.count() * ty.lanes(), Literal::zero(ty.element()));
        }
        Ok(HostArray { ty, shape: shape.clone(), lanes })
    }

    /// Where only the number is wanted nothing is packed.
    fn feeds(&self, site: &Site) -> Vec<Feed> {
        vec![Feed::new(0..if site.wanted.contains(&VALUES) { 2 } else { 1 }, true)]
    }

    fn pattern(&self, mut parts: Parts) -> Result<Form> {
        let rest = self.rest && parts.site.wanted.contains(&VALUES);
        Ok(Form::One(Kernel { source: parts.source()?, sink: Sink::STORE, rest }.into()))
    }

    /// It is not known how many elements there are, so the pattern stores them.
    fn values(&self, _: &Site) -> Vec<Type> {
        vec![]
    }

    fn joining(&self) -> Joining {
        Joining::Results
    }

    fn always(&self) -> Option<(u8, Type, Shape)> {
        Some((COUNT, Type::U32, Shape::from([])))
    }
}
