//! Random well-typed programs: nested apply-to-eachs, conditionals, recursion inside both, function values,
//! library functions on ragged data. Sizes stay small; a program may end in a run-time error.

use broadloom_random::Random;
use std::fmt::Write as _;

/// A type of the generated programs.
#[derive(Clone, PartialEq)]
pub(crate) enum Ty {
    Int,
    Float,
    Bool,
    Char,
    Pair(Box<Ty>, Box<Ty>),
    Seq(Box<Ty>),
}

/// Function defined by earlier text: name, argument, result.
type Function = (String, Ty, Ty);

/// Generator of random programs. Equal seeds give equal programs.
pub(crate) struct Generator {
    random: Random,
    names: u32,
    functions: Vec<Function>,
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Generator { random: Random::new(seed), names: 0, functions: vec![] }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random.below(bound)
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    fn ty(&mut self, depth: usize) -> Ty {
        match self.below(if depth == 0 { 5 } else { 9 }) {
            0..=2 => Ty::Int,
            3 => Ty::Float,
            4 => [Ty::Bool, Ty::Char][self.below(2)].clone(),
            5 => Ty::Pair(Box::new(self.ty(depth - 1)), Box::new(self.ty(depth - 1))),
            _ => Ty::Seq(Box::new(self.ty(depth - 1))),
        }
    }

    /// Writes a program: some functions and an expression.
    pub(crate) fn program(&mut self, number: u32) -> String {
        self.functions.clear();
        let mut text = String::new();
        for index in 0..self.below(3) {
            let (argument, result) = (self.ty(2), self.ty(2));
            let name = format!("f{number}_{index}");
            let (n, x) = (self.name(), self.name());
            let scope = vec![(x.clone(), argument.clone()), (n.clone(), Ty::Int)];
            let base = self.expr(&result, &scope, 2);
            let step = self.expr(&result, &scope, 2);
            let next = self.expr(&argument, &scope, 1);
            // The counter ends the recursion at a depth of at most 4 calls.
            let body = match self.below(3) {
                0 => step,
                1 => format!("if {n} <= 0 then {base} else {name}(min({n}, 4) - 1, {next})"),
                _ => {
                    let r = self.name();
                    let mut inner = scope.clone();
                    inner.push((r.clone(), result.clone()));
                    let after = self.expr(&result, &inner, 2);
                    format!("if {n} <= 0 then {base} else let {r} = {name}(min({n}, 4) - 1, {next}) in {after}")
                }
            };
            let _ = writeln!(text, "function {name}({n}, {x}) : (int, {}) -> {} = {body};", shown(&argument), shown(&result));
            self.functions.push((name, argument, result));
        }
        if self.below(2) == 0 {
            let _ = writeln!(text, "{}", self.deep(number));
        }
        let ty = Ty::Seq(Box::new(self.ty(2)));
        let expr = self.expr(&ty, &[], 4);
        let _ = writeln!(text, "{expr};");
        text
    }

    /// Writes a function over scalars and a sequence that it reads, which calls itself last, in several
    /// branches, up to some hundred times.
    fn deep(&mut self, number: u32) -> String {
        let scalar = |this: &mut Self| [Ty::Int, Ty::Int, Ty::Float, Ty::Bool][this.below(4)].clone();
        let parts = [scalar(self), scalar(self)];
        let result = parts[self.below(2)].clone();
        let (name, n, x, y, v) = (format!("deep{number}"), self.name(), self.name(), self.name(), self.name());
        let of_ints = Ty::Seq(Box::new(Ty::Int));
        let mut scope = vec![(n.clone(), Ty::Int), (x.clone(), parts[0].clone()), (y.clone(), parts[1].clone())];
        let reads = self.below(2) == 0;
        let (mut rest, mut last) = (parts[1].clone(), y.clone());
        if reads {
            scope.push((v.clone(), of_ints.clone()));
            (rest, last) = (Ty::Pair(Box::new(rest), Box::new(of_ints)), format!("({y}, {v})"));
        }
        let argument = Ty::Pair(Box::new(parts[0].clone()), Box::new(rest));
        let mut body = self.scalar(&result, &scope, 2);
        for _ in 0..1 + self.below(3) {
            let mut second = self.scalar(&parts[1], &scope, 2);
            if reads {
                let passed = [v.clone(), v.clone(), format!("subseq({v}, min(1, #{v}), #{v})")][self.below(3)].clone();
                second = format!("({second}, {passed})");
            }
            let next = format!("({}, {second})", self.scalar(&parts[0], &scope, 2));
            let condition = self.scalar(&Ty::Bool, &scope, 1);
            body = format!("if {condition} then {body} else {name}(min({n}, 400) - 1, {next})");
        }
        let base = self.scalar(&result, &scope, 1);
        let text = format!(
            "function {name}({n}, ({x}, {last})) : (int, {}) -> {} = if {n} <= 0 then {base} else {body};",
            shown(&argument),
            shown(&result)
        );
        self.functions.push((name, argument, result));
        text
    }

