//! Instructions that work element by element.

use super::Entry;
use super::extent::Extent;
use super::vector::{Affine, BeforePack, Facts, Vector};
use super::{Accelerator, OpResult, on_device};
use crate::eval::{Fault, Run};
use crate::vcode::elementwise::{BadOperand, DeviceForm};
use crate::vcode::{Inst, Op, Type};
use broadloom_graph::{Elementwise, Node, Shape};
use broadloom_scalar::{BinaryOp, Element, Precision};

/// Number of elementwise operations after which a vector is stored, although it is generated from indices and
/// scalars.
const MAX_DEPTH: u16 = 16;

impl Accelerator {
    pub(super) fn element(&mut self, op: Op, ty: Type, operands: &[Entry]) -> Run<OpResult> {
        let mut inputs = vec![];
        if let (Op::Select, Type::Int, [flags, yes, no]) = (op, ty, operands) {
            let both = [self.stored_vector(yes)?, self.stored_vector(no)?];
            inputs.push(self.vector(flags)?);
            inputs.extend(self.of_one_type(both)?);
        } else {
            for operand in operands {
                inputs.push(self.vector(operand)?);
            }
        }
        let is_mask = |input: &Vector| input.facts.constant().is_some_and(|value| (0..256).contains(&value));
        let is_byte = (op, ty) == (Op::And, Type::Int) && inputs.iter().any(is_mask);
        let inst = Inst::Op(op, ty);
        let extent = self.aligned(&inst, operands, &mut inputs)?;
        let nodes: Vec<&Node> = inputs.iter().map(|input| &input.node).collect();
        let mut node = self.computed(op, ty, &nodes)?;
        if is_byte {
            node = self.convert(&node, Element::U8)?;
        }
        if let Some(failure) = op.failure() {
            let Vector { facts, extent, .. } = &inputs[failure.operand];
            if failure.value != BadOperand::Zero || !facts.nonzero {
                let wrong = self.call(failure.value.name(), &[nodes[failure.operand]], |f, x| failure.value.test(f, x[0]))?;
                self.require_none(inst, operands, &wrong, extent)?;
            }
        }
        let depth = inputs.iter().map(|input| input.depth).max().unwrap_or(0) + 1;
        let generated = depth < MAX_DEPTH && inputs.iter().all(|input| input.generated);
        let depth = if generated { depth } else { 0 };
        let packed = self.before_pack(op, ty, &inputs, is_byte)?;
        let mut facts = if ty == Type::Int { Facts::of_element(op, &inputs) } else { Facts::default() };
        if op == Op::IntToFloat {
            facts.nonzero = inputs[0].facts.nonzero;
        }
        if (op, ty) == (Op::Add, Type::Int) {
            facts.affine = self.moved_affine(&inputs)?;
        }
        Ok(OpResult::Vector(op.result(ty).stacked(), Vector { generated, depth, facts, packed, ..Vector::new(node, extent) }))
    }

    /// Applies elementwise work also to the vectors before a pack: a reduction of the result then needs no
    /// pack.
    fn before_pack(&mut self, op: Op, ty: Type, inputs: &[Vector], is_byte: bool) -> Run<Option<BeforePack>> {
        let Some(flags) = inputs.iter().find_map(|input| input.packed.as_ref().map(|packed| packed.flags.clone())) else {
            return Ok(None);
        };
        let mut nodes = vec![];
        for input in inputs {
            match &input.packed {
                Some(packed) if packed.flags.is_same(&flags) => nodes.push(&packed.before),
                None if input.is_uniform() => nodes.push(&input.node),
                _ => return Ok(None),
            }
        }
        let mut before = self.computed(op, ty, &nodes)?;
        if is_byte {
            before = self.convert(&before, Element::U8)?;
        }
        Ok(Some(BeforePack { flags, before }))
    }

    /// Returns the progression that is the sum of a progression and equal ints.
    fn moved_affine(&mut self, inputs: &[Vector]) -> Run<Option<Affine>> {
        let [a, b] = inputs else { return Ok(None) };
        let (affine, by) = match (&a.facts.affine, &b.facts.affine) {
            (Some(affine), None) => (affine, b),
            (None, Some(affine)) => (affine, a),
            _ => return Ok(None),
        };
        if !by.is_uniform() {
            return Ok(None);
        }
        let known =
            affine.known.zip(by.facts.constant()).and_then(|(a, b)| a.checked_add(b)).filter(|sum| i32::try_from(*sum).is_ok());
        let start = self.elementwise(Elementwise::Binary(BinaryOp::Add), &[&affine.start, &by.node])?;
        Ok(Some(Affine { start, known, step: affine.step }))
    }

