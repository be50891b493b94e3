//! Random functions: expressions of all types, variables, conditions, terminating loops, local arrays,
//! tables.
//!
//! Behaviour that the language leaves open does not affect the results: the bits and the sign of NaN are made
//! definite before they are used, and indices are inside of arrays.

use super::random::{Literals, Random};
use broadloom_scalar::{
    Array, BinaryOp, Builder, CompareOp, Element, Function, Literal, MathFunction, Precision, Type, UnaryOp, Unroll, Value,
    Variable,
};

pub(crate) struct Generator {
    b: Builder,
    random: Random,
    /// Values that can be used here.
    values: Vec<Value>,
    variables: Vec<Variable>,
    arrays: Vec<(Array, Element)>,
    /// Number of statements that may still be made.
    budget: usize,
    loops: usize,
}

const EXACT_UNARY: [UnaryOp; 12] = [
    UnaryOp::Neg,
    UnaryOp::Not,
    UnaryOp::Abs,
    UnaryOp::Popcount,
    UnaryOp::LeadingZeros,
    UnaryOp::TrailingZeros,
    UnaryOp::ReverseBits,
    UnaryOp::Floor,
    UnaryOp::Ceil,
    UnaryOp::Trunc,
    UnaryOp::RoundEven,
    UnaryOp::Sqrt,
];

/// Returns a function for a seed.
pub(crate) fn function(seed: u64) -> Function {
    let mut random = Random(seed);
    let b = Builder::function("random");
    let parameters = 2 + random.below(3);
    let values = (0..parameters).map(|index| b.parameter(&format!("p{index}"), *random.pick(&Element::ALL))).collect();
    let budget = 6 + random.below(20);
    let mut generator = Generator { b, random, values, variables: vec![], arrays: vec![], budget, loops: 0 };
    generator.run()
}

