//! Random graphs with one correct result, or one within a stated tolerance.
//!
//! Floats are the difficulty. Sums are taken in another order and products are fused with sums, so rounded
//! results differ a little. A comparison or a conversion would amplify that. Each node therefore knows a
//! bound of its magnitude, and whether all its values are exact. Rounded values are used in continuous
//! operations only, and are compared with a tolerance derived from the bound.

pub(crate) mod functions;
pub(crate) mod gpu;
mod lengths;

use broadloom_graph::{
    AxisMap, Boundary, Combine, Context, Direction, Elementwise, Extreme, HostArray, Node, Result, Rule, Segments, Shape,
    SortKey, Total, View, naive,
};
pub(crate) use broadloom_random::Random;
use broadloom_scalar::{BinaryOp, Builder, CompareOp, Element, Lanes, Literal, MathFunction, Precision, Type, UnaryOp};

/// Returns the combinations for elements of a type. All types except floats also have an operator whose order
/// matters: the last value that is not zero.
fn ways_to_combine(ty: Type) -> Result<Vec<Combine>> {
    let mut ways: Vec<Combine> = Combine::EVERY.into_iter().filter(|combine| combine.takes(ty)).collect();
    if !ty.element().is_float() {
        let f = Builder::function("last");
        let (x, y) = (f.parameter("x", ty), f.parameter("y", ty));
        let zero = Literal::zero(ty.element());
        let lanes = f.lanes(x).into_iter().zip(f.lanes(y)).map(|(x, y)| f.select(f.eq(y, f.literal(zero)), x, y));
        let last = f.vector(&lanes.collect::<Vec<_>>());
        ways.push(Combine::by(f.finish_function(&[last])?, &vec![zero; ty.lanes()])?);
    }
    Ok(ways)
}

/// Node with facts about its values.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) node: Node,
    /// Upper bound of the magnitude of float values.
    pub(crate) bound: f64,
    /// True if every implementation returns the same bits.
    pub(crate) exact: bool,
    /// Kind of the node, for counts in tests; empty for others.
    pub(crate) kind: &'static str,
}

impl Known {
    fn ty(&self) -> Type {
        self.node.ty()
    }

    /// Returns the maximum distance of a value from the oracle's.
    pub(crate) fn tolerance(&self) -> f64 {
        if self.exact { 0.0 } else { self.bound * 64.0 * epsilon(self.ty().element()) }
    }
}

fn epsilon(element: Element) -> f64 {
    match element {
        Element::F16 => 2f64.powi(-10),
        Element::F32 => 2f64.powi(-23),
        _ => 2f64.powi(-52),
    }
}

/// Returns the largest magnitude up to which integers are exact.
fn exact_limit(element: Element) -> f64 {
    0.25 / epsilon(element)
}

/// Returns the limit of magnitudes of generated values.
fn limit(element: Element) -> f64 {
    match element {
        Element::F16 => 2000.0,
        _ => 1e12,
    }
}

pub(crate) struct Generator<'c> {
    pub(crate) random: Random,
    context: &'c Context,
    pub(crate) pool: Vec<Known>,
    pub(crate) max_extent: usize,
    /// Kind of the nodes that are being made.
    kind: &'static str,
}

