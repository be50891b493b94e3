//! Expressions of a firing.

use super::math::narrow;
use super::position::ItemCounts;
use super::reason::Reason;
use super::translator::Translator;
use super::value::{Atom, Ref, Term, element};
use crate::language::core::{Access, Binary, Expr, ExprKind, FunctionId, Layout, Place, Root, Type, Value};
use crate::language::eval::{binary as compute, convert};
use broadloom_scalar::{Type as ScalarType, Value as ScalarValue};

impl<'a> Translator<'a> {
    /// Returns the value of a constant expression, without code.
    pub(super) fn known_value(&self, expr: &'a Expr) -> Option<Value> {
        match &expr.kind {
            ExprKind::Const(value) => Some(value.clone()),
            ExprKind::Read(place) => {
                let mut value = match place.root {
                    Root::Local(local) => {
                        let local = self.frames.last()?.locals.get(local)?;
                        match (&local.known, &local.term) {
                            (Some(known), _) => known.clone(),
                            (None, Some(Term::Atom(Atom::Known(known)))) => known.clone(),
                            _ => return None,
                        }
                    }
                    Root::Param(param) => self.subject.instance.params.get(param)?.clone(),
                    Root::Static(index) => self.subject.statics.get(index)?.clone(),
                    Root::Field(field) if self.is_constant(field) => self.subject.instance.fields.get(field)?.clone(),
                    Root::Field(_) => return None,
                };
                for access in &place.path {
                    value = match (&value, access) {
                        (Value::Array(parts), Access::Index(index)) => {
                            let Value::Int(index) = self.known_value(index)? else { return None };
                            parts.get(usize::try_from(index).ok()?)?.clone()
                        }
                        (Value::Struct(parts), Access::Member(member)) => parts.get(*member)?.clone(),
                        (Value::Complex(real, _), Access::Real) => Value::Float(*real),
                        (Value::Complex(_, imaginary), Access::Imaginary) => Value::Float(*imaginary),
                        _ => return None,
                    };
                }
                (value != Value::Unset).then_some(value)
            }
            ExprKind::Convert(inner) => convert(&self.known_value(inner)?, &expr.ty),
            ExprKind::Negate(inner) => match self.known_value(inner)? {
                Value::Int(value) => Some(Value::Int(value.wrapping_neg())),
                Value::Float(value) => Some(Value::Float(-value)),
                Value::Double(value) => Some(Value::Double(-value)),
                _ => None,
            },
            ExprKind::Not(inner) => match self.known_value(inner)? {
                Value::Boolean(value) => Some(Value::Boolean(!value)),
                _ => None,
            },
            ExprKind::Binary(operator, _, left, right) => {
                compute(*operator, &self.known_value(left)?, &self.known_value(right)?).ok()
            }
            _ => None,
        }
    }

    /// Returns the value of a constant condition.
    pub(super) fn known_truth(&self, expr: &'a Expr) -> Option<bool> {
        match self.known_value(expr)? {
            Value::Boolean(value) => Some(value),
            _ => None,
        }
    }

    fn is_constant(&self, field: usize) -> bool {
        !self.inductions.contains_key(&field) && !self.state.contains_key(&field)
    }

    /// Returns the place of a variable.
    fn root(&mut self, root: Root) -> Result<Term, Reason> {
        let key = match root {
            Root::Local(local) => {
                let entry = &self.frame()?.locals[local];
                if let Some(term) = &entry.term {
                    return Ok(term.clone());
                }
                return entry.place.clone().map(Term::Ref).ok_or_else(|| "it reads a variable before it is set".into());
            }
            Root::Field(field) => {
                if let Some(variable) = self.inductions.get(&field) {
                    return Ok(Term::Atom(Atom::ScalarValue(self.b.get(*variable))));
                }
                if let Some(place) = self.state.get(&field) {
                    return Ok(Term::Ref(place.clone()));
                }
                (0, field)
            }
            Root::Param(param) => (1, param),
            Root::Static(index) => (2, index),
        };
        if let Some(place) = self.constants.get(&key) {
            return Ok(Term::Ref(place.clone()));
        }
        let subject = self.subject;
        let (value, layout) = match root {
            Root::Field(field) => {
                let layout = self.layout(&subject.filter.fields[field].declared)?;
                (&subject.instance.fields[field], Some(layout))
            }
            Root::Static(index) => {
                let layout = self.layout(&subject.program.statics[index].declared)?;
                (&subject.statics[index], Some(layout))
            }
            Root::Param(param) | Root::Local(param) => {
                let value = &subject.instance.params[param];
                let stream = &subject.program.streams[subject.instance.stream];
                (value, Layout::of(value, &stream.params[param].ty, &subject.program.structs))
            }
        };
        let layout = layout.ok_or("it reads a constant that kernels do not have")?;
        let place = self.constant(&layout, value)?;
        self.constants.insert(key, place.clone());
        Ok(Term::Ref(place))
    }

