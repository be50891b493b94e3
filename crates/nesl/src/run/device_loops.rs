//! Loops of elements on a device: each element runs the rounds of its call in its own thread. A form without
//! rounds is a function of elements that reduces sequences.
//!
//! A round becomes a scalar function with a loop around it, which the planner applies element by element. It
//! executes a limited number of rounds. The first launch returns results only. If elements are unfinished, the
//! loops start again and return the parameters of the next round, too, from which later launches continue.

use super::extent::Extent;
use super::loop_functions::LoopStage;
use super::vector::Vector;
use super::{Accelerator, Entry, OpResult, device_error, on_device};
use crate::eval::{Fault, Run};
use crate::vcode::elementwise::DeviceForm;
use crate::vcode::{Check, LoopBlock, LoopEnd, LoopFold, Op, Reg, Step, TailLoop, Type};
use broadloom_graph::{Boundary, Combine, Node, Reads, Shape};
use broadloom_scalar::{Accessor, AccessorKind, Builder, Element, Function, Literal, Precision, Unroll, Value, Variable};
use std::sync::Arc;

/// Minimum number of rounds of the first launch, and its number of steps of all elements together.
const MIN_ROUNDS: u64 = 1 << 10;
const FIRST_STEPS: u64 = 1 << 24;

/// Maximum number of loop forms whose functions are kept.
const MAX_KEPT: usize = 64;

/// Outcome of a launch.
pub(crate) enum LoopOutcome {
    /// All elements are finished.
    Done(Vec<OpResult>),
    /// Some elements need more rounds.
    Open,
    /// The element at this index has failed.
    Failed(usize),
}

/// Progress of the loops of all elements.
pub(crate) struct LoopRun {
    form: Arc<TailLoop>,
    calls: usize,
    params: Vec<Vector>,
    tables: Vec<Node>,
    stage: LoopStage,
    /// Results of the last launch: for each element the results, whether it is unfinished and whether it has
    /// failed, and the parameters that change.
    state: Vec<Node>,
}

fn internal<T>(reason: &str) -> Run<T> {
    Fault::at_run_time(format!("internal error: {reason} of a loop; please report it"))
}

impl LoopRun {
    /// Makes loops for the elements of a context. Returns `None` if it has no elements.
    pub(crate) fn new(
        accelerator: &mut Accelerator,
        form: &Arc<TailLoop>,
        context: &Entry,
        (params, tables): (&[Entry], &[Entry]),
    ) -> Run<Option<LoopRun>> {
        accelerator.untraced()?;
        let segdes = accelerator.segdes(context)?;
        let calls = accelerator.total(&segdes)?;
        let calls = accelerator.known(&calls)?;
        if calls == 0 {
            return Ok(None);
        }
        let mut vectors = vec![];
        for param in params {
            let vector = accelerator.vector(param)?;
            vectors.push(accelerator.with_extent(&vector, &Extent::host(calls))?);
        }
        let mut nodes = vec![];
        for table in tables {
            let vector = accelerator.vector(table)?;
            nodes.push(accelerator.padded(&vector)?);
        }
        // A round reads them at computed indices, so they are not computed again in the loop.
        let is_lazy = |node: &&Node| node.buffer().is_none();
        let lazy: Vec<Node> = nodes.iter().filter(is_lazy).cloned().collect();
        if !lazy.is_empty() {
            accelerator.evaluate(&lazy)?;
        }
        let stage = LoopStage::Attempt;
        Ok(Some(LoopRun { form: form.clone(), calls, params: vectors, tables: nodes, stage, state: vec![] }))
    }

    /// Returns the number of rounds of the first launch.
    pub(crate) fn first_rounds(&self) -> u64 {
        (FIRST_STEPS / (self.calls as u64 * self.form.size() as u64).max(1)).max(MIN_ROUNDS)
    }

