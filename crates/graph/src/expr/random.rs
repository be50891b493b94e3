//! Nodes of random numbers.

use crate::expr::check::possible;
use crate::expr::elementwise::Elementwise;
use crate::expr::error::{Error, Result};
use crate::expr::node::{Context, Node};
use crate::expr::shape::Shape;
use broadloom_scalar::{Builder, Element, Type};
use broadloom_skeleton::random;

impl Node {
    /// Creates an array of random numbers in the range 0 to 1, without 1, of type `f32` or `f64`. A seed
    /// gives equal numbers on every device.
    pub fn random(context: &Context, shape: Shape, element: Element, seed: u64) -> Result<Node> {
        possible("random", &shape)?;
        let f = Builder::function("random");
        let (position, key) = (f.parameter("position", Type::U64), f.parameter("seed", Type::U64));
        let words = random::words_at(&f, position, key, 0);
        let result = match element {
            Element::F32 => random::uniform_f32(&f, words[0]),
            Element::F64 => random::uniform_f64(&f, words[0], words[1]),
            other => return Err(Error::Type { operation: "random".into(), ty: other.into() }),
        };
        let function = f.finish_function(&[result])?;
        let places = Node::position(context, Shape::from_amounts(&[shape.size()]), 0, Element::U64)?;
        let seed = Node::fill(context, Shape::from([]), &[seed.into()])?;
        Node::elementwise(Elementwise::Call(function, 0), &[&places, &seed])?.reshape(shape)
    }
}