    /// Evaluates the indices of a place, left to right, and returns its storage. The caller handles the parts
    /// of a complex number.
    pub(super) fn resolve(&mut self, place: &'a Place) -> Result<Ref, Reason> {
        let mut at = match self.root(place.root)? {
            Term::Ref(place) => place,
            Term::Atom(_) | Term::Complex(..) | Term::Void => return Err("it writes a constant".into()),
        };
        for access in &place.path {
            at = match access {
                Access::Index(index) => {
                    let index = self.atom(index)?;
                    self.element(&at, index)?
                }
                Access::Member(member) => self.member(&at, *member)?,
                Access::Real | Access::Imaginary => at,
            };
        }
        Ok(at)
    }

    /// Reads a place whose indices were evaluated.
    pub(super) fn read_resolved(&mut self, place: &'a Place, at: &Ref, part: Option<usize>) -> Result<Term, Reason> {
        if let Root::Local(local) = place.root {
            let entry = &self.frame()?.locals[local];
            if let (Some(known), true) = (&entry.known, place.path.is_empty()) {
                return Ok(Term::Atom(Atom::Known(known.clone())));
            }
            if let (false, Some(flag)) = (entry.set, entry.flag) {
                let unset = self.b.not(self.b.get(flag));
                self.fail_if(unset);
            }
        }
        Ok(match (self.load(at), part) {
            (Term::Complex(real, _), Some(0)) => Term::Atom(real),
            (Term::Complex(_, imaginary), Some(_)) => Term::Atom(imaginary),
            (term, _) => term,
        })
    }

    fn read(&mut self, place: &'a Place) -> Result<Term, Reason> {
        let part = match place.path.last() {
            Some(Access::Real) => Some(0),
            Some(Access::Imaginary) => Some(1),
            _ => None,
        };
        match self.root(place.root)? {
            Term::Ref(_) => {
                let at = self.resolve(place)?;
                self.read_resolved(place, &at, part)
            }
            Term::Complex(real, imaginary) => Ok(match part {
                None => Term::Complex(real, imaginary),
                Some(0) => Term::Atom(real),
                Some(_) => Term::Atom(imaginary),
            }),
            term => Ok(term),
        }
    }

    /// Evaluates a scalar expression.
    pub(super) fn atom(&mut self, expr: &'a Expr) -> Result<Atom, Reason> {
        match self.expr(expr)? {
            Term::Atom(atom) => Ok(atom),
            Term::Void | Term::Complex(..) | Term::Ref(_) => Err("it needs a scalar where it has none".into()),
        }
    }