    /// Writes an expression without sequences.
    fn scalar(&mut self, ty: &Ty, scope: &[(String, Ty)], depth: usize) -> String {
        let known: Vec<&String> = scope.iter().filter(|(_, known)| known == ty).map(|(name, _)| name).collect();
        if !known.is_empty() && (depth == 0 || self.below(3) == 0) {
            let index = self.below(known.len());
            return known[index].clone();
        }
        if depth == 0 {
            return self.literal(ty);
        }
        let depth = depth - 1;
        let source = scope.iter().find(|(_, ty)| matches!(ty, Ty::Seq(_))).map(|(name, _)| name);
        if let (Ty::Int, Some(source), 0) = (ty, source, self.below(3)) {
            let index = self.scalar(&Ty::Int, scope, depth);
            return format!("(if #{source} == 0 then 7 else {source}[mod({index}, #{source})])");
        }
        let mut part = |ty: &Ty| self.scalar(ty, scope, depth);
        let [a, b, c] = [part(&Ty::Int), part(&Ty::Int), part(&Ty::Int)];
        let [p, q, r] = [part(&Ty::Float), part(&Ty::Float), part(&Ty::Bool)];
        match ty {
            Ty::Int => match self.below(9) {
                0 => format!("(if {r} then {a} else {b})"),
                1 => format!("max({a}, {b})"),
                2 => format!("mod({a}, {})", self.below(4) + 1),
                3 => format!("({a} / ({b} and 3))"),
                4 => format!("trunc({p})"),
                5 => format!("rshift({a}, {})", self.below(5)),
                6 => format!("(let z = {a} in z * {b} + z)"),
                7 => format!("({a} xor {c})"),
                _ => format!("({a} + {b} * {c})"),
            },
            // The values stay small.
            Ty::Float => match self.below(4) {
                0 => format!("(0.75 * {p} - 0.5 * {q})"),
                1 => format!("(float({a} and 255) / 16.0)"),
                2 => format!("sqrt(abs({p}))"),
                _ => format!("(if {r} then {p} else {q})"),
            },
            Ty::Bool => match self.below(4) {
                0 => format!("({a} < {b})"),
                1 => format!("({p} > {q})"),
                2 => format!("oddp({a})"),
                _ => format!("({r} xor ({a} == {c}))"),
            },
            Ty::Char | Ty::Pair(..) | Ty::Seq(_) => self.literal(ty),
        }
    }

    fn literal(&mut self, ty: &Ty) -> String {
        match ty {
            Ty::Int => self.below(7).to_string(),
            Ty::Float => format!("{}.{}", self.below(5), [0, 5, 25][self.below(3)]),
            Ty::Bool => ["t", "f"][self.below(2)].to_owned(),
            Ty::Char => ["`a", "`b", "`z", "`0"][self.below(4)].to_owned(),
            Ty::Pair(a, b) => format!("({}, {})", self.literal(a), self.literal(b)),
            Ty::Seq(element) => match self.below(4) {
                0 => format!("([] {})", shown(element)),
                count => {
                    let elements: Vec<String> = (0..count).map(|_| self.literal(element)).collect();
                    format!("[{}]", elements.join(", "))
                }
            },
        }
    }