impl<'c> Generator<'c> {
    pub(crate) fn new(seed: u64, context: &'c Context) -> Generator<'c> {
        Generator { random: Random::new(seed), context, pool: vec![], max_extent: 6, kind: "" }
    }

    fn shape(&mut self) -> Shape {
        let rank = *self.random.pick(&[0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 5]);
        let most = match rank {
            0..=1 => self.max_extent * 12,
            2 => self.max_extent * 7,
            3 => self.max_extent,
            _ => 3,
        };
        let extents: Vec<usize> = (0..rank)
            .map(|_| match self.random.below(24) {
                0 => 0,
                1..=4 => 1,
                _ => 1 + self.random.below(most),
            })
            .collect();
        Shape::from(extents)
    }

    fn ty(&mut self) -> Type {
        let four = Type::vector(Element::F32, 4).unwrap_or(Type::F32);
        let types = [
            Type::BOOL,
            Type::I8,
            Type::I16,
            Type::I32,
            Type::I64,
            Type::U8,
            Type::U16,
            Type::U32,
            Type::U64,
            Type::F16,
            Type::F32,
            Type::F32,
            Type::F64,
            four,
            Type::I32,
            Type::F32,
        ];
        *self.random.pick(&types)
    }

    fn literal(&mut self, element: Element) -> Literal {
        match element {
            Element::Bool => (self.random.one_in(2)).into(),
            Element::F16 | Element::F32 | Element::F64 => {
                Literal::from_f64(element, self.random.between(-8, 8) as f64 / 2.0).unwrap_or(Literal::zero(element))
            }
            _ if self.random.one_in(2) => Literal::from_i128(element, self.random.between(-4, 12).into()),
            _ => Literal::from_bits(element, self.random.bits()),
        }
    }

    fn value(&mut self, ty: Type) -> Lanes {
        (0..ty.lanes()).map(|_| self.literal(ty.element())).collect()
    }

    fn push(&mut self, node: Node, bound: f64, exact: bool) {
        self.pool.push(Known { node, bound, exact, kind: self.kind });
    }

    pub(crate) fn leaf(&mut self) -> Result<()> {
        let (ty, shape) = (self.ty(), self.shape());
        self.leaf_of(ty, shape)
    }

    fn leaf_of(&mut self, ty: Type, shape: Shape) -> Result<()> {
        let lanes = (0..shape.count() * ty.lanes()).map(|_| self.literal(ty.element())).collect();
        let array = HostArray { ty, shape: shape.clone(), lanes };
        let node = Node::upload(self.context, ty, shape, &array.to_bytes())?;
        self.push(node, 4.0, true);
        Ok(())
    }

    fn any(&mut self) -> Known {
        // Later nodes are chosen more often, so that expressions become deep.
        let (a, b) = (self.random.below(self.pool.len()), self.random.below(self.pool.len()));
        self.pool[a.max(b)].clone()
    }

    /// Returns a node of this type whose shape can be broadcast with another; makes one if there is none.
    fn partner(&mut self, ty: Type, shape: &Shape) -> Result<Known> {
        let fitting: Vec<Known> = self
            .pool
            .iter()
            .filter(|known| known.ty() == ty && known.node.shape().broadcast(shape).is_some_and(|s| s.count() < 6000))
            .cloned()
            .collect();
        if !fitting.is_empty() && !self.random.one_in(6) {
            return Ok(self.random.pick(&fitting).clone());
        }
        if self.random.one_in(2) {
            let value = self.value(ty);
            let shape = if self.random.one_in(2) { Shape::from([]) } else { shape.clone() };
            let node = Node::fill(self.context, shape, &value)?;
            return Ok(Known { node, bound: 4.0, exact: true, kind: "" });
        }
        // Some axes are broadcast.
        let extents: Vec<usize> = shape.extents().iter().map(|extent| if self.random.one_in(4) { 1 } else { *extent }).collect();
        let skip = self.random.below(extents.len() + 1).min(self.random.below(3));
        self.leaf_of(ty, Shape::new(&extents[skip..]))?;
        Ok(self.pool[self.pool.len() - 1].clone())
    }

    /// Makes one more node.
    pub(crate) fn step(&mut self) -> Result<()> {
        match self.random.below(22) {
            0..=6 => self.binary(),
            7..=8 => self.unary(),
            9..=13 => self.view(),
            14 => self.select(),
            15 => self.convert(),
            16 => self.gather(),
            17 => self.shapes(),
            18 if self.random.one_in(2) => self.reduce(),
            18 if self.random.one_in(2) => self.scan(),
            18 if self.random.one_in(2) => self.arrange(),
            18 if self.random.one_in(2) => self.scatter(),
            18 => self.segments(),
            19 if self.random.one_in(3) => self.neighbours(),
            19 => self.function(),
            20 => self.lengths(),
            _ => self.functions_of_arrays(),
        }
    }

    fn binary(&mut self) -> Result<()> {
        let a = self.any();
        let b = self.partner(a.ty(), a.node.shape())?;
        let element = a.ty().element();
        if element.is_float() {
            let op = *self.random.pick(&[BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Min, BinaryOp::Max]);
            let bound = match op {
                BinaryOp::Add | BinaryOp::Sub => a.bound + b.bound,
                BinaryOp::Mul => a.bound * b.bound,
                _ => a.bound.max(b.bound),
            };
            if bound > limit(element) {
                return Ok(());
            }
            // Each product doubles the number of binary places of halves; the limit leaves room for a few
            // products.
            let exact =
                a.exact && b.exact && (bound <= exact_limit(element).sqrt() || matches!(op, BinaryOp::Min | BinaryOp::Max));
            let node = Node::elementwise(Elementwise::Binary(op), &[&a.node, &b.node])?;
            let exact = exact && op != BinaryOp::Mul || exact && a.bound <= 4.0 && b.bound <= 4.0;
            self.push(node, bound, exact);
            if self.random.one_in(4) && a.exact && b.exact && a.ty().is_scalar() {
                let op = *self.random.pick(CompareOp::ALL);
                let node = Node::elementwise(Elementwise::Compare(op), &[&a.node, &b.node])?;
                self.push(node, 1.0, true);
            }
            return Ok(());
        }
        let ops: &[BinaryOp] = if element == Element::Bool {
            &[BinaryOp::And, BinaryOp::Or, BinaryOp::Xor]
        } else {
            &[
                BinaryOp::Add,
                BinaryOp::Sub,
                BinaryOp::Mul,
                BinaryOp::MulHigh,
                BinaryOp::Div,
                BinaryOp::Rem,
                BinaryOp::Min,
                BinaryOp::Max,
                BinaryOp::And,
                BinaryOp::Or,
                BinaryOp::Xor,
                BinaryOp::Shl,
                BinaryOp::Shr,
                BinaryOp::AddSaturating,
                BinaryOp::SubSaturating,
            ]
        };
        let op = if element != Element::Bool && self.random.one_in(5) {
            Elementwise::Compare(*self.random.pick(CompareOp::ALL))
        } else {
            Elementwise::Binary(*self.random.pick(ops))
        };
        let node = Node::elementwise(op, &[&a.node, &b.node])?;
        self.push(node, 1e30, true);
        Ok(())
    }

    fn unary(&mut self) -> Result<()> {
        let a = self.any();
        let element = a.ty().element();
        let (op, bound, exact) = if element.is_float() {
            match self.random.below(6) {
                0 => (Elementwise::Unary(UnaryOp::Neg), a.bound, a.exact),
                1 => (Elementwise::Unary(UnaryOp::Abs), a.bound, a.exact),
                2 if a.exact => (Elementwise::Unary(UnaryOp::Floor), a.bound + 1.0, true),
                3 if a.exact => {
                    let root = Node::elementwise(Elementwise::Unary(UnaryOp::Abs), &[&a.node])?;
                    let node = Node::elementwise(Elementwise::Unary(UnaryOp::Sqrt), &[&root])?;
                    self.push(node, a.bound.max(1.0), false);
                    return Ok(());
                }
                4 if a.exact && a.bound <= 8.0 && matches!(element, Element::F32 | Element::F64) => {
                    let function =
                        *self.random.pick(&[MathFunction::Sin, MathFunction::Cos, MathFunction::Tanh, MathFunction::Exp]);
                    let bound = if function == MathFunction::Exp { 3000.0 } else { 1.0 };
                    (Elementwise::Math(function, Precision::Accurate), bound, false)
                }
                _ => (Elementwise::Unary(UnaryOp::Neg), a.bound, a.exact),
            }
        } else if element == Element::Bool {
            (Elementwise::Unary(UnaryOp::Not), 1.0, true)
        } else {
            let ops =
                [UnaryOp::Neg, UnaryOp::Not, UnaryOp::Abs, UnaryOp::Popcount, UnaryOp::LeadingZeros, UnaryOp::TrailingZeros];
            (Elementwise::Unary(*self.random.pick(&ops)), 1e30, true)
        };
        let node = Node::elementwise(op, &[&a.node])?;
        self.push(node, bound, exact);
        Ok(())
    }

    fn boundary(&mut self, ty: Type) -> Boundary {
        match self.random.below(4) {
            0 => Boundary::Clamp,
            1 => Boundary::Wrap,
            2 => Boundary::Mirror,
            _ => Boundary::Constant(self.value(ty)),
        }
    }

    fn view(&mut self) -> Result<()> {
        let a = self.any();
        let input = a.node.shape().clone();
        let outside = self.boundary(a.ty());
        let rank = input.rank();
        // Axes of the output: those of the input in some order, some dropped, some added.
        let mut order: Vec<usize> = (0..rank).collect();
        if self.random.one_in(3) {
            for i in (1..rank).rev() {
                order.swap(i, self.random.below(i + 1));
            }
        }
        let (mut extents, mut axes) = (vec![], vec![AxisMap::fixed(0); rank]);
        for axis in order {
            let extent = input.extents()[axis] as i64;
            if self.random.one_in(12) {
                axes[axis] = AxisMap { rule: outside.rule(), ..AxisMap::fixed(self.random.between(-1, extent)) };
                continue;
            }
            if self.random.one_in(12) && extents.len() < 5 {
                extents.push(1 + self.random.below(3));
            }
            let stride = *self.random.pick(&[1, 1, 1, 1, 1, -1, 2, -2, 3, 17]);
            let offset = match self.random.below(6) {
                0 => 0,
                1..=3 => self.random.between(-3, 3),
                4 if stride < 0 => extent - 1,
                _ => self.random.between(-30, 30),
            };
            let count = match self.random.below(6) {
                0 => self.random.below(12) as i64,
                1 => extent + self.random.between(0, 4),
                2 => extent * 2,
                _ => extent,
            };
            axes[axis] = AxisMap { source: Some(extents.len() as u8), offset, stride, rule: outside.rule() };
            extents.push(count.min(80) as usize);
        }
        let shape = Shape::from(extents);
        if shape.count() > 6000 || shape.rank() > 5 {
            return Ok(());
        }
        let fill = match &outside {
            Boundary::Constant(fill) => Some(fill.clone()),
            _ => None,
        };
        // Views of empty arrays are refused at the call; they are not tested here.
        let Ok(view) = View::new("random", &input, &axes, shape, fill) else { return Ok(()) };
        let rules = view.axes.iter().any(|map| map.rule != Rule::Inside);
        let node = a.node.view(view)?;
        self.push(node, if rules { a.bound.max(4.0) } else { a.bound }, a.exact);
        Ok(())
    }

    /// Makes a sum of neighbours in an image that is large enough for strips of rows.
    pub(crate) fn neighbours(&mut self) -> Result<()> {
        let is_image = |known: &&Known| {
            let arithmetic = known.ty().element() != Element::Bool;
            arithmetic && matches!(known.node.shape().extents(), [.., rows, columns] if *rows >= 16 && *columns >= 32)
        };
        let images: Vec<Known> = self.pool.iter().filter(is_image).cloned().collect();
        let image = if images.is_empty() || self.random.one_in(3) {
            let ty = *self.random.pick(&[Type::F32, Type::I32, Type::U8, Type::F64]);
            let mut extents = vec![16 + self.random.below(20), 32 + self.random.below(40)];
            if self.random.one_in(4) {
                extents.insert(0, 2);
            }
            self.leaf_of(ty, Shape::from(extents))?;
            self.pool[self.pool.len() - 1].clone()
        } else {
            self.random.pick(&images).clone()
        };
        let terms = 3 + self.random.below(7);
        let bound = image.bound.max(4.0) * terms as f64;
        let element = image.ty().element();
        if element.is_float() && bound > limit(element) {
            return Ok(());
        }
        let (outside, shape) = (self.boundary(image.ty()), image.node.shape().clone());
        let mut sum: Option<Node> = None;
        for _ in 0..terms {
            let near = |axis: usize| if axis + 2 < shape.rank() { 0 } else { 3 };
            let map = |(axis, by): (usize, i64)| AxisMap { offset: by, ..AxisMap::same(axis) };
            let by: Vec<i64> = (0..shape.rank()).map(|axis| self.random.between(-near(axis), near(axis))).collect();
            let axes: Vec<AxisMap> = by.into_iter().enumerate().map(map).collect();
            let term = image.node.affine("shift", &axes, shape.clone(), Some(&outside))?;
            sum = Some(match sum {
                None => term,
                Some(sum) => Node::elementwise(Elementwise::Binary(BinaryOp::Add), &[&sum, &term])?,
            });
        }
        if let Some(sum) = sum {
            self.push(sum, bound, image.exact && (!element.is_float() || bound <= exact_limit(element).sqrt()));
        }
        Ok(())
    }

    /// Makes a block matching: two images compared at several distances, sums of neighbours of the
    /// differences, and the best distance.
    pub(crate) fn matched(&mut self) -> Result<()> {
        let ty = *self.random.pick(&[Type::F32, Type::I32, Type::I64]);
        let (rows, columns) = (16 + self.random.below(20), 32 + self.random.below(40));
        self.leaf_of(ty, Shape::from([rows, columns]))?;
        self.leaf_of(ty, Shape::from([rows, columns]))?;
        let [left, right] = [2, 1].map(|back| self.pool[self.pool.len() - back].node.clone());
        let volume = Shape::from([1 + self.random.below(5), rows, columns]);
        let along = |axis: usize| Node::position(self.context, volume.clone(), axis, Element::I32);
        let (d, y, x) = (along(0)?, along(1)?, along(2)?);
        let op = *self.random.pick(&[BinaryOp::Add, BinaryOp::Sub]);
        let moved = match self.random.below(3) {
            0 => Node::elementwise(Elementwise::Binary(op), &[&d, &x])?,
            _ => Node::elementwise(Elementwise::Binary(op), &[&x, &d])?,
        };
        let outside = self.boundary(ty);
        let seen = right.gather(&[&y, &moved], &outside)?;
        let mut sum = Node::elementwise(Elementwise::Binary(BinaryOp::Sub), &[&left, &seen])?;
        for axis in [1, 2] {
            let reach = 2 + self.random.below(2) as i64;
            let one = sum.clone();
            let outside = if self.random.one_in(4) { self.boundary(ty) } else { Boundary::Clamp };
            for by in (-reach..=reach).filter(|by| *by != 0) {
                let maps: Vec<AxisMap> =
                    (0..3).map(|own| AxisMap { offset: if own == axis { by } else { 0 }, ..AxisMap::same(own) }).collect();
                let near = one.affine("shift", &maps, volume.clone(), Some(&outside))?;
                sum = Node::elementwise(Elementwise::Binary(BinaryOp::Add), &[&sum, &near])?;
            }
        }
        let node = match self.random.below(4) {
            0 => sum.reduce(Combine::Sum, &[0])?,
            1 => sum.reduce(Combine::Max, &[0])?,
            2 => sum.extreme(Extreme::Greatest, 0, Element::I64)?,
            _ => sum.extreme(Extreme::Least, 0, Element::I32)?,
        };
        // Up to 49 halves of up to 4, five times.
        self.push(node, if ty == Type::F32 { 2000.0 } else { 1e30 }, true);
        Ok(())
    }

    fn select(&mut self) -> Result<()> {
        let a = self.any();
        if !a.ty().is_scalar() {
            return Ok(());
        }
        let b = self.partner(a.ty(), a.node.shape())?;
        let c = self.partner(Type::BOOL, a.node.shape())?;
        if [b.node.shape(), c.node.shape()].iter().try_fold(a.node.shape().clone(), |s, o| s.broadcast(o)).is_none() {
            return Ok(());
        }
        let node = Node::elementwise(Elementwise::Select, &[&c.node, &a.node, &b.node])?;
        self.push(node, a.bound.max(b.bound), a.exact && b.exact);
        Ok(())
    }

    fn convert(&mut self) -> Result<()> {
        let a = self.any();
        let to = self.ty().element();
        if !a.exact || !a.ty().is_scalar() || to.is_float() && !a.ty().element().is_float() && a.ty() != Type::BOOL {
            return Ok(());
        }
        let fits = !to.is_float() || a.bound <= exact_limit(to).sqrt();
        if !fits || to == a.ty().element() {
            return Ok(());
        }
        let node = Node::elementwise(Elementwise::Convert(to), &[&a.node])?;
        self.push(node, if to.is_float() { a.bound } else { 1e30 }, true);
        Ok(())
    }

    fn gather(&mut self) -> Result<()> {
        let a = self.any();
        let rank = a.node.shape().rank();
        if rank == 0 || rank > 3 {
            return Ok(());
        }
        let integers: Vec<Known> = self
            .pool
            .iter()
            .filter(|known| known.ty().is_scalar() && known.ty().element().is_integer() && known.node.shape().count() < 3000)
            .cloned()
            .collect();
        if integers.is_empty() {
            return Ok(());
        }
        let first = self.random.pick(&integers).clone();
        let mut indices = vec![first.node.clone()];
        for _ in 1..rank {
            indices.push(self.partner(first.ty(), first.node.shape())?.node);
        }
        let outside = self.boundary(a.ty());
        let indices: Vec<&Node> = indices.iter().collect();
        // Shapes of three partners may not fit together, and a gather from an empty array is refused.
        let Ok(node) = a.node.gather(&indices, &outside) else { return Ok(()) };
        self.push(node, a.bound.max(4.0), a.exact);
        Ok(())
    }

    fn shapes(&mut self) -> Result<()> {
        let a = self.any();
        let shape = a.node.shape().clone();
        match self.random.below(3) {
            0 if shape.rank() > 0 => {
                let axis = self.random.below(shape.rank());
                // Others of the same shape except for the axis.
                let fits = |known: &&Known| {
                    let axes = [axis as u8];
                    known.ty() == a.ty()
                        && known.node.shape().rank() == shape.rank()
                        && known.node.shape().without(&axes, true) == shape.without(&axes, true)
                };
                let fitting: Vec<Known> = self.pool.iter().filter(fits).cloned().collect();
                let mut parts = vec![a.clone()];
                for _ in 0..self.random.below(4) {
                    parts.push(self.random.pick(&fitting).clone());
                }
                if parts.iter().map(|part| part.node.shape().count()).sum::<usize>() < 6000 {
                    let nodes: Vec<&Node> = parts.iter().map(|part| &part.node).collect();
                    let node = Node::concatenate(axis, &nodes)?;
                    let bound = parts.iter().map(|part| part.bound).fold(0.0, f64::max);
                    self.push(node, bound, parts.iter().all(|part| part.exact));
                }
            }
            1 if shape.rank() > 0 => {
                let axis = self.random.below(shape.rank());
                let element = *self.random.pick(&[Element::I32, Element::U8, Element::I64]);
                let node = Node::position(self.context, shape, axis, element)?;
                self.push(node, 1e30, true);
            }
            _ => {
                let count = shape.count();
                let divisor = (1..=count.min(7)).rev().find(|d| count.is_multiple_of(*d)).unwrap_or(1);
                let to = if self.random.one_in(2) { Shape::from(count) } else { Shape::from([count / divisor, divisor]) };
                if to.count() == count {
                    let node = a.node.reshape(to)?;
                    self.push(node, a.bound, a.exact);
                }
            }
        }
        Ok(())
    }

    fn reduce(&mut self) -> Result<()> {
        let a = self.any();
        let ty = a.ty();
        let rank = a.node.shape().rank();
        let combine = self.random.pick(&ways_to_combine(ty)?).clone();
        let axes: Vec<usize> = (0..rank).filter(|_| !self.random.one_in(3)).collect();
        let count = a.node.shape().count().max(1) as f64;
        let (bound, exact) = match (&combine, ty.element().is_float()) {
            (Combine::Sum, true) => (a.bound * count, a.exact && a.bound * count <= exact_limit(ty.element()).sqrt()),
            (Combine::Product, true) => return Ok(()),
            // Without elements the result is an infinity.
            (Combine::Min | Combine::Max, true) if a.node.shape().is_empty() => return Ok(()),
            (_, true) => (a.bound, a.exact),
            (_, false) => (1e30, true),
        };
        if ty.element().is_float() && bound > limit(ty.element()) {
            return Ok(());
        }
        let node = a.node.reduce(combine, &axes)?;
        self.push(node, bound, exact);
        Ok(())
    }

    fn scan(&mut self) -> Result<()> {
        let a = self.any();
        let (ty, rank) = (a.ty(), a.node.shape().rank());
        if rank == 0 {
            return Ok(());
        }
        if self.random.one_in(3) && ty.is_scalar() && ty != Type::BOOL && a.exact {
            let extreme = *self.random.pick(&[Extreme::Least, Extreme::Greatest]);
            // An empty axis has no extreme and is refused.
            if let Ok(node) = a.node.extreme(extreme, self.random.below(rank), Element::I64) {
                self.push(node, 1e30, true);
            }
            return Ok(());
        }
        let combine = self.random.pick(&ways_to_combine(ty)?).clone();
        let count = a.node.shape().count().max(1) as f64;
        let inclusive = self.random.one_in(2);
        let (bound, exact) = match (&combine, ty.element().is_float()) {
            (Combine::Sum, true) => (a.bound * count, a.exact && a.bound * count <= exact_limit(ty.element()).sqrt()),
            (Combine::Product, true) => return Ok(()),
            (_, true) if !inclusive => return Ok(()),
            (_, true) => (a.bound, a.exact),
            (_, false) => (1e30, true),
        };
        if ty.element().is_float() && bound > limit(ty.element()) {
            return Ok(());
        }
        let node = a.node.scan(combine, self.random.below(rank), inclusive)?;
        self.push(node, bound, exact);
        Ok(())
    }

    /// Makes a sort, histogram, matrix product, pack or partition.
    fn arrange(&mut self) -> Result<()> {
        let a = self.any();
        let (ty, count) = (a.ty(), a.node.shape().count());
        if count > 2000 {
            return Ok(());
        }
        let line = a.node.reshape(Shape::from(count))?;
        match self.random.below(4) {
            0 if ty.is_scalar() && ty != Type::BOOL && a.exact => {
                let key = SortKey { descending: self.random.one_in(2), bits: None };
                let labels = Node::position(self.context, Shape::from(count), 0, Element::I32)?;
                let sorted = Node::sort(&[(&line, key)], &[&labels])?;
                self.push(sorted[0].clone(), a.bound, true);
                self.push(sorted[1].clone(), 1e30, true);
            }
            1 if ty.is_scalar() && ty.element().is_integer() => {
                let bins = self.random.below(20);
                self.push(a.node.histogram(bins)?, 1e30, true);
            }
            2 if a.node.shape().rank() == 2 && ty.is_scalar() && ty != Type::BOOL => {
                let columns = 1 + self.random.below(9);
                let common = a.node.shape().extents()[1];
                self.leaf_of(ty, Shape::from([common, columns]))?;
                let other = self.pool[self.pool.len() - 1].clone();
                let bound = a.bound * other.bound * common.max(1) as f64;
                if !ty.element().is_float() || bound <= limit(ty.element()) {
                    let node = a.node.product(&other.node)?;
                    self.push(node, bound, !ty.element().is_float());
                }
            }
            _ => {
                let chosen = self.partner(Type::BOOL, &Shape::from(count))?;
                if chosen.node.shape() != line.shape() {
                    return Ok(());
                }
                let way = self.random.below(4);
                if way < 2 {
                    let value = self.value(ty);
                    let (packed, found) = line.pack_padded(&chosen.node, &value)?;
                    self.push(packed, a.bound.max(4.0), a.exact);
                    self.push(found, 1e30, true);
                } else if way == 2 {
                    let (both, found) = line.partition(&chosen.node)?;
                    self.push(both, a.bound, a.exact);
                    self.push(found, 1e30, true);
                } else {
                    let packed = line.pack(&chosen.node)?;
                    if self.random.one_in(2) {
                        // The host reads the number of elements.
                        let expected = naive::evaluate(&chosen.node)?.lanes.iter().filter(|lane| lane.bits() != 0).count();
                        assert_eq!(packed.shape().count(), expected);
                    }
                    self.push(packed, a.bound, a.exact);
                }
            }
        }
        Ok(())
    }

    /// Makes a scatter; some indices are outside.
    fn scatter(&mut self) -> Result<()> {
        let a = self.any();
        let (ty, rank) = (a.ty(), a.node.shape().rank());
        if rank == 0 || rank > 3 {
            return Ok(());
        }
        let index = *self.random.pick(&[Type::I32, Type::U8, Type::I64, Type::U64, Type::I16]);
        let shape = self.shape();
        if shape.count() > 1000 {
            return Ok(());
        }
        let mut indices = vec![];
        for axis in 0..rank {
            let extent = a.node.shape().extents()[axis] as i64;
            let places = (0..shape.count()).map(|_| Literal::from_i128(index.element(), self.random.between(-1, extent).into()));
            let array = HostArray { ty: index, shape: shape.clone(), lanes: places.collect() };
            indices.push(Node::upload(self.context, index, shape.clone(), &array.to_bytes())?);
        }
        let values = self.partner(ty, &shape)?;
        if values.node.shape().broadcast(&shape).as_ref() != Some(&shape) {
            return Ok(());
        }
        let mut ways = vec![None];
        ways.extend(ways_to_combine(ty)?.into_iter().map(Some));
        let combine = self.random.pick(&ways).clone();
        let indices: Vec<&Node> = indices.iter().collect();
        let (bound, exact) = match (&combine, ty.element().is_float()) {
            (Some(Combine::Sum), true) => {
                let bound = a.bound + values.bound * shape.count() as f64;
                (bound, a.exact && values.exact && bound <= exact_limit(ty.element()).sqrt())
            }
            (Some(Combine::Product), true) => return Ok(()),
            (_, true) => (a.bound.max(values.bound), a.exact && values.exact),
            (_, false) => (1e30, true),
        };
        if ty.element().is_float() && bound > limit(ty.element()) {
            return Ok(());
        }
        let node = a.node.scatter(&indices, &values.node, combine)?;
        self.push(node, bound, exact);
        Ok(())
    }

    /// Makes reductions, scans and sorts within segments.
    fn segments(&mut self) -> Result<()> {
        let a = self.any();
        let (ty, count) = (a.ty(), a.node.shape().count());
        if count > 2000 {
            return Ok(());
        }
        let line = a.node.reshape(Shape::from(count))?;
        let mut offsets: Vec<i64> = (0..1 + self.random.below(12)).map(|_| self.random.between(0, count as i64)).collect();
        if self.random.one_in(2) {
            offsets.extend([0, count as i64]);
        }
        offsets.sort_unstable();
        let element = *self.random.pick(&[Element::I32, Element::I64, Element::U32]);
        let lanes = offsets.iter().map(|offset| Literal::from_i128(element, (*offset).into())).collect();
        let shape = Shape::from(offsets.len());
        let array = HostArray { ty: element.into(), shape: shape.clone(), lanes };
        let offsets = Node::upload(self.context, element.into(), shape, &array.to_bytes())?;
        if self.random.one_in(3) && ty.is_scalar() && ty != Type::BOOL && a.exact {
            let key = SortKey { descending: self.random.one_in(2), bits: None };
            // No segment is longer than the line.
            let longest = self.random.one_in(2).then_some(count.into());
            let sorted = Node::segmented_sort(&offsets, longest, &[(&line, key)], &[])?;
            self.push(sorted[0].clone(), a.bound, true);
            return Ok(());
        }
        if self.random.one_in(3) && ty.is_scalar() && ty.element().is_integer() {
            return self.ragged(&line, &offsets, count);
        }
        let combine = self.random.pick(&ways_to_combine(ty)?).clone();
        let scans = self.random.one_in(2);
        let (bound, exact) = match (&combine, ty.element().is_float()) {
            (Combine::Sum, true) => {
                let bound = a.bound * count.max(1) as f64;
                (bound, a.exact && bound <= exact_limit(ty.element()).sqrt())
            }
            (Combine::Product, true) => return Ok(()),
            // Without elements the result is an infinity.
            (_, true) if !scans => return Ok(()),
            (_, true) => (a.bound, a.exact),
            (_, false) => (1e30, true),
        };
        if ty.element().is_float() && bound > limit(ty.element()) {
            return Ok(());
        }
        let node = match scans {
            true => {
                let segments = Segments::from_offsets(&offsets, Total::Host(count))?;
                line.segmented_scan(&segments.heads()?, combine, 0)?
            }
            false => line.segmented_reduce(&offsets, combine)?,
        };
        self.push(node, bound, exact);
        Ok(())
    }

    /// Makes operations of a descriptor of segments on a line of integers.
    fn ragged(&mut self, line: &Node, offsets: &Node, count: usize) -> Result<()> {
        let segments = Segments::from_offsets(offsets, Total::Host(count))?;
        let sums = segments.reduce(&[(line, Combine::Sum), (line, Combine::Max)])?;
        let direction = if self.random.one_in(2) { Direction::Forwards } else { Direction::Backwards };
        let made = match self.random.below(7) {
            0 => sums,
            1 => vec![segments.distribute(&sums[0])?, segments.places()?],
            2 => segments.scan(&[(line, Combine::Sum)], self.random.one_in(2), direction)?,
            3 => vec![segments.rank(line, self.random.one_in(2), Element::I32)?],
            4 => vec![segments.extreme(line, Extreme::Least, Element::I64)?, segments.lengths()?],
            5 => segments.interleave(&segments, &[(line, line)])?.1,
            _ => {
                let checked = segments.gather(&[line], &segments, line)?;
                [checked.values, vec![checked.outside]].concat()
            }
        };
        for node in made {
            self.push(node, 1e30, true);
        }
        Ok(())
    }

    /// Makes a function with two results, a condition and a loop.
    fn function(&mut self) -> Result<()> {
        let a = self.any();
        if a.ty() != Type::I32 && a.ty() != Type::I64 && a.ty() != Type::U32 {
            return Ok(());
        }
        let b = self.partner(a.ty(), a.node.shape())?;
        let f = Builder::function("random");
        let (x, y) = (f.parameter("x", a.ty()), f.parameter("y", a.ty()));
        let sum = f.variable_with(x);
        f.for_range(0, f.constant(a.ty(), 1 + self.random.below(3)), |i| {
            f.if_then(f.lt(f.get(sum), y), || f.set(sum, f.add(f.mul(f.get(sum), 3), i)));
        });
        let results = [f.get(sum), f.xor(x, y)];
        let function = f.finish_function(&results)?;
        for node in Node::call(&function, &[&a.node, &b.node])? {
            self.push(node, 1e30, true);
        }
        Ok(())
    }
}

/// Returns the first position at which two arrays differ by more than a tolerance.
pub(crate) fn difference(found: &HostArray, expected: &HostArray, tolerance: f64) -> Option<String> {
    if found.shape != expected.shape || found.ty != expected.ty || found.lanes.len() != expected.lanes.len() {
        return Some(format!("{}{} instead of {}{}", found.ty, found.shape, expected.ty, expected.shape));
    }
    for (number, (a, b)) in found.lanes.iter().zip(&expected.lanes).enumerate() {
        let same = match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= tolerance,
            _ => a == b,
        };
        if !same {
            return Some(format!("lane {number} of {}{} is {a} instead of {b}", found.ty, found.shape));
        }
    }
    None
}