    /// Executes at most this number of rounds of each element; waits.
    pub(crate) fn launch(&mut self, accelerator: &mut Accelerator, rounds: u64) -> Run<LoopOutcome> {
        let function = accelerator.loop_function(&self.form, self.stage)?;
        if !self.form.repeats {
            return self.launch_once(accelerator, &function);
        }
        let rounds = accelerator.one(Literal::from(i32::try_from(rounds).unwrap_or(i32::MAX)))?;
        let results = self.form.results.len() + 2;
        let mut changed = self.state.get(results..).unwrap_or_default().iter();
        let mut inputs: Vec<&Node> = vec![&rounds];
        for (param, invariant) in self.params.iter().zip(&self.form.invariant) {
            let kept = if *invariant || self.stage != LoopStage::Resume { None } else { changed.next() };
            inputs.push(kept.unwrap_or(&param.node));
        }
        if self.stage == LoopStage::Resume {
            inputs.extend(self.state.get(..results).unwrap_or_default());
        }
        let state = self.applied(&function, &inputs)?;
        accelerator.evaluate(&state)?;
        let [open, failed] = [state[results - 2].clone(), state[results - 1].clone()];
        self.state = state;
        let any = |accelerator: &mut Accelerator, flags: &Node| {
            let any = on_device(flags.reduce(Combine::Any, &[0]))?;
            accelerator.convert(&any, Element::I64)
        };
        let any_open = any(accelerator, &open)?;
        let any_failed = any(accelerator, &failed)?;
        let [is_open, has_failed] = accelerator.two_numbers(&any_open, &any_failed)?;
        if has_failed != 0 {
            let flags = accelerator.elements(&Vector::of(failed))?.bools();
            return Ok(LoopOutcome::Failed(flags.iter().position(|flag| *flag).unwrap_or(0)));
        }
        if is_open != 0 {
            self.stage = if self.stage == LoopStage::Attempt { LoopStage::Start } else { LoopStage::Resume };
            if self.stage == LoopStage::Start {
                self.state.clear();
            }
            return Ok(LoopOutcome::Open);
        }
        let state = std::mem::take(&mut self.state);
        Ok(LoopOutcome::Done(self.done(accelerator, state)))
    }

    /// Applies a function at each element.
    fn applied(&self, function: &Function, inputs: &[&Node]) -> Run<Vec<Node>> {
        if self.tables.is_empty() {
            return on_device(Node::call(function, inputs));
        }
        let zero = |node: &Node| Boundary::Constant([Literal::zero(node.ty().element())].as_slice().into());
        let tables: Vec<(&Node, Reads)> = self.tables.iter().map(|node| (node, Reads::At(zero(node)))).collect();
        on_device(Node::compute(function, &Shape::from(self.calls), inputs, &tables, &[]))
    }

    /// Executes the only round. Waits only for errors.
    fn launch_once(&mut self, accelerator: &mut Accelerator, function: &Function) -> Run<LoopOutcome> {
        let params: Vec<Node> = self.params.iter().map(|param| param.node.clone()).collect();
        if let Some(product) = accelerator.product_of_loops(&self.form, self.calls, &params, &self.tables)? {
            return Ok(LoopOutcome::Done(self.done(accelerator, vec![product])));
        }
        let inputs: Vec<&Node> = self.params.iter().map(|param| &param.node).collect();
        let mut state = self.applied(function, &inputs)?;
        if self.form.may_fail {
            accelerator.evaluate(&state)?;
            let Some(failed) = state.pop() else { return internal("no flag") };
            let any = on_device(failed.reduce(Combine::Any, &[0]))?;
            let any = accelerator.convert(&any, Element::I64)?;
            let [has_failed, _] = accelerator.two_numbers(&any, &any)?;
            if has_failed != 0 {
                let flags = accelerator.elements(&Vector::of(failed))?.bools();
                return Ok(LoopOutcome::Failed(flags.iter().position(|flag| *flag).unwrap_or(0)));
            }
        }
        accelerator.made += 1;
        Ok(LoopOutcome::Done(self.done(accelerator, state)))
    }

    /// Makes the results of finished loops.
    fn done(&self, accelerator: &mut Accelerator, state: Vec<Node>) -> Vec<OpResult> {
        accelerator.loop_calls += self.calls as u64;
        let extent = Extent::host(self.calls);
        let made = self.form.results.iter().zip(state);
        made.map(|(ty, node)| OpResult::Vector(*ty, Vector::new(node, extent.clone()))).collect()
    }

    /// Returns the parameters of an element: ints, bits of floats, and bools as 0 or 1.
    pub(crate) fn params_of(&self, accelerator: &mut Accelerator, index: usize) -> Run<Vec<i64>> {
        let mut bits = vec![];
        for (param, ty) in self.params.iter().zip(&self.form.params) {
            let elements = accelerator.elements(param)?;
            let own = match ty {
                Type::Float => elements.floats().get(index).map(|value| value.to_bits() as i64),
                Type::Bool => elements.bools().get(index).map(|value| i64::from(*value)),
                Type::Int | Type::Char | Type::Segdes => elements.ints().get(index).copied(),
            };
            let Some(own) = own else { return internal("a missing parameter") };
            bits.push(own);
        }
        Ok(bits)
    }
}