    /// Evaluates an expression.
    pub(super) fn expr(&mut self, expr: &'a Expr) -> Result<Term, Reason> {
        Ok(match &expr.kind {
            ExprKind::Const(Value::Complex(real, imaginary)) => {
                Term::Complex(Atom::Known(Value::Float(*real)), Atom::Known(Value::Float(*imaginary)))
            }
            ExprKind::Const(value @ (Value::Array(_) | Value::Struct(_))) => {
                let layout = Layout::of(value, &expr.ty, &self.subject.program.structs)
                    .ok_or("it reads a constant that kernels do not have")?;
                Term::Ref(self.constant(&layout, value)?)
            }
            ExprKind::Const(Value::Unset | Value::Portal(_) | Value::Text(_)) => return Err("it uses a string".into()),
            ExprKind::Const(value) => Term::Atom(Atom::Known(value.clone())),
            ExprKind::Read(place) => self.read(place)?,
            ExprKind::Part(inner, access) => {
                let value = self.expr(inner)?;
                match (value, &**access) {
                    (Term::Complex(real, _), Access::Real) => Term::Atom(real),
                    (Term::Complex(_, imaginary), Access::Imaginary) => Term::Atom(imaginary),
                    (Term::Ref(place), Access::Index(index)) => {
                        let index = self.atom(index)?;
                        let place = self.element(&place, index)?;
                        self.load(&place)
                    }
                    (Term::Ref(place), Access::Member(member)) => {
                        let place = self.member(&place, *member)?;
                        self.load(&place)
                    }
                    _ => return Err("it takes a part of a value that has none".into()),
                }
            }
            ExprKind::Step(place, step, first) => self.step(place, *step, *first)?,
            ExprKind::Convert(inner) => {
                let from = inner.ty.clone();
                let value = self.expr(inner)?;
                self.converted(value, &from, &expr.ty)?
            }
            ExprKind::Negate(inner) => match self.expr(inner)? {
                Term::Atom(atom) => Term::Atom(self.negated(atom)),
                Term::Complex(real, imaginary) => Term::Complex(self.negated(real), self.negated(imaginary)),
                Term::Void | Term::Ref(_) => return Err("it negates a value that is no number".into()),
            },
            ExprKind::Not(inner) | ExprKind::Complement(inner) => {
                let is_not = matches!(expr.kind, ExprKind::Not(_));
                Term::Atom(match self.atom(inner)? {
                    Atom::Known(Value::Boolean(value)) if is_not => Atom::Known(Value::Boolean(!value)),
                    Atom::Known(Value::Int(value)) => Atom::Known(Value::Int(!value)),
                    Atom::Known(Value::Bit(value)) => Atom::Known(Value::Bit(!value)),
                    other => Atom::ScalarValue(self.b.not(self.made(&other))),
                })
            }
            ExprKind::Binary(operator, _, left, right) => {
                let left = self.expr(left)?;
                let right = self.expr(right)?;
                self.binary(*operator, left, right)?
            }
            ExprKind::And(left, right) => self.short(left, right, true)?,
            ExprKind::Or(left, right) => self.short(left, right, false)?,
            ExprKind::Choose(condition, yes, no) => self.choose(condition, yes, no)?,
            ExprKind::Call(id, args) => self.call(*id, args)?,
            ExprKind::Math(function, args) => {
                let values = match narrow(*function, args) {
                    Some(args) => args.into_iter().map(|arg| self.expr(arg)).collect::<Result<Vec<Term>, Reason>>()?,
                    None => args.iter().map(|arg| self.expr(arg)).collect::<Result<Vec<Term>, Reason>>()?,
                };
                self.math(*function, &values)?
            }
            ExprKind::Random => return Err("it draws random numbers".into()),
            ExprKind::Pop => self.pop()?,
            ExprKind::Peek(index) => {
                let index = self.atom(index)?;
                self.peek(index)?
            }
            ExprKind::Iter => {
                self.numbered = true;
                Term::Atom(Atom::ScalarValue(self.firing))
            }
            ExprKind::Concat(..) => return Err("it uses a string".into()),
            ExprKind::List(items) => {
                let layout = self.list_layout(expr)?;
                let place = self.allocate(&layout)?;
                for (index, item) in items.iter().enumerate() {
                    let value = self.expr(item)?;
                    let slot = self.element(&place, Atom::Known(Value::Int(index as i32)))?;
                    self.store(&slot, &value)?;
                }
                Term::Ref(place)
            }
            ExprKind::FileArray(..) => return Err("it reads a file".into()),
        })
    }

