//! Arrays on the host.

use crate::expr::error::Result;
use crate::expr::shape::Shape;
use broadloom_scalar::{Lanes, Literal, Type};

/// Array on the host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostArray {
    /// The type of its elements.
    pub ty: Type,
    /// The extents, outermost axis first.
    pub shape: Shape,
    /// All lanes of all elements, contiguous.
    pub lanes: Vec<Literal>,
}

impl HostArray {
    /// Creates an array from the bytes of its elements.
    pub fn from_bytes(ty: Type, shape: Shape, bytes: &[u8]) -> HostArray {
        HostArray { ty, shape, lanes: Literal::from_bytes(ty.element(), bytes).collect() }
    }

    /// Returns the bytes of the elements.
    pub fn to_bytes(&self) -> Vec<u8> {
        Literal::to_bytes(&self.lanes)
    }

    /// Creates an array that has one value at every position.
    pub fn filled(ty: Type, shape: Shape, value: &[Literal]) -> HostArray {
        let lanes = value.iter().copied().cycle().take(shape.count() * ty.lanes()).collect();
        HostArray { ty, shape, lanes }
    }

    /// Creates an array from its elements in memory order.
    pub fn of(ty: Type, shape: &Shape, elements: impl Iterator<Item = Result<Lanes>>) -> Result<HostArray> {
        let mut lanes = Vec::with_capacity(shape.count() * ty.lanes());
        for element in elements {
            lanes.extend(element?);
        }
        Ok(HostArray { ty, shape: shape.clone(), lanes })
    }

    /// Returns the lanes of the element with this number in memory order.
    pub fn at(&self, index: usize) -> &[Literal] {
        let lanes = self.ty.lanes();
        &self.lanes[index * lanes..(index + 1) * lanes]
    }

    /// Returns the first elements of a line.
    #[must_use]
    pub fn first(mut self, count: usize) -> HostArray {
        let count = count.min(self.shape.count());
        self.lanes.truncate(count * self.ty.lanes());
        HostArray { shape: Shape::from(count), ..self }
    }

    /// Replaces the element with this number.
    pub fn set(&mut self, index: usize, value: &[Literal]) {
        let lanes = self.ty.lanes();
        self.lanes[index * lanes..(index + 1) * lanes].copy_from_slice(value);
    }
}
