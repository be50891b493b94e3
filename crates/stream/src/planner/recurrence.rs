//! Recurrences: stateful filters whose firings can be combined, recognised from their code.
//!
//! The state of a firing is a list of numbers. It is a recurrence if each of them becomes one of:
//!
//! - a sum of states with constant coefficients and of a term that does not depend on the state: running
//!   sums, counters, `y = a·y + x`, several of them coupled;
//! - the minimum, the maximum, or a bitwise operation, of itself and of a term that does not depend on the
//!   state.
//!
//! The firings can start with an *identity* instead of the state: zero for sums. The state after many firings
//! follows from the state before them and from the result of the firings from the identity. Firings run in
//! chunks from identities, in parallel. The chunks are combined. The firings then run again from the right
//! states.

use crate::language::core::{Layout, Type as StreamType};
use crate::planner::translate::{KernelSite, Leaf, Reads, Subject, Window, Words, Writes, element, fire, written_fields};
use broadloom_scalar::{
    AccessorKind, BinaryOp, Builder, CompareOp, Element, Function, Id, Literal, Op, Statement, Type, UnaryOp,
};
use broadloom_scalar::{Value, reading};
use broadloom_skeleton::cost::dataflow;
use std::rc::Rc;

/// A coefficient: as an exact integer, which wraps, and as a float.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Coefficient {
    int: i64,
    float: f64,
}

impl Coefficient {
    const ZERO: Coefficient = Coefficient { int: 0, float: 0.0 };
    const ONE: Coefficient = Coefficient { int: 1, float: 1.0 };

    fn add(self, other: Coefficient) -> Coefficient {
        Coefficient { int: i64::from(self.int.wrapping_add(other.int) as i32), float: self.float + other.float }
    }

    fn mul(self, other: Coefficient) -> Coefficient {
        Coefficient { int: i64::from(self.int.wrapping_mul(other.int) as i32), float: self.float * other.float }
    }

    fn is_zero(self, element: Element) -> bool {
        if element.is_float() { self.float == 0.0 } else { self.int == 0 }
    }

    fn literal(self, element: Element) -> Literal {
        if element.is_float() { Literal::from(self.float as f32) } else { Literal::from(self.int as i32) }
    }
}

/// The rule that combines a number of the state.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Rule {
    /// A sum of states and another term.
    Sum(Vec<Coefficient>),
    /// An operation on itself and another term.
    Fold(BinaryOp),
}

/// A matrix of coefficients, row by row.
pub(crate) type Matrix = Vec<Vec<Coefficient>>;

/// A stateful filter whose firings can be combined.
#[derive(Clone, Debug)]
pub struct Recurrence {
    /// The code of a firing. Its parameters are the firing's number and the state. Its results include the
    /// state after the firing.
    pub(crate) function: Function,
    pub(crate) elements: Vec<Element>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) window: Window,
    pub(crate) input: Option<Words>,
    pub(crate) output: Option<Words>,
}

impl Recurrence {
    /// Returns whether a scan adds floats in another order than the firings.
    pub(crate) fn adds_floats(&self) -> bool {
        let is_sum = |(element, rule): (&Element, &Rule)| element.is_float() && matches!(rule, Rule::Sum(_));
        self.elements.iter().zip(&self.rules).any(is_sum)
    }
}