    fn list_layout(&self, expr: &Expr) -> Result<Layout, Reason> {
        let (ExprKind::List(items), Type::Array(inner)) = (&expr.kind, &expr.ty) else {
            return Err("it has a list of unequal elements".into());
        };
        let element = match items.first() {
            Some(first) if matches!(first.kind, ExprKind::List(_)) => self.list_layout(first)?,
            _ => Layout::Scalar((**inner).clone()),
        };
        Ok(Layout::Array(element.into(), items.len() as u32))
    }

    fn step(&mut self, place: &'a Place, step: i32, first: bool) -> Result<Term, Reason> {
        let part = match place.path.last() {
            Some(Access::Real) => Some(0),
            Some(Access::Imaginary) => Some(1),
            _ => None,
        };
        if let Root::Field(field) = place.root
            && let Some(variable) = self.inductions.get(&field).copied()
        {
            let old = self.b.get(variable);
            let new = self.b.add(old, step);
            self.b.set(variable, new);
            return Ok(Term::Atom(Atom::ScalarValue(if first { new } else { old })));
        }
        if self.is_shared(place) {
            self.add_to_shared(place, |_| Ok(Atom::Known(Value::Int(step))))?;
            return Ok(Term::Void);
        }
        let at = self.resolve(place)?;
        let Term::Atom(old) = self.read_resolved(place, &at, part)? else {
            return Err("it steps a value that is no number".into());
        };
        let new = match &old {
            Atom::Known(Value::Int(value)) => Atom::Known(Value::Int(value.wrapping_add(step))),
            Atom::Known(Value::Float(value)) => Atom::Known(Value::Float(value + step as f32)),
            Atom::Known(Value::Double(value)) => Atom::Known(Value::Double(value + f64::from(step))),
            Atom::Known(_) => old.clone(),
            Atom::ScalarValue(value) if self.b.type_of(*value) == ScalarType::BOOL => old.clone(),
            Atom::ScalarValue(value) => Atom::ScalarValue(self.b.add(*value, step)),
        };
        self.write_resolved(place, &at, part, &Term::Atom(new.clone()))?;
        Ok(Term::Atom(if first { new } else { old }))
    }

    fn negated(&self, atom: Atom) -> Atom {
        match atom {
            Atom::Known(Value::Int(value)) => Atom::Known(Value::Int(value.wrapping_neg())),
            Atom::Known(Value::Float(value)) => Atom::Known(Value::Float(-value)),
            Atom::Known(Value::Double(value)) => Atom::Known(Value::Double(-value)),
            Atom::Known(other) => Atom::Known(other),
            Atom::ScalarValue(value) if self.b.type_of(value) == ScalarType::BOOL => Atom::ScalarValue(value),
            Atom::ScalarValue(value) => Atom::ScalarValue(self.b.neg(value)),
        }
    }

    /// Converts a scalar.
    fn converted(&mut self, value: Term, from: &Type, to: &Type) -> Result<Term, Reason> {
        let atom = match value {
            Term::Complex(..) if *to == Type::Complex => return Ok(value),
            Term::Atom(atom) => atom,
            Term::Void | Term::Complex(..) | Term::Ref(_) => return Err("it converts a value that is no number".into()),
        };
        let scalar = if *to == Type::Complex { &Type::Float } else { to };
        let result = match &atom {
            Atom::Known(value) => Atom::Known(convert(value, scalar).ok_or("it converts a value that is no number")?),
            Atom::ScalarValue(value) => Atom::ScalarValue(self.convert_made(*value, from, scalar)?),
        };
        Ok(if *to == Type::Complex { Term::Complex(result, Atom::Known(Value::Float(0.0))) } else { Term::Atom(result) })
    }

    fn convert_made(&self, value: ScalarValue, from: &Type, to: &Type) -> Result<ScalarValue, Reason> {
        if from == to {
            return Ok(value);
        }
        let wanted = element(to)?;
        Ok(match to {
            Type::Bit => {
                let int = self.b.convert(value, ScalarType::I32);
                self.b.ne(self.b.and(int, 1), 0)
            }
            _ if self.b.type_of(value) == ScalarType::BOOL && wanted.is_float() => {
                self.b.convert(self.b.convert(value, ScalarType::I32), wanted)
            }
            _ => self.b.convert(value, wanted),
        })
    }