impl Generator {
    fn run(&mut self) -> Function {
        for _ in 0..3 {
            let element = *self.random.pick(&Element::ALL);
            let value = self.value(element, 2);
            self.variables.push(self.b.variable_with(value));
        }
        while self.budget > 0 {
            self.statement(0);
        }
        let mut results: Vec<Value> = self.variables.clone().into_iter().map(|variable| self.b.get(variable)).collect();
        for element in [Element::I32, Element::F32] {
            results.push(self.value(element, 3));
        }
        self.b.finish_function(&results).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns a value of a type: an existing one, a literal, or an expression of others.
    fn value(&mut self, element: Element, depth: usize) -> Value {
        if depth == 0 || self.random.one_in(6) {
            let fitting: Vec<Value> = self.values.iter().copied().filter(|v| self.b.type_of(*v) == Type::of(element)).collect();
            if !fitting.is_empty() && !self.random.one_in(4) {
                return *self.random.pick(&fitting);
            }
            if !self.values.is_empty() && self.random.one_in(2) {
                let any = *self.random.pick(&self.values.clone());
                return self.b.convert(any, element);
            }
            return self.b.literal(self.random.literal(element));
        }
        let value = self.expression(element, depth);
        self.values.push(value);
        value
    }

    /// Returns a float whose bits are definite.
    fn definite(&self, value: Value) -> Value {
        self.b.select(self.b.is_nan(value), 1.0, value)
    }

    fn expression(&mut self, element: Element, depth: usize) -> Value {
        let depth = depth - 1;
        match self.random.below(10) {
            0 => {
                let op = *self.random.pick(&EXACT_UNARY);
                let takes = match op {
                    UnaryOp::Neg | UnaryOp::Abs => element != Element::Bool,
                    UnaryOp::Not => !element.is_float(),
                    UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Trunc | UnaryOp::RoundEven | UnaryOp::Sqrt => element.is_float(),
                    _ => element.is_integer(),
                };
                let x = self.value(element, depth);
                if takes { self.b.unary(op, x) } else { x }
            }
            1..=5 => self.binary(element, depth),
            6 if element == Element::Bool => {
                let other = *self.random.pick(&Element::ALL);
                let op = *self.random.pick(CompareOp::ALL);
                let op = if other == Element::Bool { CompareOp::Ne } else { op };
                let (x, y) = (self.value(other, depth), self.value(other, depth));
                self.b.compare(op, x, y)
            }
            6 => {
                let from = *self.random.pick(&Element::ALL);
                let x = self.value(from, depth);
                self.b.convert(x, element)
            }
            9 if element.is_float() && self.random.one_in(3) => {
                let function = *self.random.pick(MathFunction::ALL);
                let arguments: Vec<Value> = (0..function.arguments()).map(|_| self.value(element, depth)).collect();
                self.b.math(function, Precision::Accurate, &arguments)
            }
            7 if element.is_float() => {
                let (x, y, z) = (self.value(element, depth), self.value(element, depth), self.value(element, depth));
                self.b.fma(x, y, z)
            }
            7 => {
                let same: Vec<Element> = Element::ALL.into_iter().filter(|other| other.bits() == element.bits()).collect();
                let from = *self.random.pick(&same);
                let x = self.value(from, depth);
                let x = if from.is_float() { self.definite(x) } else { x };
                self.b.bitcast(x, element)
            }
            8 => {
                let c = self.value(Element::Bool, depth);
                let (x, y) = (self.value(element, depth), self.value(element, depth));
                self.b.select(c, x, y)
            }
            _ => {
                let entries: Vec<Literal> = (0..5).map(|_| self.random.literal(element)).collect();
                let table = self.b.table(&entries);
                let index = self.value(Element::U32, depth);
                self.b.lookup(table, self.b.and(index, 7))
            }
        }
    }

    fn binary(&mut self, element: Element, depth: usize) -> Value {
        let op = *self.random.pick(BinaryOp::ALL);
        let op = match op {
            BinaryOp::DivApprox => BinaryOp::Add,
            BinaryOp::Rem if element.is_float() => BinaryOp::Mul,
            op => op,
        };
        let takes = match op {
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => !element.is_float(),
            BinaryOp::Shl
            | BinaryOp::Shr
            | BinaryOp::MulHigh
            | BinaryOp::Rem
            | BinaryOp::AddSaturating
            | BinaryOp::SubSaturating => element.is_integer(),
            BinaryOp::CopySign => element.is_float(),
            _ => element != Element::Bool,
        };
        let x = self.value(element, depth);
        if !takes {
            return x;
        }
        match op {
            BinaryOp::Shl | BinaryOp::Shr => {
                let count = *self.random.pick(&[Element::U32, Element::I8, Element::I64, element]);
                let count = self.value(count, depth);
                self.b.binary(op, x, count)
            }
            BinaryOp::CopySign => {
                let sign = self.value(element, depth);
                self.b.copysign(x, self.definite(sign))
            }
            // Literals on the right exercise the identities.
            _ if self.random.one_in(3) => {
                let literal = self.b.literal(self.random.literal(element));
                if self.random.one_in(4) { self.b.binary(op, literal, x) } else { self.b.binary(op, x, literal) }
            }
            _ => {
                let y = self.value(element, depth);
                self.b.binary(op, x, y)
            }
        }
    }

    /// Makes the statements of a block. Their definitions are not available after it.
    fn block(&mut self, nesting: usize) {
        let values = self.values.len();
        for _ in 0..1 + self.random.below(3) {
            self.statement(nesting + 1);
        }
        self.values.truncate(values);
    }

    fn statement(&mut self, nesting: usize) {
        self.budget = self.budget.saturating_sub(1);
        let kind = if nesting >= 3 { self.random.below(5) } else { self.random.below(12) };
        match kind {
            0..=2 => {
                let variable = *self.random.pick(&self.variables.clone());
                let value = self.value(variable.ty().element(), 3);
                self.b.set(variable, value);
            }
            3 => {
                let variable = *self.random.pick(&self.variables.clone());
                let value = self.b.get(variable);
                self.values.push(value);
            }
            4 | 5 => self.array(nesting),
            6 | 7 => {
                let condition = self.value(Element::Bool, 3);
                self.b.begin_if(condition);
                self.block(nesting);
                if self.loops > 0 && self.random.one_in(4) {
                    if self.random.one_in(2) { self.b.break_loop() } else { self.b.continue_loop() }
                }
                if self.random.one_in(2) {
                    self.b.begin_else();
                    self.block(nesting);
                }
                self.b.end_if();
            }
            8..=10 => self.counting_loop(nesting),
            _ => self.open_loop(nesting),
        }
    }

    fn counting_loop(&mut self, nesting: usize) {
        let element = *self.random.pick(&[Element::I32, Element::U32, Element::I64, Element::U64, Element::I16, Element::U8]);
        let unroll = *self.random.pick(&[Unroll::Auto, Unroll::Auto, Unroll::Never, Unroll::Full, Unroll::By(3)]);
        let start = self.b.constant(element, self.random.below(4));
        let end = if self.random.one_in(2) {
            self.b.constant(element, self.random.below(9))
        } else {
            let value = self.value(element, 2);
            self.b.and(value, 7)
        };
        let counter = if element.is_signed() && self.random.one_in(4) {
            self.b.begin_for(end, start, -1, unroll)
        } else {
            self.b.begin_for(start, end, 1 + self.random.below(3), unroll)
        };
        let values = self.values.len();
        self.values.push(counter);
        self.loops += 1;
        self.block(nesting);
        self.loops -= 1;
        self.values.truncate(values);
        self.b.end_for();
    }

    /// Makes a loop with any condition that ends after a few iterations at the latest.
    fn open_loop(&mut self, nesting: usize) {
        let rounds = self.b.variable_with(self.b.constant(Type::I32, 0));
        let values = self.values.len();
        self.b.begin_while();
        let condition = self.value(Element::Bool, 2);
        let few = self.b.lt(self.b.get(rounds), 5);
        self.b.begin_while_body(self.b.and(condition, few));
        self.b.set(rounds, self.b.add(self.b.get(rounds), 1));
        self.loops += 1;
        self.block(nesting);
        self.loops -= 1;
        self.values.truncate(values);
        self.b.end_while();
    }

    fn array(&mut self, nesting: usize) {
        if self.arrays.is_empty() || self.random.one_in(4) {
            // Under a condition, an element might be read that was not set.
            if nesting > 0 {
                return;
            }
            let element = *self.random.pick(&Element::ALL);
            let array = self.b.array(element, 1 + self.random.below(6));
            for index in 0..array.length() {
                let value = self.value(element, 1);
                self.b.set_element(array, index, value);
            }
            self.arrays.push((array, element));
            return;
        }
        let (array, element) = *self.random.pick(&self.arrays.clone());
        let index = if self.random.one_in(2) {
            self.b.constant(Type::U32, self.random.below(array.length() as usize))
        } else {
            let any = *self.random.pick(&[Element::U32, Element::U8, Element::U64]);
            let any = self.value(any, 2);
            self.b.rem(any, array.length())
        };
        if self.random.one_in(2) {
            let value = self.value(element, 2);
            self.b.set_element(array, index, value);
        } else {
            let value = self.b.element(array, index);
            self.values.push(value);
        }
    }
}
