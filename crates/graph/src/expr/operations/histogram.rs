//! Histogram: the number of elements in each bin.

use crate::expr::apply::Typing;
use crate::expr::check::possible;
use crate::expr::error::Result;
use crate::expr::host_array::HostArray;
use crate::expr::length::nowhere;
use crate::expr::node::Node;
use crate::expr::operation::{Application, Feed, Operation, OperationPattern, PatternParts};
use crate::expr::parsed_call::ParsedCall;
use crate::expr::shape::Shape;
use crate::expr::spelling::Spelling;
use broadloom_scalar::{Element, Lanes, Literal, Type};
use broadloom_skeleton::Histogram as Kernel;
use smallvec::{SmallVec, smallvec};
use std::hash::{Hash, Hasher};

/// Number of input elements that fall into each bin, as `u32`.
#[derive(Clone, Debug)]
struct Histogram {
    bins: usize,
}

impl Histogram {
    /// Returns the room for bins in shared memory, on which the code depends.
    fn room(&self) -> Option<u32> {
        Kernel::room(self.bins as u64)
    }
}

/// Equality up to the number of bins, which is a size.
impl PartialEq for Histogram {
    fn eq(&self, other: &Histogram) -> bool {
        self.room() == other.room()
    }
}

impl Eq for Histogram {}

impl Hash for Histogram {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.room().hash(state);
    }
}

impl Node {
    /// Counts the elements of each bin. The elements are bin numbers, integers; those outside the bins are
    /// not counted.
    pub fn histogram(&self, bins: usize) -> Result<Node> {
        let shape = Shape::from(bins);
        possible("histogram", &shape)?;
        self.check_integers("histogram")?;
        if bins > i32::MAX as usize {
            return Err(self.refused("histogram", format!("{bins} bins, and at most 2^31 - 1 are possible")));
        }
        if self.bound().is_empty() || bins == 0 {
            return Node::fill(self.context(), shape, &[Literal::zero(Element::U32)]);
        }
        Node::apply_one(Histogram { bins }, &[&self.signed_with_length()?])
    }
}

/// Reads `histogram(x, bins: 10)`.
pub(super) fn read(call: &ParsedCall<'_>) -> Result<Vec<Node>> {
    let [input] = call.exactly()?;
    Ok(vec![input.histogram(call.number("bins")?)?])
}

impl Typing for Histogram {
    fn results(&self, _: &[&Node]) -> Result<Vec<(Type, Shape)>> {
        Ok(vec![(Type::U32, Shape::from(self.bins))])
    }
}

impl Operation for Histogram {
    fn name(&self) -> String {
        "histogram".into()
    }

    fn spelling(&self) -> Option<Spelling> {
        Some(Spelling::new("histogram").number("bins", self.bins))
    }

    fn absent(&self, types: &[Type]) -> SmallVec<[Option<Lanes>; 4]> {
        smallvec![nowhere(types[0])]
    }

    fn naive(&self, _: u8, inputs: &[&HostArray], ty: Type, shape: &Shape) -> Result<HostArray> {
        let mut counts = vec![0u32; shape.count()];
        for bin in &inputs[0].lanes {
            if let Some(count) = bin.as_i128().and_then(|bin| usize::try_from(bin).ok()).and_then(|bin| counts.get_mut(bin)) {
                *count += 1;
            }
        }
        Ok(HostArray { ty, shape: shape.clone(), lanes: counts.into_iter().map(Literal::from).collect() })
    }

    fn feeds(&self, _: &Application) -> Vec<Feed> {
        vec![Feed::new([0], true)]
    }

    fn pattern(&self, mut parts: PatternParts) -> Result<OperationPattern> {
        let (domain, source, room) = (parts.domain, parts.source()?, self.room());
        Ok(OperationPattern::One(Kernel { domain, source, sink: parts.sink, room }.into()))
    }

    fn values(&self, application: &Application) -> Vec<Type> {
        vec![if application.wide { Type::U64 } else { Type::U32 }]
    }

    /// Returns the number of elements, and of bins.
    fn sizes(&self, domain: &[u64], _: &[&Shape], result: &Shape) -> Vec<u64> {
        domain.iter().copied().chain([result.count() as u64]).collect()
    }
}