    /// Computes `&&` or `||`. The right side is evaluated only if it matters.
    fn short(&mut self, left: &'a Expr, right: &'a Expr, is_and: bool) -> Result<Term, Reason> {
        let left = self.atom(left)?;
        if let Atom::Known(Value::Boolean(known)) = left {
            return if known == is_and { self.expr(right) } else { Ok(Term::Atom(Atom::Known(Value::Boolean(known)))) };
        }
        let moved = self.moved_by(right, 0);
        let hangs = |count: Option<u32>| count.filter(|count| *count == 0);
        self.prepare(ItemCounts { pops: hangs(moved.pops), pushes: hangs(moved.pushes) });
        let left = self.made(&left);
        let result = self.b.variable_with(left);
        let goes_on = if is_and { left } else { self.b.not(left) };
        self.b.begin_if(goes_on);
        let value = self.atom(right);
        if let Ok(value) = &value {
            self.b.set(result, self.made(value));
        }
        self.b.end_if();
        value?;
        Ok(Term::Atom(Atom::ScalarValue(self.b.get(result))))
    }

    fn choose(&mut self, condition: &'a Expr, yes: &'a Expr, no: &'a Expr) -> Result<Term, Reason> {
        let condition = self.atom(condition)?;
        if let Atom::Known(Value::Boolean(known)) = condition {
            return self.expr(if known { yes } else { no });
        }
        let (first, second) = (self.moved_by(yes, 0), self.moved_by(no, 0));
        let same = |a: Option<u32>, b: Option<u32>| a.filter(|_| a == b);
        let moved = ItemCounts { pops: same(first.pops, second.pops), pushes: same(first.pushes, second.pushes) };
        self.prepare(moved);
        let heads = (self.popped.clone(), self.pushed.clone());
        let condition = self.made(&condition);
        self.b.begin_if(condition);
        let chosen = self.expr(yes);
        let place = match &chosen {
            Ok(Term::Ref(place)) => self.allocate(&place.layout.clone()),
            Ok(Term::Atom(_) | Term::Complex(..)) => self.allocate(&Layout::Scalar(yes.ty.clone())),
            Ok(Term::Void) => Err("it chooses a value that is none".into()),
            Err(reason) => Err(reason.clone()),
        };
        let stored = match (&place, &chosen) {
            (Ok(place), Ok(chosen)) => self.store(place, chosen),
            _ => Ok(()),
        };
        let inside = (self.popped.clone(), self.pushed.clone());
        (self.popped, self.pushed) = heads.clone();
        self.b.begin_else();
        let other = self.expr(no);
        let stored_other = match (&place, &other) {
            (Ok(place), Ok(other)) => self.store(place, other),
            _ => Ok(()),
        };
        self.b.end_if();
        self.popped = self.same_head(&inside.0, &heads.0, moved.pops);
        self.pushed = self.same_head(&inside.1, &heads.1, moved.pushes);
        let place = place?;
        stored?;
        other?;
        stored_other?;
        Ok(self.load(&place))
    }

    /// Translates a call. Arrays passed for parameters that the function writes are copied back at its
    /// return.
    fn call(&mut self, id: FunctionId, args: &'a [Expr]) -> Result<Term, Reason> {
        let function = self.function(id);
        let (mut values, mut back) = (vec![], vec![]);
        for (index, arg) in args.iter().enumerate() {
            match &arg.kind {
                ExprKind::Read(place) if function.written.get(index) == Some(&true) => {
                    let at = self.resolve(place)?;
                    values.push(self.read_resolved(place, &at, None)?);
                    back.push((index, place, at));
                }
                _ => values.push(self.expr(arg)?),
            }
        }
        let (result, places) = self.invoke(id, values)?;
        for (index, place, at) in back {
            if let Some(Some(from)) = places.get(index) {
                let value = self.load(from);
                self.write_resolved(place, &at, None, &value)?;
            }
        }
        Ok(result)
    }

