//! Facts about filters that later stages base their choices on.

use super::{
    Access, Expr, ExprKind, Filter, Function, FunctionId, Math, Place, Program, Rate, Root, Stmt, StmtKind, Stream, Type, Value,
};
use cranelift_entity::{EntitySet, PrimaryMap};

/// Effects of the firings of a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Fields that a firing or a handler writes, in order. Without such fields, firings are independent of
    /// each other.
    pub written: Vec<usize>,
    /// True if a firing prints.
    pub prints: bool,
    /// True if a firing draws random numbers.
    pub random: bool,
    /// True if a firing sends messages.
    pub sends: bool,
    /// True if a message may have a latency below 0.
    pub sends_back: bool,
    /// True if a firing asks for its own number.
    pub counts: bool,
    /// True if it peeks.
    pub peeks: bool,
    /// True if a firing converts floats to integers or compares floats. A difference in the last digit may
    /// then change the result much.
    pub decides: bool,
}

impl Facts {
    /// Returns whether firings depend only on the items they read and on their number.
    pub fn is_stateless(&self) -> bool {
        self.written.is_empty() && !self.random
    }
}

/// Collects the effects of `work`, `prework`, the handlers and the functions they call.
pub fn facts(program: &Program, filter: &Filter) -> Facts {
    let mut walk = FactWalk { facts: Facts::default(), calls: vec![filter.work.function] };
    walk.calls.extend(filter.prework.as_ref().map(|work| work.function));
    walk.calls.extend(filter.handlers.iter().map(|(_, function)| *function));
    let mut seen = EntitySet::new();
    while let Some(id) = walk.calls.pop() {
        if seen.insert(id) {
            let function = &program.functions[id];
            function.body.iter().flatten().for_each(|stmt| walk.stmt(stmt, &program.functions));
        }
    }
    walk.facts.written.sort_unstable();
    walk.facts.written.dedup();
    walk.facts
}

struct FactWalk {
    facts: Facts,
    calls: Vec<FunctionId>,
}

impl FactWalk {
    fn place(&mut self, place: &Place, written: bool, functions: &PrimaryMap<FunctionId, Function>) {
        if let (Root::Field(field), true) = (place.root, written) {
            self.facts.written.push(field);
        }
        for access in &place.path {
            if let Access::Index(index) = access {
                self.expr(index, functions);
            }
        }
    }

    fn stmt(&mut self, stmt: &Stmt, functions: &PrimaryMap<FunctionId, Function>) {
        match &stmt.kind {
            StmtKind::Assign(place, ..) => self.place(place, true, functions),
            StmtKind::Print(..) => self.facts.prints = true,
            StmtKind::Send(send) => {
                self.facts.sends = true;
                let forward = |latency: &Expr| matches!(latency.kind, ExprKind::Const(Value::Int(0..)));
                self.facts.sends_back |= !send.latency.as_ref().is_none_or(forward);
            }
            _ => {}
        }
        each_part(stmt, &mut |part| match part {
            StatementPart::Stmt(inner) => self.stmt(inner, functions),
            StatementPart::Expr(expr) => self.expr(expr, functions),
        });
    }

    fn expr(&mut self, expr: &Expr, functions: &PrimaryMap<FunctionId, Function>) {
        match &expr.kind {
            ExprKind::Read(place) => self.place(place, false, functions),
            ExprKind::Step(place, ..) => self.place(place, true, functions),
            ExprKind::Random => self.facts.random = true,
            ExprKind::Iter => self.facts.counts = true,
            ExprKind::Peek(_) => self.facts.peeks = true,
            ExprKind::Convert(inner) => self.facts.decides |= is_float(&inner.ty) && !is_float(&expr.ty),
            ExprKind::Binary(operator, ty, ..) => self.facts.decides |= operator.compares() && is_float(ty),
            ExprKind::Math(Math::Floor | Math::Ceil | Math::Round | Math::Rint | Math::Signum, _) => self.facts.decides = true,
            ExprKind::Call(id, args) => {
                self.calls.push(*id);
                for (index, arg) in args.iter().enumerate() {
                    if let ExprKind::Read(place) = &arg.kind {
                        self.place(place, functions[*id].written.get(index) == Some(&true), functions);
                    }
                }
            }
            _ => {}
        }
        each_operand(expr, &mut |operand| self.expr(operand, functions));
    }
}

/// Returns the parameters that the fields, `init`, types and rates of a filter depend on. Returns `None` if
/// evaluating them has effects or may give different results.
pub(crate) fn construction(program: &Program, stream: &Stream, filter: &Filter) -> Option<Vec<usize>> {
    let mut reads = Reads { params: vec![], calls: vec![], has_effects: false };
    let types = stream.types.iter().flat_map(|(input, output)| [input, output]);
    let fields = filter.fields.iter().map(|field| &field.declared);
    types.chain(fields).flat_map(|declared| &declared.lengths).for_each(|length| reads.expr(length));
    filter.fields.iter().filter_map(|field| field.value.as_ref()).for_each(|value| reads.expr(value));
    for work in filter.prework.iter().chain([&filter.work]) {
        for rate in [&work.push, &work.pop, &work.peek] {
            match rate {
                Rate::None => {}
                Rate::Exact(rate) => reads.expr(rate),
                Rate::Range(min, max) => min.iter().chain(max).for_each(|bound| reads.expr(bound)),
            }
        }
    }
    reads.calls.extend(filter.init);
    let mut seen = EntitySet::new();
    while let Some(id) = reads.calls.pop() {
        if seen.insert(id) {
            program.functions[id].body.iter().flatten().for_each(|stmt| reads.stmt(stmt));
        }
    }
    reads.params.sort_unstable();
    reads.params.dedup();
    (!reads.has_effects).then_some(reads.params)
}