    /// Writes an expression of a type.
    fn expr(&mut self, ty: &Ty, scope: &[(String, Ty)], depth: usize) -> String {
        let known: Vec<&String> = scope.iter().filter(|(_, known)| known == ty).map(|(name, _)| name).collect();
        if !known.is_empty() && self.below(3) == 0 {
            let index = self.below(known.len());
            return known[index].clone();
        }
        if depth == 0 {
            return self.literal(ty);
        }
        let depth = depth - 1;
        match self.below(12) {
            0 => {
                let condition = self.expr(&Ty::Bool, scope, depth);
                let (a, b) = (self.expr(ty, scope, depth), self.expr(ty, scope, depth));
                return format!("(if {condition} then {a} else {b})");
            }
            1 => {
                let bound = self.ty(2);
                let (name, value) = (self.name(), self.expr(&bound, scope, depth));
                let mut inner = scope.to_vec();
                inner.push((name.clone(), bound));
                return format!("(let {name} = {value} in {})", self.expr(ty, &inner, depth));
            }
            2 => {
                let fitting: Vec<Function> = self.functions.iter().filter(|(_, _, result)| result == ty).cloned().collect();
                if !fitting.is_empty() {
                    let (name, argument, _) = fitting[self.below(fitting.len())].clone();
                    let mut count = self.expr(&Ty::Int, scope, depth);
                    if name.starts_with("deep") {
                        count = format!("97 * ({count})");
                    }
                    return format!("{name}({count}, {})", self.expr(&argument, scope, depth));
                }
            }
            3 => {
                // An index that is usually in range.
                let source = self.expr(&Ty::Seq(Box::new(ty.clone())), scope, depth);
                let index = self.expr(&Ty::Int, scope, 0);
                let v = self.name();
                return match self.below(3) {
                    0 => format!("{source}[{index}]"),
                    _ => format!("(let {v} = {source} in if #{v} == 0 then {} else {v}[rem({index}, #{v})])", self.literal(ty)),
                };
            }
            _ => {}
        }
        match ty {
            Ty::Int => self.int(scope, depth),
            Ty::Float => self.float(scope, depth),
            Ty::Bool => self.bool(scope, depth),
            Ty::Char => format!("lowercase({})", self.expr(&Ty::Char, scope, depth)),
            Ty::Pair(a, b) => format!("({}, {})", self.expr(a, scope, depth), self.expr(b, scope, depth)),
            Ty::Seq(element) => self.sequence(element, scope, depth),
        }
    }

    fn int(&mut self, scope: &[(String, Ty)], depth: usize) -> String {
        let any = self.ty(1);
        let ints = self.expr(&Ty::Seq(Box::new(Ty::Int)), scope, depth);
        match self.below(9) {
            0 => format!("sum({ints})"),
            1 => format!("max_val({ints})"),
            2 => format!("#{}", self.expr(&Ty::Seq(Box::new(any)), scope, depth)),
            3 => format!("count({})", self.expr(&Ty::Seq(Box::new(Ty::Bool)), scope, depth)),
            4 => format!("trunc({})", self.expr(&Ty::Float, scope, depth)),
            5 => format!("btoi({})", self.expr(&Ty::Bool, scope, depth)),
            6 => format!("hash({}, 9)", self.expr(&any, scope, depth)),
            7 => format!("({} / {})", self.expr(&Ty::Int, scope, depth), self.below(4)),
            _ => {
                let op = ["+", "-", "*", "and", "xor"][self.below(5)];
                format!("({} {op} {})", self.expr(&Ty::Int, scope, depth), self.expr(&Ty::Int, scope, depth))
            }
        }
    }

    fn float(&mut self, scope: &[(String, Ty)], depth: usize) -> String {
        match self.below(5) {
            0 => format!("float({})", self.expr(&Ty::Int, scope, depth)),
            1 => format!("sum({})", self.expr(&Ty::Seq(Box::new(Ty::Float)), scope, depth)),
            2 => format!("sqrt(abs({}))", self.expr(&Ty::Float, scope, depth)),
            3 => format!("min_val({})", self.expr(&Ty::Seq(Box::new(Ty::Float)), scope, depth)),
            _ => {
                let op = ["+", "-", "*"][self.below(3)];
                format!("({} {op} {})", self.expr(&Ty::Float, scope, depth), self.expr(&Ty::Float, scope, depth))
            }
        }
    }

    fn bool(&mut self, scope: &[(String, Ty)], depth: usize) -> String {
        let any = self.ty(2);
        match self.below(5) {
            0 => format!("eql({}, {})", self.expr(&any, scope, depth), self.expr(&any, scope, depth)),
            1 => format!("any({})", self.expr(&Ty::Seq(Box::new(Ty::Bool)), scope, depth)),
            2 => format!("not({})", self.expr(&Ty::Bool, scope, depth)),
            3 => format!("({} < {})", self.expr(&Ty::Float, scope, depth), self.expr(&Ty::Float, scope, depth)),
            _ => {
                let op = ["<", "==", ">=", "/="][self.below(4)];
                format!("({} {op} {})", self.expr(&Ty::Int, scope, depth), self.expr(&Ty::Int, scope, depth))
            }
        }
    }

