//! Window: a function of the elements around every position, with a declared window.
//!
//! Unlike in [`Node::compute`], the window is declared, so a machine can stage it in shared memory.

use crate::expr::apply::Typing;
use crate::expr::check::same_context;
use crate::expr::elementwise::check_size;
use crate::expr::error::{Error, Result};
use crate::expr::host_array::HostArray;
use crate::expr::node::Node;
use crate::expr::operation::{Application, Extent, Feed, Operation, OperationPattern, PatternParts, SharedKernel};
use crate::expr::parsed_call::ParsedCall;
use crate::expr::shape::Shape;
use crate::expr::spelling::{Setting, Spelling};
use crate::limits::MOST_OPERATIONS;
use broadloom_scalar::{AccessorKind, Environment, Function, Lanes, Literal, Type};
use broadloom_skeleton::{Boundary, Staging, Tile, TiledStencil};
use smallvec::SmallVec;

/// Function of the elements around a position. The inputs are the arrays, then the elements read at the
/// position.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Window {
    function: Function,
    reach: Vec<(u32, u32)>,
    boundary: Boundary<Vec<Lanes>>,
    staging: Staging,
}

impl Node {
    /// Computes a function of the elements around every position of arrays of one shape. Returns its results
    /// as arrays.
    ///
    /// The parameters of the function are the indices of the position, then an element of each array of
    /// `beside`, which is broadcast to the shape. It has one window for each of the arrays, of their rank.
    /// `reach` declares for each axis the distances before and after the position that it reads; larger
    /// offsets are clamped to these. A constant boundary has a value for each array.
    pub fn window(
        function: &Function,
        arrays: &[&Node],
        beside: &[&Node],
        reach: &[(u32, u32)],
        boundary: &Boundary<Vec<Lanes>>,
    ) -> Result<Vec<Node>> {
        Node::window_in(function, arrays, beside, reach, boundary, Staging::Chosen)
    }

    /// Computes a function like [`Node::window`], and selects whether the arrays are staged in shared memory.
    /// A tile that does not fit into the shared memory of the machine is not staged.
    pub fn window_in(
        function: &Function,
        arrays: &[&Node],
        beside: &[&Node],
        reach: &[(u32, u32)],
        boundary: &Boundary<Vec<Lanes>>,
        staging: Staging,
    ) -> Result<Vec<Node>> {
        let name = function.name().to_owned();
        same_context(&name, &[arrays, beside].concat())?;
        check_size(function, MOST_OPERATIONS)?;
        let Some(first) = arrays.first() else {
            return Err(Error::Plan { what: name, reason: "a window of no array".into() });
        };
        let shape = first.shape();
        let bad = |reason: String| Err(Error::Range { operation: name.clone(), shape: shape.clone(), reason });
        for array in arrays {
            if array.shape() != shape {
                return Err(Error::Shapes { operation: name, left: shape.clone(), right: array.shape().clone() });
            }
        }
        if shape.rank() == 0 || reach.len() != shape.rank() {
            return bad(format!("the window is declared along {} axes", reach.len()));
        }
        let takes: Vec<Type> = function.parameters().iter().map(|parameter| parameter.ty).collect();
        let indices = takes.get(..shape.rank()).unwrap_or_default();
        let is_index = indices.first().is_some_and(|ty| matches!(*ty, Type::I32 | Type::U32 | Type::I64 | Type::U64));
        let given: Vec<Type> = beside.iter().map(|node| node.ty()).collect();
        if !is_index || indices.iter().any(|ty| *ty != indices[0]) || takes[shape.rank()..] != given {
            return bad("the function does not take a position and an element of each array beside it".into());
        }
        let windows = function.accessors();
        let fits = windows.len() == arrays.len()
            && windows.iter().zip(arrays).all(|(window, array)| {
                window.kind == AccessorKind::Window && usize::from(window.rank) == shape.rank() && window.ty == array.ty()
            });
        if !fits || function.results().is_empty() || function.results().len() > usize::from(u8::MAX) {
            return bad("the function does not have a window of the arrays' rank for each of them, or no results".into());
        }
        let beside = beside.iter().map(|node| node.broadcast_to(shape)).collect::<Result<Vec<Node>>>()?;
        let inputs: Vec<&Node> = arrays.iter().copied().chain(&beside).collect();
        let window = Window { function: function.clone(), reach: reach.to_vec(), boundary: boundary.clone(), staging };
        Node::apply(window, &inputs)
    }
}

/// Position on the host.
struct WindowPosition<'a> {
    window: &'a Window,
    arrays: &'a [&'a HostArray],
    position: Vec<i64>,
}

impl Environment for WindowPosition<'_> {
    fn window(&mut self, accessor: usize, offsets: &[i128]) -> Option<Lanes> {
        let (array, mut place) = (self.arrays.get(accessor)?, 0);
        for (axis, extent) in array.shape.extents().iter().enumerate() {
            let (before, behind) = self.window.reach[axis];
            let offset = (*offsets.get(axis)?).clamp(-i128::from(before), behind.into()) as i64;
            match self.window.boundary.rule().index(self.position[axis] + offset, *extent as i64) {
                Some(index) => place = place * extent + index as usize,
                None => return self.window.boundary.constant()?.get(accessor).cloned(),
            }
        }
        Some(array.at(place).into())
    }
}