struct Reads {
    params: Vec<usize>,
    calls: Vec<FunctionId>,
    has_effects: bool,
}

impl Reads {
    fn place(&mut self, place: &Place) {
        if let Root::Param(param) = place.root {
            self.params.push(param);
        }
        each_index(place, &mut |index| self.expr(index));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Assign(place, ..) => self.place(place),
            StmtKind::Declare(_, declared, _) => self.has_effects |= matches!(declared.ty, Type::Portal(_)),
            StmtKind::Block(_)
            | StmtKind::Expr(_)
            | StmtKind::If(..)
            | StmtKind::Loop(..)
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => {}
            StmtKind::Push(_)
            | StmtKind::Print(..)
            | StmtKind::Send(_)
            | StmtKind::Create(..)
            | StmtKind::Split(_)
            | StmtKind::Join(_)
            | StmtKind::Enqueue(_) => self.has_effects = true,
        }
        each_part(stmt, &mut |part| match part {
            StatementPart::Stmt(inner) => self.stmt(inner),
            StatementPart::Expr(expr) => self.expr(expr),
        });
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Read(place) | ExprKind::Step(place, ..) => self.place(place),
            ExprKind::Call(id, _) => self.calls.push(*id),
            ExprKind::Random | ExprKind::Pop | ExprKind::Peek(_) | ExprKind::Iter | ExprKind::FileArray(..) => {
                self.has_effects = true;
            }
            _ => {}
        }
        each_operand(expr, &mut |operand| self.expr(operand));
    }
}

fn is_float(ty: &Type) -> bool {
    matches!(ty, Type::Float | Type::Double | Type::Complex)
}