/// Recognises a recurrence. Returns `None` if the firings cannot be combined.
pub(crate) fn recognise(subject: &Subject<'_>) -> Option<Recurrence> {
    let fields = written_fields(subject.program, subject.filter, subject.instance).ok()?;
    if fields.is_empty() || fields.len() > dataflow::RECURRENCE_STATES {
        return None;
    }
    let b = Builder::function("firing");
    let firing = b.parameter("firing", Type::I32);
    let (mut state, mut variables, mut elements) = (vec![], vec![], vec![]);
    for (field, layout) in &fields {
        let Layout::Scalar(ty @ (StreamType::Int | StreamType::Float)) = layout else { return None };
        let own = element(ty).ok()?;
        let variable = b.variable_with(b.parameter("state", own));
        state.push((*field, layout.clone(), Rc::new(vec![Leaf::Variable(variable)])));
        variables.push(variable);
        elements.push(own);
    }
    let (input, output) = (subject.input.map(Words::of), subject.output.map(Words::of));
    let (input, output) =
        (input.map_or(Some(None), |words| words.map(Some))?, output.map_or(Some(None), |words| words.map(Some))?);
    let source = input.map(|words| b.accessor("input", AccessorKind::Input, words.element, 1));
    let sink = output.map(|words| b.accessor("output", AccessorKind::Output, words.element, 1));
    let reads = |b: &Builder, at: Value| match source {
        Some(source) => b.read(source, &[at.into()]),
        None => b.fail("a tape that is not there is read"),
    };
    let writes = |b: &Builder, at: Value, value: Value| {
        if let Some(sink) = sink {
            b.write(sink, &[at.into()], value);
        }
    };
    let bad = b.variable_with(b.literal(false));
    let (reads, writes): (Reads<'_>, Writes<'_>) = (&reads, &writes);
    fire(*subject, &KernelSite { b: &b, reads, writes, firing, bad, state: &state, cooperation: None }).ok()?;
    let mut results = vec![b.get(bad)];
    results.extend(variables.iter().map(|variable| b.get(*variable)));
    let function = b.finish_function(&results).ok()?.simplify().ok()?;
    let body = function.body();
    let failure = &body.node(function.results()[0]).op;
    let plain = body
        .blocks()
        .flat_map(|(_, block)| &block.statements)
        .all(|statement| matches!(statement, Statement::Define(_) | Statement::Write { .. }));
    if !plain || !matches!(failure, Op::Literal(literal) if literal.bits() == 0) {
        return None;
    }
    let forms = forms(&function, elements.len());
    let rules = (0..elements.len()).map(|index| rule(&function, &forms, index)).collect::<Option<Vec<Rule>>>()?;
    let rates = subject.instance.work;
    let window = Window { pop: rates.pop.known()?, peek: rates.peek.known()?, push: rates.push.known()? };
    let found = Recurrence { function, elements, rules, window, input, output };
    found.is_tame().then_some(found)
}

/// The dependence of a node on the state: its coefficients, or `None` if it is not a sum.
type Form = Option<Vec<Coefficient>>;

/// Returns the form of each node.
fn forms(function: &Function, states: usize) -> Vec<Form> {
    let zero = vec![Coefficient::ZERO; states];
    let mut forms: Vec<Form> = vec![];
    let literal = |id: Id| function.body().literal(id);
    for (id, node) in function.body().nodes() {
        let element = node.ty.element();
        let form = |id: Id, forms: &[Form]| forms.get(id.index()).cloned().flatten();
        let is_free = |id: Id, forms: &[Form]| form(id, forms).is_some_and(|form| form == zero);
        let zip = |a: Vec<Coefficient>, b: Vec<Coefficient>, sign: Coefficient| {
            a.into_iter().zip(b).map(|(a, b)| a.add(b.mul(sign))).collect::<Vec<_>>()
        };
        let minus = Coefficient { int: -1, float: -1.0 };
        let scaled = |form: Vec<Coefficient>, by: Coefficient| form.into_iter().map(|one| one.mul(by)).collect::<Vec<_>>();
        let number = |literal: &Literal| match element {
            Element::I32 => literal.as_i128().map(|int| Coefficient { int: int as i64, float: int as f64 }),
            Element::F32 => Some(Coefficient { int: 0, float: f64::from(f32::from_bits(literal.bits() as u32)) }),
            _ => None,
        };
        let mut all_free = true;
        node.op.each_operand(|operand| all_free &= is_free(operand, &forms));
        let found: Form = match &node.op {
            Op::Parameter(index) if *index as usize >= 1 && (*index as usize) <= states => {
                let mut unit = zero.clone();
                unit[*index as usize - 1] = Coefficient::ONE;
                Some(unit)
            }
            _ if all_free => Some(zero.clone()),
            _ if !matches!(element, Element::I32 | Element::F32) => None,
            Op::Unary(UnaryOp::Neg, a) => form(*a, &forms).map(|a| scaled(a, minus)),
            Op::Binary(BinaryOp::Add, a, b) => form(*a, &forms).zip(form(*b, &forms)).map(|(a, b)| zip(a, b, Coefficient::ONE)),
            Op::Binary(BinaryOp::Sub, a, b) => form(*a, &forms).zip(form(*b, &forms)).map(|(a, b)| zip(a, b, minus)),
            Op::Binary(BinaryOp::Mul, a, b) => match (literal(*a), literal(*b)) {
                (Some(by), _) => form(*b, &forms).zip(number(&by)).map(|(form, by)| scaled(form, by)),
                (_, Some(by)) => form(*a, &forms).zip(number(&by)).map(|(form, by)| scaled(form, by)),
                _ => None,
            },
            Op::Binary(BinaryOp::Shl, a, b) => match literal(*b).and_then(|by| by.as_i128()) {
                Some(by @ 0..=30) => form(*a, &forms).map(|form| scaled(form, Coefficient { int: 1 << by, float: 0.0 })),
                _ => None,
            },
            Op::Select(condition, a, b) if is_free(*condition, &forms) => {
                let (a, b) = (form(*a, &forms), form(*b, &forms));
                a.filter(|own| b.as_ref() == Some(own))
            }
            _ => None,
        };
        debug_assert_eq!(id.index(), forms.len());
        forms.push(found);
    }
    forms
}

