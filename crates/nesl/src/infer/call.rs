//! Calls: functions, operators, indices, optional arguments.

use super::{Infer, Ty};
use crate::codes;
use crate::core::{self, DefId, Optional};
use crate::infer::unify::{Clash, Node};
use crate::syntax::{BinaryOp, Expr, ExprId, Name, UnaryOp, print_expr};
use crate::types::Base;
use broadloom_diag::{Diagnostic, Span};

impl Infer<'_> {
    /// Infers `f(a)`.
    pub(super) fn apply(&mut self, function: ExprId, argument: ExprId, span: Span) -> core::ExprId {
        if let Some(definition) = self.with_optional(function) {
            return self.optional_call(function, definition, argument, span);
        }
        let callee = self.expr(function);
        let argument_expr = self.expr(argument);
        let ty = self.type_of(callee);
        let found = self.type_of(argument_expr);
        match self.tys.node(ty).clone() {
            Node::Function(_, wanted, result) => {
                let result = match self.tys.unify(wanted, found) {
                    Ok(()) => result,
                    Err(_) => self.explain_argument(function, wanted, argument),
                };
                self.push(core::Expr::Call(callee, argument_expr), result, span)
            }
            Node::Error => self.push(core::Expr::Call(callee, argument_expr), ty, span),
            Node::Var(_) => {
                let result = self.tys.any();
                let wanted = self.fresh_function(found, result);
                let result = match self.tys.unify(ty, wanted) {
                    Ok(()) => result,
                    Err(clash) => {
                        let place = self.ast.expr_spans[function];
                        self.mismatch(place, "this cannot be called", ty, wanted, clash)
                    }
                };
                self.push(core::Expr::Call(callee, argument_expr), result, span)
            }
            _ => {
                let error = self.not_a_function(function, argument, ty);
                self.broken(error, span)
            }
        }
    }

    /// Calls a function with an argument and unifies their types.
    pub(super) fn call(&mut self, function: core::ExprId, ty: Ty, argument: core::ExprId, span: Span) -> core::ExprId {
        let found = self.type_of(argument);
        let result = match self.tys.node(ty).clone() {
            Node::Function(_, wanted, result) => match self.tys.unify(wanted, found) {
                Ok(()) => result,
                Err(_) => self.tys.add(Node::Error),
            },
            _ => self.tys.add(Node::Error),
        };
        self.push(core::Expr::Call(function, argument), result, span)
    }

    fn not_a_function(&mut self, function: ExprId, argument: ExprId, ty: Ty) -> Diagnostic {
        let (shown, place) = (self.show(ty), self.ast.expr_spans[function]);
        let error = Diagnostic::error(codes::NOT_A_FUNCTION, "only a function can be called")
            .at(place, format!("this is `{shown}`"))
            .label(self.ast.expr_spans[argument], "this would be its argument");
        match (&self.ast.exprs[function], self.tys.node(ty)) {
            (Expr::Name(name), _) if self.env.built_in.contains_key(name) => {
                error.help(format!("the variable `{name}` hides the function `{name}`; give the variable another name"))
            }
            (_, Node::Seq(_)) => error.help("an element of a sequence is `v[i]`"),
            (Expr::Float(_), _) if matches!(self.ast.exprs[argument], Expr::Float(_)) => {
                error.help("a range is written with `:`, and ends before its second bound: `[1:11]` is 1 to 10")
            }
            (_, Node::Base(Base::Int | Base::Float)) => error.help("a product is written with `*`; forms are separated by `;`"),
            _ => error.help("two expressions side by side are a call; is an operator or a `;` missing between them?"),
        }
    }

    /// Finds the wrong argument and reports it.
    fn explain_argument(&mut self, function: ExprId, wanted: Ty, argument: ExprId) -> Ty {
        let name = match &self.ast.exprs[function] {
            Expr::Name(name) => format!("`{name}`"),
            _ => "the function".to_owned(),
        };
        let (takes, given) = (self.parts(wanted), self.written_parts(argument));
        let mut error = if takes != given && takes > 1 {
            let shown = self.show(wanted);
            let span = self.ast.expr_spans[argument];
            let message = format!("{name} takes {takes} arguments, {given} {} given", if given == 1 { "is" } else { "are" });
            Diagnostic::error(codes::ARGUMENT_COUNT, message).at(span, format!("expected `{shown}`"))
        } else {
            let (part, wanted, clash) = self.culprit(wanted, argument);
            let found = self.seen[&part];
            let code = if matches!(clash, Clash::Class(..)) { codes::WRONG_CLASS } else { codes::MISMATCH };
            let (found, wanted) = (self.show(found), self.show(wanted));
            let which = if part == argument { "the argument".to_owned() } else { "an argument".to_owned() };
            let error = Diagnostic::error(code, format!("{which} of {name} has the wrong type"))
                .at(self.ast.expr_spans[part], format!("this is `{found}`, expected `{wanted}`"));
            self.advise(error, clash)
        };
        if let Some(help) = self.other_call(function, wanted, argument, takes == given) {
            error.helps = vec![help];
        }
        if let Expr::Name(name) = &self.ast.exprs[function]
            && self.frames.iter().all(|frame| frame.scope.iter().all(|(local, _)| local != name))
            && let Some(definition) = self.env.lookup(name)
        {
            let shown = self.env.print_scheme(&self.env.definitions[definition].scheme);
            error = error.note(format!("`{name}` has the type `{shown}`"));
        }
        self.report(error)
    }

    /// Returns advice for a call that another one was meant by: with the arguments in the other order, or of the
    /// function that combines all elements of a sequence.
    fn other_call(&mut self, function: ExprId, wanted: Ty, argument: ExprId, has_all: bool) -> Option<String> {
        let Expr::Name(name) = self.ast.exprs[function].clone() else { return None };
        let Node::Pair(p, q) = *self.tys.node(wanted) else { return None };
        if has_all {
            let Expr::Pair(first, rest) = self.ast.exprs[argument] else { return None };
            let (first_ty, rest_ty) = (*self.seen.get(&first)?, *self.seen.get(&rest)?);
            if self.parts(wanted) != 2 || self.tys.unify(q, first_ty).is_err() || self.tys.unify(p, rest_ty).is_err() {
                return None;
            }
            let (first, rest) = (print_expr(&self.ast, first), print_expr(&self.ast, rest));
            return Some(match first.len() + rest.len() {
                0..=60 => format!("the arguments are in the wrong order: write `{name}({rest}, {first})`"),
                _ => "the arguments are in the wrong order".to_owned(),
            });
        }
        let found = *self.seen.get(&argument)?;
        let whole = match name.as_str() {
            "max" => "max_val",
            "min" => "min_val",
            _ => return None,
        };
        matches!(self.tys.node(found), Node::Seq(_))
            .then(|| format!("`{whole}(v)` takes the elements of a sequence, `{name}(a, b)` two values"))
    }

    /// Counts the parts of a tuple type.
    fn parts(&self, ty: Ty) -> usize {
        let (mut count, mut ty) = (1, ty);
        while let Node::Pair(_, rest) = self.tys.node(ty) {
            (count, ty) = (count + 1, *rest);
        }
        count
    }

    fn written_parts(&self, expr: ExprId) -> usize {
        let (mut count, mut expr) = (1, expr);
        while let Expr::Pair(_, rest) = self.ast.exprs[expr] {
            (count, expr) = (count + 1, rest);
        }
        // The last argument may itself be a tuple, such as the result of a call.
        count - 1 + self.seen.get(&expr).map_or(1, |&ty| self.parts(ty))
    }

    /// Descends into a tuple of arguments to the first one of a wrong type.
    fn culprit(&mut self, wanted: Ty, argument: ExprId) -> (ExprId, Ty, Clash) {
        if let (Expr::Pair(first, rest), Node::Pair(p, q)) = (self.ast.exprs[argument].clone(), self.tys.node(wanted).clone()) {
            let found = self.seen[&first];
            return match self.tys.unify(p, found) {
                Ok(()) => self.culprit(q, rest),
                Err(_) => self.culprit(p, first),
            };
        }
        let found = self.seen[&argument];
        let clash = self.tys.unify(wanted, found).err().unwrap_or(Clash::TooLarge);
        (argument, wanted, clash)
    }

    pub(super) fn unary(&mut self, op: UnaryOp, operand: ExprId, span: Span) -> core::ExprId {
        let argument = self.expr(operand);
        let found = self.type_of(argument);
        let (function, ty) = self.built_in(op.function(), span);
        if let Node::Function(_, wanted, _) = self.tys.node(ty).clone()
            && let Err(clash) = self.tys.unify(wanted, found)
        {
            let place = self.ast.expr_spans[operand];
            let message = match op {
                UnaryOp::Length => "`#` gives the length of a sequence",
                UnaryOp::Negate => "`-` takes an int or a float",
                UnaryOp::Show => "`@` takes any value",
            };
            let (found, wanted) = (self.show(found), self.show(wanted));
            let error = Diagnostic::error(codes::MISMATCH, message).at(place, format!("this is `{found}`, expected `{wanted}`"));
            let error =
                if op == UnaryOp::Length { error.help("a comment stands between two `%`") } else { self.advise(error, clash) };
            return self.broken(error, span);
        }
        self.call(function, ty, argument, span)
    }

    pub(super) fn binary(&mut self, op: BinaryOp, left: ExprId, right: ExprId, span: Span) -> core::ExprId {
        if let Some((name, place)) = self.arrow_parameter(op, left) {
            let error = Diagnostic::error(codes::UNDEFINED, format!("`{name}` is not defined")).at(place, "unknown name").help(
                format!("a function value is written with `=>`: `{name} => …`; `v -> [i, j]` reads elements of a sequence"),
            );
            return self.broken(error, span);
        }
        let (first, second) = (self.expr(left), self.expr(right));
        let (first_ty, second_ty) = (self.type_of(first), self.type_of(second));
        let (function, ty) = self.built_in(op.text(), span);
        if let Node::Function(_, wanted, _) = self.tys.node(ty).clone()
            && let Node::Pair(p, q) = self.tys.node(wanted).clone()
        {
            let clash = self.tys.unify(p, first_ty).and_then(|()| self.tys.unify(q, second_ty));
            if let Err(clash) = clash {
                let error = self.explain_operator(op, (left, first_ty), (right, second_ty), clash);
                return self.broken(error, span);
            }
        }
        let argument = self.pair(first, second, span);
        self.call(function, ty, argument, span)
    }

    /// Returns the unknown name before the first `->` of operators: a function value of another language.
    fn arrow_parameter(&self, op: BinaryOp, left: ExprId) -> Option<(Name, Span)> {
        let (mut op, mut left) = (op, left);
        for _ in 0..4 {
            match &self.ast.exprs[left] {
                Expr::Name(name) if op == BinaryOp::Read && !self.is_known(name) => {
                    return Some((name.clone(), self.ast.expr_spans[left]));
                }
                Expr::Binary(inner, first, _) => (op, left) = (*inner, *first),
                _ => return None,
            }
        }
        None
    }

    fn explain_operator(&mut self, op: BinaryOp, left: (ExprId, Ty), right: (ExprId, Ty), clash: Clash) -> Diagnostic {
        let (one, other) = (self.show(left.1), self.show(right.1));
        let text = op.text();
        let places = (self.ast.expr_spans[left.0], self.ast.expr_spans[right.0]);
        let error = Diagnostic::error(codes::MISMATCH, format!("`{text}` cannot be applied to `{one}` and `{other}`"))
            .at(places.1, format!("this is `{other}`"))
            .label(places.0, format!("this is `{one}`"));
        let mut error = self.advise(error, clash);
        if op == BinaryOp::Pad && (one == "bool" || other == "bool") {
            error.helps.clear();
            return error.help("`||` pads a string; write `or` for a disjunction");
        }
        if op == BinaryOp::Add && one == "[char]" {
            error.helps.clear();
            return error.help("`++` concatenates strings and sequences; `@e` is the printed form of a value");
        }
        if op == BinaryOp::Write && matches!(self.tys.node(right.1), Node::Pair(..)) {
            error.helps = vec!["one element is written by a sequence of one pair: `v <- [(i, x)]`".to_owned()];
        }
        if op == BinaryOp::Append {
            error = error.help("`++` concatenates two sequences of one type; `[e]` is a sequence of one element, `@e` the printed form of a value");
        }
        let note = match op {
            BinaryOp::Or | BinaryOp::Nor | BinaryOp::Xor | BinaryOp::And | BinaryOp::Nand => {
                "both operands are bools, or both are ints"
            }
            BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply | BinaryOp::Divide => {
                "both operands are ints, or both are floats"
            }
            BinaryOp::Equal
            | BinaryOp::NotEqual
            | BinaryOp::Less
            | BinaryOp::Greater
            | BinaryOp::LessEqual
            | BinaryOp::GreaterEqual => "both operands are ints, floats or characters",
            BinaryOp::Power => "the left operand is an int or a float, the right one an int; `expt(a, b)` is the power of floats",
            BinaryOp::Append => "both operands are sequences of one type",
            BinaryOp::Pad => "the left operand is a string, the right one an int",
            BinaryOp::Write => "the left operand is a sequence, the right one a sequence of (index, value)",
            BinaryOp::Read => "the left operand is a sequence, the right one a sequence of ints",
        };
        error.note(note)
    }

    pub(super) fn index(&mut self, sequence: ExprId, index: ExprId, span: Span) -> core::ExprId {
        let (values, at) = (self.expr(sequence), self.expr(index));
        let (found, index_ty) = (self.type_of(values), self.type_of(at));
        let (element, int) = (self.tys.any(), self.int());
        let wanted = self.tys.seq(element);
        if let Err(clash) = self.tys.unify(wanted, found) {
            let (place, shown) = (self.ast.expr_spans[sequence], self.show(found));
            let mut error = Diagnostic::error(codes::MISMATCH, "only a sequence can be indexed")
                .at(place, format!("this is `{shown}`, expected a sequence"));
            error = match self.tys.node(found) {
                Node::Function(..) => error.help("the argument of a call stands in parentheses: `g([1, 2])`"),
                Node::Pair(..) => error
                    .help("a tuple is taken apart by a pattern: `let (a, b) = p in …`; `first(p)` and `rest(p)` are its parts"),
                _ => self.advise(error, clash),
            };
            return self.broken(error, span);
        }
        if let Err(clash) = self.tys.unify(int, index_ty) {
            let place = self.ast.expr_spans[index];
            let message = "an index must be an int";
            if let (Expr::Pair(..), Expr::Name(name)) = (&self.ast.exprs[index], self.ast.exprs[sequence].clone()) {
                let shown = self.show(index_ty);
                let error = Diagnostic::error(codes::MISMATCH, message)
                    .at(place, format!("this is `{shown}`, expected `int`"))
                    .help(format!("an element of an inner sequence is `{name}[i][j]`"));
                return self.broken(error, span);
            }
            let ty = self.mismatch(place, message, index_ty, int, clash);
            return self.push(core::Expr::Bool(false), ty, span);
        }
        let argument = self.pair(values, at, span);
        let (function, ty) = self.built_in("elt", span);
        self.call(function, ty, argument, span)
    }

    /// Returns the called definition if it has optional parameters.
    fn with_optional(&mut self, function: ExprId) -> Option<DefId> {
        let Expr::Name(name) = &self.ast.clone().exprs[function] else { return None };
        let local = self.frames.iter().any(|frame| frame.scope.iter().any(|(known, _)| known == name));
        let own = self.own.as_ref().is_some_and(|(own, ..)| own == name);
        let definition = self.env.lookup(name).filter(|_| !local && !own)?;
        (!self.env.definitions[definition].optional.is_empty()).then_some(definition)
    }

    fn optional_call(&mut self, function: ExprId, definition: DefId, argument: ExprId, span: Span) -> core::ExprId {
        let known = &self.env.definitions[definition];
        let (name, required, optional) = (known.name.clone(), known.required, known.optional.clone());
        let mut written = vec![];
        let mut rest = argument;
        while let Expr::Pair(first, more) = self.ast.exprs[rest] {
            written.push(first);
            rest = more;
        }
        written.push(rest);
        let place = self.ast.expr_spans[argument];
        let keyword = |infer: &Self, expr: ExprId| matches!(infer.ast.exprs[expr], Expr::Keyword(..));
        let positional = written.iter().take_while(|&&expr| !keyword(self, expr)).count();
        if positional != required {
            let arguments = if required == 1 { "argument" } else { "arguments" };
            let given = if positional == 1 { "1 is given".to_owned() } else { format!("{positional} are given") };
            let error = Diagnostic::error(
                codes::ARGUMENT_COUNT,
                format!("`{name}` takes {required} {arguments} besides its optional ones, {given}"),
            )
            .at(place, "")
            .help(format!("optional arguments are given by name: `{name}(…, {} := …)`", optional[0].name));
            return self.broken(error, span);
        }
        let callee = self.expr(function);
        let callee_ty = self.type_of(callee);
        let mut arguments: Vec<core::ExprId> = written[..required].iter().map(|&expr| self.expr(expr)).collect();
        let mut given: Vec<(Name, core::ExprId)> = vec![];
        for &expr in &written[required..] {
            let Expr::Keyword(key, value) = self.ast.exprs[expr].clone() else {
                let error = Diagnostic::error(codes::BAD_OPTIONAL, "an argument behind an optional one needs its name")
                    .at(self.ast.expr_spans[expr], "expected `name := …`");
                return self.broken(error, span);
            };
            if !optional.iter().any(|parameter| parameter.name == key) {
                let names: Vec<String> = optional.iter().map(|parameter| format!("`{}`", parameter.name)).collect();
                let error = Diagnostic::error(codes::BAD_OPTIONAL, format!("`{name}` has no optional parameter `{key}`"))
                    .at(self.ast.expr_spans[expr], "unknown name")
                    .help(format!("it has {}", names.join(", ")));
                return self.broken(error, span);
            }
            let value = self.expr(value);
            given.push((key, value));
        }
        for parameter in &optional {
            let value = match given.iter().find(|(key, _)| *key == parameter.name) {
                Some(&(_, value)) => value,
                None => self.default_value(parameter),
            };
            arguments.push(value);
        }
        let mut tuple = arguments.pop().expect("an optional parameter has a value");
        while let Some(before) = arguments.pop() {
            tuple = self.pair(before, tuple, place);
        }
        let found = self.type_of(tuple);
        if let Node::Function(_, wanted, _) = self.tys.node(callee_ty).clone()
            && let Err(clash) = self.tys.unify(wanted, found)
        {
            let message = format!("the arguments of `{name}` have wrong types");
            let ty = self.mismatch(place, &message, found, wanted, clash);
            return self.push(core::Expr::Bool(false), ty, span);
        }
        self.call(callee, callee_ty, tuple, span)
    }

    /// Infers the default of a parameter. Only global variables are in scope.
    fn default_value(&mut self, parameter: &Optional) -> core::ExprId {
        let ast = std::mem::replace(&mut self.ast, parameter.ast.clone());
        let seen = std::mem::take(&mut self.seen);
        let scopes: Vec<_> = self.frames.iter_mut().map(|frame| std::mem::take(&mut frame.scope)).collect();
        let value = self.expr(parameter.default);
        for (frame, scope) in self.frames.iter_mut().zip(scopes) {
            frame.scope = scope;
        }
        self.ast = ast;
        self.seen = seen;
        value
    }
}