/// A direct part of a statement.
enum StatementPart<'a> {
    Stmt(&'a Stmt),
    Expr(&'a Expr),
}

/// Calls a function with every direct part of a statement, except the indices of the assigned place.
fn each_part<'a>(stmt: &'a Stmt, visit: &mut dyn FnMut(StatementPart<'a>)) {
    match &stmt.kind {
        StmtKind::Block(inner) => inner.iter().for_each(|stmt| visit(StatementPart::Stmt(stmt))),
        StmtKind::Declare(_, declared, value) => {
            declared.lengths.iter().for_each(|length| visit(StatementPart::Expr(length)));
            value.iter().for_each(|value| visit(StatementPart::Expr(value)));
        }
        StmtKind::Assign(_, _, value)
        | StmtKind::Expr(value)
        | StmtKind::Push(value)
        | StmtKind::Print(value, _)
        | StmtKind::Enqueue(value) => visit(StatementPart::Expr(value)),
        StmtKind::If(condition, then, otherwise) => {
            visit(StatementPart::Expr(condition));
            visit(StatementPart::Stmt(then));
            otherwise.iter().for_each(|stmt| visit(StatementPart::Stmt(stmt)));
        }
        StmtKind::Loop(condition, step, body, _) => {
            condition.iter().for_each(|condition| visit(StatementPart::Expr(condition)));
            step.iter().for_each(|stmt| visit(StatementPart::Stmt(stmt)));
            visit(StatementPart::Stmt(body));
        }
        StmtKind::Return(value) => value.iter().for_each(|value| visit(StatementPart::Expr(value))),
        StmtKind::Send(send) => {
            visit(StatementPart::Expr(&send.portal));
            send.args.iter().chain(&send.latency).for_each(|expr| visit(StatementPart::Expr(expr)));
        }
        StmtKind::Create(_, create) => {
            create.args.iter().chain(&create.portals).for_each(|expr| visit(StatementPart::Expr(expr)))
        }
        StmtKind::Break | StmtKind::Continue | StmtKind::Split(_) | StmtKind::Join(_) => {}
    }
}

/// Calls a function with every operand of an expression, except the indices of places.
pub(crate) fn each_operand<'a>(expr: &'a Expr, visit: &mut dyn FnMut(&'a Expr)) {
    match &expr.kind {
        ExprKind::Const(_) | ExprKind::Read(_) | ExprKind::Step(..) | ExprKind::Random | ExprKind::Pop | ExprKind::Iter => {}
        ExprKind::Part(inner, access) => {
            visit(inner);
            if let Access::Index(index) = &**access {
                visit(index);
            }
        }
        ExprKind::Convert(inner)
        | ExprKind::Negate(inner)
        | ExprKind::Not(inner)
        | ExprKind::Complement(inner)
        | ExprKind::Peek(inner) => visit(inner),
        ExprKind::Binary(_, _, left, right)
        | ExprKind::And(left, right)
        | ExprKind::Or(left, right)
        | ExprKind::Concat(left, right)
        | ExprKind::FileArray(left, right) => {
            visit(left);
            visit(right);
        }
        ExprKind::Choose(condition, yes, no) => {
            visit(condition);
            visit(yes);
            visit(no);
        }
        ExprKind::Call(_, args) | ExprKind::Math(_, args) | ExprKind::List(args) => args.iter().for_each(visit),
    }
}

/// Finds the array parameters that functions write, directly or by passing them on, and records them in the
/// functions.
pub fn mark_written_parameters(functions: &mut PrimaryMap<FunctionId, Function>) {
    loop {
        let mut found = vec![];
        for (id, function) in functions.iter() {
            let mut written = vec![];
            function.body.iter().flatten().for_each(|stmt| locals_written(stmt, functions, &mut written));
            for local in written {
                if local < function.params && matches!(function.locals[local].ty, Type::Array(_)) && !function.written[local] {
                    found.push((id, local));
                }
            }
        }
        if found.is_empty() {
            return;
        }
        for (id, local) in found {
            functions[id].written[local] = true;
        }
    }
}

/// Collects the locals that a statement writes, except by declarations.
pub(crate) fn locals_written(stmt: &Stmt, functions: &PrimaryMap<FunctionId, Function>, written: &mut Vec<usize>) {
    if let StmtKind::Assign(Place { root: Root::Local(local), .. }, ..) = &stmt.kind {
        written.push(*local);
    }
    each_part(stmt, &mut |part| match part {
        StatementPart::Stmt(inner) => locals_written(inner, functions, written),
        StatementPart::Expr(expr) => locals_written_by_calls(expr, functions, written),
    });
}

fn locals_written_by_calls(expr: &Expr, functions: &PrimaryMap<FunctionId, Function>, written: &mut Vec<usize>) {
    match &expr.kind {
        ExprKind::Step(Place { root: Root::Local(local), .. }, ..) => written.push(*local),
        ExprKind::Call(id, args) => {
            for (index, arg) in args.iter().enumerate() {
                if let ExprKind::Read(Place { root: Root::Local(local), .. }) = &arg.kind
                    && functions[*id].written.get(index) == Some(&true)
                {
                    written.push(*local);
                }
            }
        }
        _ => {}
    }
    each_operand(expr, &mut |operand| locals_written_by_calls(operand, functions, written));
}

/// Calls a function with every place that a statement writes, including arguments that called functions
/// write.
pub(crate) fn each_write(stmt: &Stmt, functions: &PrimaryMap<FunctionId, Function>, visit: &mut dyn FnMut(&Place)) {
    if let StmtKind::Assign(place, ..) = &stmt.kind {
        visit(place);
        each_index(place, &mut |index| each_write_of(index, functions, visit));
    }
    each_part(stmt, &mut |part| match part {
        StatementPart::Stmt(inner) => each_write(inner, functions, visit),
        StatementPart::Expr(expr) => each_write_of(expr, functions, visit),
    });
}

fn each_write_of(expr: &Expr, functions: &PrimaryMap<FunctionId, Function>, visit: &mut dyn FnMut(&Place)) {
    match &expr.kind {
        ExprKind::Read(place) => each_index(place, &mut |index| each_write_of(index, functions, visit)),
        ExprKind::Step(place, ..) => {
            visit(place);
            each_index(place, &mut |index| each_write_of(index, functions, visit));
        }
        ExprKind::Call(id, args) => {
            for (index, arg) in args.iter().enumerate() {
                if let ExprKind::Read(place) = &arg.kind
                    && functions[*id].written.get(index) == Some(&true)
                {
                    visit(place);
                }
            }
        }
        _ => {}
    }
    each_operand(expr, &mut |operand| each_write_of(operand, functions, visit));
}

/// Calls a function with the indices of a place.
pub(crate) fn each_index<'a>(place: &'a Place, visit: &mut dyn FnMut(&'a Expr)) {
    for access in &place.path {
        if let Access::Index(index) = access {
            visit(index);
        }
    }
}

/// Calls a function with every function that a statement calls.
pub(crate) fn each_call(stmt: &Stmt, visit: &mut dyn FnMut(FunctionId)) {
    if let StmtKind::Assign(place, ..) = &stmt.kind {
        each_index(place, &mut |index| each_call_of(index, visit));
    }
    each_part(stmt, &mut |part| match part {
        StatementPart::Stmt(inner) => each_call(inner, visit),
        StatementPart::Expr(expr) => each_call_of(expr, visit),
    });
}

fn each_call_of(expr: &Expr, visit: &mut dyn FnMut(FunctionId)) {
    match &expr.kind {
        ExprKind::Call(id, _) => visit(*id),
        ExprKind::Read(place) | ExprKind::Step(place, ..) => each_index(place, &mut |index| each_call_of(index, visit)),
        _ => {}
    }
    each_operand(expr, &mut |operand| each_call_of(operand, visit));
}