impl Accelerator {
    fn loop_function(&mut self, form: &Arc<TailLoop>, stage: LoopStage) -> Run<Function> {
        let known = self.loops.iter().find(|(own, own_stage, _)| Arc::ptr_eq(own, form) && *own_stage == stage);
        if let Some((.., function)) = known {
            return Ok(function.clone());
        }
        let types: Vec<Element> = [Type::Int, Type::Float, Type::Bool].into_iter().map(|ty| self.element_of(ty)).collect();
        let function = LoopCode::function(form, stage, [types[0], types[1]]).map_err(|error| device_error(error.into()))?;
        if self.loops.len() >= MAX_KEPT {
            self.loops.remove(0);
        }
        self.loops.push((form.clone(), stage, function.clone()));
        Ok(function)
    }
}

/// Writes the scalar function of a loop.
struct LoopCode<'a> {
    f: &'a Builder,
    form: &'a TailLoop,
    int: Element,
    float: Element,
    tables: Vec<Accessor>,
    values: Vec<Option<Value>>,
    /// Registers that both branches of a choice set.
    chosen: Vec<Option<Variable>>,
    params: Vec<Option<Variable>>,
    results: Vec<Variable>,
    open: Variable,
    failed: Variable,
}

impl LoopCode<'_> {
    fn function(form: &TailLoop, stage: LoopStage, [int, float]: [Element; 2]) -> broadloom_scalar::Result<Function> {
        let f = Builder::function(&form.source);
        // Results are those of the host, which rounds every product.
        f.keep_products();
        let element = |ty: Type| match ty {
            Type::Float => float,
            Type::Bool => Element::Bool,
            Type::Int | Type::Char | Type::Segdes => int,
        };
        let tables: Vec<Accessor> = form.tables().map(|ty| f.accessor("table", AccessorKind::Input, element(ty), 1)).collect();
        if !tables.is_empty() {
            f.parameter("position", Element::I64);
        }
        let rounds = form.repeats.then(|| f.parameter("rounds", Element::I32));
        let given: Vec<Value> = form.params.iter().map(|ty| f.parameter("p", element(*ty))).collect();
        let results: Vec<Variable> = form.results.iter().map(|ty| f.variable(element(*ty))).collect();
        let (open, failed) = (f.variable_with(f.literal(true)), f.variable(Element::Bool));
        if stage == LoopStage::Resume {
            for (result, ty) in results.iter().zip(&form.results) {
                f.set(*result, f.parameter("r", element(*ty)));
            }
            f.set(open, f.parameter("open", Element::Bool));
            f.set(failed, f.parameter("failed", Element::Bool));
        }
        let mut values: Vec<Option<Value>> = vec![None; form.registers.len()];
        let mut params = vec![];
        for (index, (value, invariant)) in given.iter().zip(&form.invariant).enumerate() {
            values[index] = Some(*value);
            params.push((!invariant).then(|| f.variable_with(*value)));
        }
        let chosen = vec![None; form.registers.len()];
        let mut code = LoopCode { f: &f, form, int, float, tables, values, chosen, params, results, open, failed };
        let Some(rounds) = rounds else {
            code.block(&form.round);
            let mut outputs: Vec<Value> = code.results.iter().map(|result| f.get(*result)).collect();
            outputs.extend(form.may_fail.then(|| f.get(failed)));
            return f.finish_function(&outputs);
        };
        let left = f.variable_with(rounds);
        f.while_loop(
            || f.and(f.get(open), f.gt(f.get(left), 0)),
            || {
                f.set(left, f.sub(f.get(left), 1));
                for (value, param) in code.values.iter_mut().zip(&code.params) {
                    if let Some(param) = param {
                        *value = Some(f.get(*param));
                    }
                }
                code.block(&form.round);
            },
        );
        let mut outputs: Vec<Value> = code.results.iter().map(|result| f.get(*result)).collect();
        outputs.extend([f.get(open), f.get(failed)]);
        if stage != LoopStage::Attempt {
            outputs.extend(code.params.iter().flatten().map(|param| f.get(*param)));
        }
        f.finish_function(&outputs)
    }

    fn value(&self, reg: Reg) -> Value {
        match (self.chosen[reg as usize], self.values[reg as usize]) {
            (Some(variable), _) => self.f.get(variable),
            (None, Some(value)) => value,
            (None, None) => self.f.fail("a register of a loop is not set"),
        }
    }

    fn block(&mut self, block: &LoopBlock) {
        self.steps(&block.steps);
        let f = self.f;
        match &block.end {
            LoopEnd::Return(regs) => {
                for (result, reg) in self.results.iter().zip(regs) {
                    f.set(*result, self.value(*reg));
                }
                f.set(self.open, f.literal(false));
            }
            LoopEnd::Again(regs) => {
                let next: Vec<Value> = regs.iter().map(|reg| self.value(*reg)).collect();
                for (param, value) in self.params.iter().zip(next) {
                    if let Some(param) = param {
                        f.set(*param, value);
                    }
                }
            }
            LoopEnd::If(condition, branches) => {
                f.begin_if(self.value(*condition));
                self.block(&branches.0);
                f.begin_else();
                self.block(&branches.1);
                f.end_if();
            }
        }
    }

    /// Ends the loop with an error if a condition holds.
    fn fail_if(&self, condition: Value) {
        let f = self.f;
        f.set(self.failed, f.or(f.get(self.failed), condition));
        f.set(self.open, f.and(f.get(self.open), f.not(condition)));
    }

    fn check(&self, check: Check, operands: &[Value]) {
        if let Some((_, test)) = check.violation() {
            self.fail_if(test(self.f, operands));
        }
    }

    fn steps(&mut self, steps: &[Step]) {
        let f = self.f;
        for step in steps {
            match step {
                Step::Const(to, bits) => {
                    let value = match self.form.registers[*to as usize] {
                        Type::Float => f.constant(self.float, f64::from_bits(*bits as u64)),
                        Type::Bool => f.literal(*bits != 0),
                        Type::Int | Type::Char | Type::Segdes if self.int == Element::I64 => f.constant(self.int, *bits),
                        Type::Int | Type::Char | Type::Segdes => f.constant(self.int, *bits as i32),
                    };
                    self.values[*to as usize] = Some(value);
                }
                Step::Copy(to, from) => {
                    let value = self.value(*from);
                    if let Some(variable) = self.chosen[*to as usize] {
                        f.set(variable, value);
                    }
                }
                Step::Op { to, op, args, .. } => {
                    let args = args.map(|reg| self.value(reg));
                    let value = self.op(*op, args);
                    self.values[*to as usize] = Some(value);
                }
                Step::Choose(condition, then, otherwise) => {
                    let condition = self.value(*condition);
                    for step in then {
                        if let Step::Copy(to, _) = step {
                            let element = self.element(self.form.registers[*to as usize]);
                            self.chosen[*to as usize] = Some(f.variable(element));
                        }
                    }
                    f.begin_if(condition);
                    self.steps(then);
                    f.begin_else();
                    self.steps(otherwise);
                    f.end_if();
                }
                Step::Load { to, table, args } => {
                    let [index, start] = args.map(|reg| self.value(reg));
                    let place = f.convert(f.add(start, index), Element::I64);
                    self.values[*to as usize] = Some(f.read(self.tables[*table], &[place.into()]));
                }
                Step::Check(check, args, _) => {
                    self.check(*check, &args.map(|reg| self.value(reg)));
                }
                Step::Fold(fold) => self.fold(fold),
                Step::Require(reg, ..) => self.check(Check::Require, &[self.value(*reg)]),
            }
        }
    }

    fn fold(&mut self, fold: &LoopFold) {
        let f = self.f;
        for carried in &fold.carried {
            let variable = f.variable_with(self.value(carried.start));
            self.chosen[carried.reg as usize] = Some(variable);
        }
        let index = f.begin_for(f.constant(self.int, 0), self.value(fold.length), 1, Unroll::Auto);
        self.values[fold.index as usize] = Some(index);
        self.steps(&fold.steps);
        let next: Vec<Value> = fold.carried.iter().map(|carried| self.value(carried.next)).collect();
        for (carried, value) in fold.carried.iter().zip(next) {
            if let Some(variable) = self.chosen[carried.reg as usize] {
                f.set(variable, value);
            }
        }
        f.end_for();
    }

    fn element(&self, ty: Type) -> Element {
        match ty {
            Type::Float => self.float,
            Type::Bool => Element::Bool,
            Type::Int | Type::Char | Type::Segdes => self.int,
        }
    }

    fn op(&self, op: Op, [a, b, c]: [Value; 3]) -> Value {
        let f = self.f;
        let Some(operation) = op.elementwise() else {
            return if op == Op::Select { f.select(a, b, c) } else { f.fail("an instruction is not for scalars") };
        };
        if let Some(failure) = operation.failure() {
            self.fail_if(failure.value.test(f, [a, b][failure.operand]));
        }
        match operation.device() {
            DeviceForm::Unary(op) => f.unary(op, a),
            DeviceForm::Binary(op) => f.binary(op, a, b),
            DeviceForm::Compare(op) => f.compare(op, a, b),
            DeviceForm::Convert(to) => f.convert(a, self.element(to)),
            DeviceForm::Math(function) => f.math(function, Precision::Accurate, &[a]),
            DeviceForm::Code(_, code) => code(f, &[a, b], self.int),
        }
    }
}