    /// Computes a binary operation on operands of one type.
    pub(super) fn binary(&mut self, operator: Binary, left: Term, right: Term) -> Result<Term, Reason> {
        match (left, right) {
            (Term::Atom(left), Term::Atom(right)) => Ok(Term::Atom(self.binary_atom(operator, &left, &right)?)),
            (Term::Complex(a, b), Term::Complex(c, d)) => self.binary_complex(operator, [&a, &b, &c, &d]),
            _ => Err("it computes with values that are no numbers".into()),
        }
    }

    fn binary_atom(&mut self, operator: Binary, left: &Atom, right: &Atom) -> Result<Atom, Reason> {
        if let (Atom::Known(left), Atom::Known(right)) = (left, right) {
            return match compute(operator, left, right) {
                Ok(value) => Ok(Atom::Known(value)),
                // A division by constant zero fails when it is reached.
                Err(_) if matches!(operator, Binary::Divide | Binary::Modulo) => {
                    self.b.set(self.bad, true);
                    Ok(Atom::Known(Value::Int(0)))
                }
                Err(reason) => Err(reason.into()),
            };
        }
        let b = self.b;
        let (x, y) = (self.made(left), self.made(right));
        let is_int = b.type_of(x) == ScalarType::I32;
        Ok(Atom::ScalarValue(match operator {
            Binary::BitOr => b.or(x, y),
            Binary::BitAnd => b.and(x, y),
            Binary::BitXor => b.xor(x, y),
            Binary::Equal => b.eq(x, y),
            Binary::NotEqual => b.ne(x, y),
            Binary::Less => b.lt(x, y),
            Binary::LessEqual => b.le(x, y),
            Binary::Greater => b.gt(x, y),
            Binary::GreaterEqual => b.ge(x, y),
            Binary::Add => b.add(x, y),
            Binary::Subtract => b.sub(x, y),
            Binary::Multiply => b.mul(x, y),
            Binary::Divide | Binary::Modulo => {
                let range = b.range(y);
                if is_int && range.0 <= 0 && range.1 >= 0 {
                    let is_zero = b.eq(y, 0);
                    self.fail_if(is_zero);
                }
                if operator == Binary::Divide { b.div(x, y) } else { b.rem(x, y) }
            }
            Binary::ShiftLeft => b.shl(x, b.and(y, 31)),
            Binary::ShiftRight => b.shr(x, b.and(y, 31)),
        }))
    }

    fn binary_complex(&mut self, operator: Binary, [a, b, c, d]: [&Atom; 4]) -> Result<Term, Reason> {
        let mut op = |operator: Binary, x: &Atom, y: &Atom| self.binary_atom(operator, x, y);
        let (add, sub, mul, div) = (Binary::Add, Binary::Subtract, Binary::Multiply, Binary::Divide);
        Ok(match operator {
            Binary::Add | Binary::Subtract => Term::Complex(op(operator, a, c)?, op(operator, b, d)?),
            Binary::Multiply => {
                let (ac, bd, ad, bc) = (op(mul, a, c)?, op(mul, b, d)?, op(mul, a, d)?, op(mul, b, c)?);
                Term::Complex(op(sub, &ac, &bd)?, op(add, &ad, &bc)?)
            }
            Binary::Divide => {
                let (cc, dd) = (op(mul, c, c)?, op(mul, d, d)?);
                let size = op(add, &cc, &dd)?;
                let (ac, bd, bc, ad) = (op(mul, a, c)?, op(mul, b, d)?, op(mul, b, c)?, op(mul, a, d)?);
                let (real, imaginary) = (op(add, &ac, &bd)?, op(sub, &bc, &ad)?);
                Term::Complex(op(div, &real, &size)?, op(div, &imaginary, &size)?)
            }
            Binary::Equal | Binary::NotEqual => {
                let (real, imaginary) = (op(operator, a, c)?, op(operator, b, d)?);
                let both = if operator == Binary::Equal { Binary::BitAnd } else { Binary::BitOr };
                Term::Atom(op(both, &real, &imaginary)?)
            }
            _ => return Err("it computes with complex numbers what is not defined for them".into()),
        })
    }
}