    /// Sets the common extent of vectors and returns it. In parsed programs the equality of their extents
    /// becomes a condition.
    pub(super) fn aligned(&mut self, inst: &Inst, operands: &[Entry], inputs: &mut [Vector]) -> Run<Extent> {
        if !self.trusted {
            for other in 1..inputs.len() {
                self.require_equal(inst, operands, &inputs[0].extent.clone(), &inputs[other].extent.clone())?;
            }
        }
        // The host's numbers are exact. A condition may not hold, so a number that is checked later does not
        // justify more reads.
        let rank = |extent: &Extent| match (self.trusted, extent) {
            (true, Extent::Host(_)) => (0, 0),
            // Any order is valid: the other numbers are equal, or conditions fail.
            _ => (1, extent.bound().value()),
        };
        let longer =
            inputs.iter().filter(|input| !input.is_uniform()).map(|input| &input.extent).min_by_key(|extent| rank(extent));
        let longest = longer.or_else(|| inputs.iter().map(|input| &input.extent).min_by_key(|extent| rank(extent)));
        let Some(extent) = longest.cloned() else { return Ok(Extent::host(0)) };
        for input in inputs.iter_mut() {
            if !input.is_uniform() {
                *input = self.with_extent(input, &extent)?;
            }
        }
        Ok(extent)
    }

    /// Adds the condition that two numbers are equal, in parsed programs only.
    pub(super) fn require_equal(&mut self, inst: &Inst, operands: &[Entry], a: &Extent, b: &Extent) -> Run<()> {
        match (a, b) {
            (Extent::Host(a), Extent::Host(b)) if a.equals(b) => return Ok(()),
            (Extent::Host(a), Extent::Host(b)) => {
                let (a, b) = (a.get(), b.get());
                let name = if let Inst::Op(op, _) = inst { op.name() } else { "CHECK" };
                return Fault::at_run_time(format!("the operands of {name} do not fit each other: {a} and {b} elements"));
            }
            (Extent::Device(a), Extent::Device(b)) if a.is_same(b) => return Ok(()),
            _ => {}
        }
        let (a, b) = (self.count_of(a, Element::I64)?, self.count_of(b, Element::I64)?);
        let differ = self.call("differ", &[&a, &b], |f, x| f.ne(x[0], x[1]))?;
        let differ = self.as_vector(&differ)?;
        self.require(inst.clone(), operands, differ)
    }

    /// Adds the condition that no element is true.
    pub(super) fn require_none(&mut self, inst: Inst, operands: &[Entry], wrong: &Node, extent: &Extent) -> Run<()> {
        if extent.is_host(0) {
            return Ok(());
        }
        let mut flag = wrong.clone();
        // One flag represents all elements, and there may be none.
        if wrong.length().is_none()
            && let Extent::Device(length) = extent
        {
            flag = self.call("some", &[&flag, length.count()], |f, x| f.and(x[0], f.gt(x[1], 0)))?;
        }
        self.require(inst, operands, flag)
    }

    /// Computes an instruction, without its condition. If that fails, the result is arbitrary.
    fn computed(&mut self, op: Op, ty: Type, x: &[&Node]) -> Run<Node> {
        let form = match op.elementwise() {
            Some(operation) => operation.device(),
            None if op == Op::Select => return self.elementwise(Elementwise::Select, x),
            None => {
                let (op, ty) = (op.name(), ty.name());
                return Fault::at_run_time(format!("internal error: {op} {ty} on a device; please report it"));
            }
        };
        let simple = match form {
            DeviceForm::Unary(op) => Elementwise::Unary(op),
            DeviceForm::Binary(op) => Elementwise::Binary(op),
            DeviceForm::Compare(op) => Elementwise::Compare(op),
            DeviceForm::Convert(to) => Elementwise::Convert(self.element_of(to)),
            DeviceForm::Math(function) => Elementwise::Math(function, Precision::Accurate),
            DeviceForm::Code(name, code) => {
                let int = self.int();
                return self.call(name, x, |f, x| code(f, x, int));
            }
        };
        self.elementwise(simple, x)
    }

    /// Makes a vector of one element from a node without axes.
    pub(super) fn as_vector(&mut self, node: &Node) -> Run<Node> {
        on_device(node.reshape(Shape::from(1)))
    }
}