/// Returns the rule of a number of the state.
fn rule(function: &Function, forms: &[Form], index: usize) -> Option<Rule> {
    let body = function.body();
    let result = function.results()[index + 1];
    if let Some(form) = &forms[result.index()] {
        // States of other types must not contribute to a sum.
        let element = body.type_of(result).element();
        let types = function.parameters()[1..].iter().map(|parameter| parameter.ty.element());
        let alike = types.zip(form).all(|(other, coefficient)| other == element || *coefficient == Coefficient::ZERO);
        return alike.then(|| Rule::Sum(form.clone()));
    }
    let is_own = |id: Id| matches!(body.node(id).op, Op::Parameter(number) if number as usize == index + 1);
    let is_free = |id: Id| forms[id.index()].as_ref().is_some_and(|form| form.iter().all(|one| *one == Coefficient::ZERO));
    let pair = |a: Id, b: Id| (is_own(a) && is_free(b)) || (is_own(b) && is_free(a));
    let is_int = body.type_of(result).element() == Element::I32;
    let op = match &body.node(result).op {
        Op::Binary(op @ (BinaryOp::And | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Min | BinaryOp::Max), a, b)
            if is_int && pair(*a, *b) =>
        {
            *op
        }
        Op::Select(condition, yes, no) if pair(*yes, *no) => match &body.node(*condition).op {
            Op::Compare(compare, a, b) if (a, b) == (yes, no) || (a, b) == (no, yes) => {
                let larger = match compare {
                    CompareOp::Gt | CompareOp::Ge => true,
                    CompareOp::Lt | CompareOp::Le => false,
                    CompareOp::Eq | CompareOp::Ne => return None,
                };
                // Of equal numbers either one may be taken. A comparison with NaN must keep the state.
                let takes_free = is_free(*yes);
                if !is_int && !takes_free {
                    return None;
                }
                if larger == ((a, b) == (yes, no)) { BinaryOp::Max } else { BinaryOp::Min }
            }
            _ => return None,
        },
        _ => return None,
    };
    Some(Rule::Fold(op))
}

impl Recurrence {
    /// Returns the coefficients of the sums.
    pub(crate) fn matrix(&self) -> Matrix {
        let zero = vec![Coefficient::ZERO; self.rules.len()];
        self.rules.iter().map(|rule| if let Rule::Sum(row) = rule { row.clone() } else { zero.clone() }).collect()
    }

    pub(crate) fn product(&self, a: &Matrix, b: &Matrix) -> Matrix {
        let n = self.rules.len();
        let entry =
            |row: usize, column: usize| (0..n).fold(Coefficient::ZERO, |sum, index| sum.add(a[row][index].mul(b[index][column])));
        (0..n).map(|row| (0..n).map(|column| entry(row, column)).collect()).collect()
    }

    /// Returns a power of the matrix.
    pub(crate) fn power(&self, exponent: u64) -> Matrix {
        let n = self.rules.len();
        let one = |row: usize, column: usize| if row == column { Coefficient::ONE } else { Coefficient::ZERO };
        let mut result: Matrix = (0..n).map(|row| (0..n).map(|column| one(row, column)).collect()).collect();
        let (mut base, mut left) = (self.matrix(), exponent);
        while left > 0 {
            if left & 1 == 1 {
                result = self.product(&result, &base);
            }
            base = self.product(&base, &base);
            left >>= 1;
        }
        result
    }

    /// Returns whether no power of the float coefficients grows without bound.
    fn is_tame(&self) -> bool {
        let floats = |row: usize| self.elements[row].is_float();
        let grown = |exponent: u32| {
            let power = self.power(1u64 << exponent);
            (0..power.len()).filter(|row| floats(*row)).any(|row| {
                let bound = dataflow::RECURRENCE_GROWTH.max((1u64 << exponent) as f64 * 16.0);
                power[row].iter().any(|one| !one.float.is_finite() || one.float.abs() > bound)
            })
        };
        !(0..28).any(grown)
    }