    fn sequence(&mut self, element: &Ty, scope: &[(String, Ty)], depth: usize) -> String {
        let own = Ty::Seq(Box::new(element.clone()));
        match self.below(20) {
            0 => format!("({} ++ {})", self.expr(&own, scope, depth), self.expr(&own, scope, depth)),
            1 => format!("flatten({})", self.expr(&Ty::Seq(Box::new(own)), scope, depth)),
            2 => format!("reverse({})", self.expr(&own, scope, depth)),
            3 => format!("dist({}, {})", self.expr(element, scope, depth), self.below(4)),
            4 => format!("take({}, {})", self.expr(&own, scope, depth), self.below(2)),
            5 => {
                let v = self.name();
                let indices = self.expr(&Ty::Seq(Box::new(Ty::Int)), scope, depth);
                let source = self.expr(&own, scope, depth);
                format!("(let {v} = {source} in if #{v} == 0 then {v} else {v} -> {{mod(i, #{v}) : i in {indices}}})")
            }
            6 => {
                let v = self.name();
                let (source, value) = (self.expr(&own, scope, depth), self.expr(element, scope, depth));
                format!("(let {v} = {source} in if #{v} == 0 then {v} else rep({v}, {value}, #{v} - 1))")
            }
            7 => format!("remove_duplicates({})", self.expr(&own, scope, depth)),
            8 => match element {
                Ty::Int | Ty::Float => {
                    let function = ["sort", "plus_scan", "max_scan"][self.below(3)];
                    format!("{function}({})", self.expr(&own, scope, depth))
                }
                Ty::Seq(inner) => {
                    let flat = self.expr(&Ty::Seq(inner.clone()), scope, depth);
                    format!("bottop({flat})")
                }
                Ty::Pair(a, b) => {
                    let (v, w) = (self.name(), self.name());
                    let (p, q) = (Ty::Seq(a.clone()), Ty::Seq(b.clone()));
                    let (p, q) = (self.expr(&p, scope, depth), self.expr(&q, scope, depth));
                    format!("(let {v} = {p}; {w} = {q}; n = min(#{v}, #{w}) in zip(take({v}, n), take({w}, n)))")
                }
                Ty::Bool => format!("or_scan({})", self.expr(&own, scope, depth)),
                Ty::Char => format!("@{}", self.expr(&Ty::Pair(Box::new(Ty::Int), Box::new(Ty::Float)), scope, depth)),
            },
            9 => {
                let f = self.name();
                let x = self.name();
                let from = self.ty(1);
                let mut inner = scope.to_vec();
                inner.push((x.clone(), from.clone()));
                let body = self.expr(element, &inner, depth);
                let source = self.expr(&Ty::Seq(Box::new(from)), scope, depth);
                format!("(let {f} = {x} => {body} in map({f}, {source}))")
            }
            10 => self.literal(&own),
            11 => format!("[{}, {}]", self.expr(element, scope, depth), self.expr(element, scope, depth)),
            _ => self.each(element, scope, depth),
        }
    }

    fn each(&mut self, element: &Ty, scope: &[(String, Ty)], depth: usize) -> String {
        let (from, x) = (self.ty(2), self.name());
        let source = match self.below(3) {
            0 => format!("[0:{}]", self.below(5)),
            _ => self.expr(&Ty::Seq(Box::new(from.clone())), scope, depth),
        };
        let from = if source.starts_with("[0:") { Ty::Int } else { from };
        let mut inner = scope.to_vec();
        inner.push((x.clone(), from));
        let mut generators = format!("{x} in {source}");
        if self.below(4) == 0 {
            // A second sequence of the same length.
            let (v, i) = (self.name(), self.name());
            generators = format!("{x} in {v}; {i} in index(#{v})");
            inner.push((i, Ty::Int));
            let body = self.expr(element, &inner, depth);
            return format!("(let {v} = {source} in {{{body} : {generators}}})");
        }
        let body = self.expr(element, &inner, depth);
        match self.below(3) {
            0 => format!("{{{body} : {generators} | {}}}", self.expr(&Ty::Bool, &inner, depth)),
            _ => format!("{{{body} : {generators}}}"),
        }
    }
}

/// Writes a type in NESL syntax.
fn shown(ty: &Ty) -> String {
    match ty {
        Ty::Int => "int".to_owned(),
        Ty::Float => "float".to_owned(),
        Ty::Bool => "bool".to_owned(),
        Ty::Char => "char".to_owned(),
        Ty::Pair(a, b) => format!("({}, {})", shown(a), shown(b)),
        Ty::Seq(element) => format!("[{}]", shown(element)),
    }
}