/// Reads `window(arrays, beside, function: @f, reach: [1, 1], outside: clamp)`: `reach` has two numbers for
/// each axis. With `tile: [2, 4]` windows are staged, with this number of columns and rows per thread. With
/// `tile: []` they are not. Without `tile`, they are staged if that is faster.
pub(super) fn read(call: &ParsedCall<'_>) -> Result<Vec<Node>> {
    let (function, inputs) = (call.function("function")?, call.inputs());
    let windows: Vec<Type> = function.accessors().iter().map(|accessor| accessor.ty).collect();
    if inputs.len() < windows.len() || windows.is_empty() {
        return Err(call.error(format!("the function has {} windows, and there are {} inputs", windows.len(), inputs.len())));
    }
    let (arrays, beside) = inputs.split_at(windows.len());
    let staging = match call.has("tile") {
        false => Staging::Chosen,
        true => match call.numbers("tile")?[..] {
            [] => Staging::Never,
            [columns @ 1..=64, rows @ 1..=64] => Staging::Tile(Tile { columns: columns as u32, rows: rows as u32 }),
            _ => return Err(call.error("`tile` has two numbers from 1 to 64, or none")),
        },
    };
    Node::window_in(&function, arrays, beside, &call.reach()?, &call.boundary(&windows)?, staging)
}

impl Typing for Window {
    fn results(&self, inputs: &[&Node]) -> Result<Vec<(Type, Shape)>> {
        Ok(self.function.result_types().into_iter().map(|ty| (ty, inputs[0].shape().clone())).collect())
    }
}

impl Operation for Window {
    fn name(&self) -> String {
        format!("window {}", self.function.name())
    }

    fn spelling(&self) -> Option<Spelling> {
        let reach = self.reach.iter().flat_map(|(before, behind)| [i64::from(*before), i64::from(*behind)]);
        let spelling = Spelling::new("window").with("function", Setting::Function(self.function.clone()));
        let spelling = spelling.with("reach", Setting::Numbers(reach.collect())).boundary(&self.boundary);
        Some(match self.staging {
            Staging::Chosen => spelling,
            Staging::Tile(tile) => spelling.with("tile", Setting::Numbers(vec![tile.columns.into(), tile.rows.into()])),
            Staging::Never => spelling.with("tile", Setting::Numbers(vec![])),
        })
    }

    fn extents(&self, _: u8, _: &[usize], rank: usize) -> SmallVec<[Extent; 4]> {
        Extent::all_of(0, rank)
    }

    fn alike(&self, inputs: usize) -> SmallVec<[usize; 4]> {
        (0..inputs).collect()
    }

    fn naive(&self, result: u8, inputs: &[&HostArray], ty: Type, shape: &Shape) -> Result<HostArray> {
        let (arrays, beside) = inputs.split_at(self.function.accessors().len());
        let types = self.function.result_types();
        let start: usize = types.iter().take(usize::from(result)).map(|ty| ty.lanes()).sum();
        let (strides, mut lanes) = (shape.strides(), vec![]);
        for number in 0..shape.count() {
            let position = strides.iter().zip(shape.extents()).map(|(stride, extent)| (number / stride % extent) as i64);
            let position: Vec<i64> = position.collect();
            let indices = position.iter().zip(self.function.parameters());
            let indices = indices.map(|(index, parameter)| Literal::from_i128(parameter.ty.element(), (*index).into()));
            let arguments: Vec<Literal> = indices.chain(beside.iter().flat_map(|beside| beside.at(number).to_vec())).collect();
            let results = self
                .function
                .evaluate_in(&arguments, &mut WindowPosition { window: self, arrays, position })
                .map_err(Error::from)?;
            lanes.extend(&results[start..start + ty.lanes()]);
        }
        Ok(HostArray { ty, shape: shape.clone(), lanes })
    }

    fn feeds(&self, application: &Application) -> Vec<Feed> {
        let arrays = self.function.accessors().len();
        let beside = (arrays < application.types.len()).then(|| Feed::new(arrays..application.types.len(), false));
        std::iter::once(Feed::new(0..arrays, false)).chain(beside).collect()
    }

    fn pattern(&self, mut parts: PatternParts) -> Result<OperationPattern> {
        let source = parts.source()?;
        let beside = parts.sources.pop();
        let (function, reach, boundary) = (self.function.clone(), self.reach.clone(), self.boundary.clone());
        let (domain, sink, staging) = (parts.domain, parts.sink, self.staging);
        Ok(OperationPattern::One(TiledStencil { domain, source, beside, function, reach, boundary, sink, staging }.into()))
    }

    fn values(&self, _: &Application) -> Vec<Type> {
        self.function.result_types()
    }

    fn joining(&self) -> SharedKernel {
        SharedKernel::Results
    }

    fn rereads(&self) -> bool {
        true
    }
}