    /// Returns the amounts by which firings change the state, if it consists of counters only.
    pub(crate) fn steps(&self) -> Option<Vec<i32>> {
        let body = self.function.body();
        let is_own = |id: Id, index: usize| matches!(body.node(id).op, Op::Parameter(number) if number as usize == index + 1);
        let step = |(index, element): (usize, &Element)| {
            let result = self.function.results()[index + 1];
            match &body.node(result).op {
                _ if *element != Element::I32 => None,
                _ if is_own(result, index) => Some(0),
                Op::Binary(BinaryOp::Add, a, b) if is_own(*a, index) => body.literal(*b)?.as_i128().map(|step| step as i32),
                _ => None,
            }
        };
        self.elements.iter().enumerate().map(step).collect()
    }

    /// Returns the identity of each number of the state.
    pub(crate) fn identity(&self, k: &Builder) -> Vec<Value> {
        let each = self.rules.iter().zip(&self.elements);
        each.map(|(rule, element)| match (rule, element.is_float()) {
            (Rule::Fold(BinaryOp::Min), true) => k.literal(f32::INFINITY),
            (Rule::Fold(BinaryOp::Max), true) => k.literal(f32::NEG_INFINITY),
            (Rule::Fold(BinaryOp::Min), false) => k.literal(i32::MAX),
            (Rule::Fold(BinaryOp::Max), false) => k.literal(i32::MIN),
            (Rule::Fold(BinaryOp::And), _) => k.literal(-1i32),
            _ => k.literal(Literal::zero(*element)),
        })
        .collect()
    }

    /// Returns an entry of a matrix.
    pub(crate) fn coefficient(&self, k: &Builder, matrix: &Matrix, row: usize, column: usize) -> Value {
        k.literal(matrix[row][column].literal(self.elements[row]))
    }

    /// Writes the code of the state after firings. `power` is the power of the matrix for their number,
    /// `left` the state before them, and `right` their result from the identity.
    pub(crate) fn combine(&self, k: &Builder, power: &Matrix, left: &[Value], right: &[Value]) -> Vec<Value> {
        let coefficient = |row: usize, column: usize| {
            let element = self.elements[row];
            let one = power[row][column];
            (!one.is_zero(element)).then(|| k.literal(one.literal(element)))
        };
        self.combine_with(k, &coefficient, left, right)
    }

    /// Writes the code of [`Self::combine`] for coefficients that are computed at run time.
    pub(crate) fn combine_with(
        &self,
        k: &Builder,
        coefficient: &dyn Fn(usize, usize) -> Option<Value>,
        left: &[Value],
        right: &[Value],
    ) -> Vec<Value> {
        let row = |row: usize| match &self.rules[row] {
            Rule::Fold(BinaryOp::Max) => k.select(k.gt(right[row], left[row]), right[row], left[row]),
            Rule::Fold(BinaryOp::Min) => k.select(k.lt(right[row], left[row]), right[row], left[row]),
            Rule::Fold(op) => k.binary(*op, left[row], right[row]),
            Rule::Sum(_) => (0..self.rules.len()).fold(right[row], |sum, column| match coefficient(row, column) {
                Some(by) if self.elements[column] == self.elements[row] => k.add(sum, k.mul(by, left[column])),
                _ => sum,
            }),
        };
        (0..self.rules.len()).map(row).collect()
    }

    /// Writes a firing. Returns the state after it.
    pub(crate) fn fire(
        &self,
        k: &Builder,
        number: Value,
        state: &[Value],
        load: &dyn Fn(&Builder, Value) -> Value,
        store: &dyn Fn(&Builder, Value, Value),
    ) -> Vec<Value> {
        let mut arguments = vec![number];
        arguments.extend_from_slice(state);
        let mut read = reading(|k: &Builder, position: &[Value]| load(k, position[0]));
        let mut write = broadloom_scalar::writing(|k: &Builder, position: &[Value], value: Value| store(k, position[0], value));
        let mut bindings: Vec<&mut dyn broadloom_scalar::Binding> = vec![];
        if self.input.is_some() {
            bindings.push(&mut read);
        }
        if self.output.is_some() {
            bindings.push(&mut write);
        }
        k.inline(&self.function, &arguments, &mut bindings)[1..].to_vec()
    }
}
