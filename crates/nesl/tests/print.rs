//! Printing and parsing: parsing the text of a tree returns an equal tree.

use broadloom_diag::{Sources, Span};
use broadloom_nesl::eval::SealedHost;
use broadloom_nesl::session::{Session, Settings, verify_library};
use broadloom_nesl::syntax::{
    Ast, BinaryOp, Each, Expr, ExprId, Form, FormKind, FunctionForm, Generator, Name, Pattern, PatternId, Program, TypeExpr,
    TypeExprId, TypeSpec, UnaryOp, parse, print_program, same_program,
};
use std::sync::Arc;

/// Generator of random trees.
struct Random {
    numbers: broadloom_random::Random,
    ast: Ast,
}

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.numbers.below(bound)
    }

    fn name(&mut self) -> Name {
        let names = ["a", "b", "x1", "_", "sum", "get", "load", "vector_sum", "e5", "in_out", "tt"];
        Name::new(names[self.below(names.len() as u64) as usize])
    }

    fn expr(&mut self, depth: u32) -> ExprId {
        let kinds = if depth == 0 { 6 } else { 20 };
        let expr = match self.below(kinds) {
            0 => Expr::Int(self.below(1 << 40)),
            1 => Expr::Float([0.0, 1.5, 1e300, 2.5e-9, 18.0][self.below(5) as usize]),
            2 => Expr::Bool(self.below(2) == 0),
            3 => Expr::Char(b' ' + self.below(90) as u8),
            4 => Expr::Text(["", "a \"b\"", "50% \\ c\n", "x"][self.below(4) as usize].as_bytes().into()),
            5 => Expr::Name(self.name()),
            6 => Expr::Pair(self.expr(depth - 1), self.expr(depth - 1)),
            7 | 8 => Expr::Apply(self.expr(depth - 1), self.expr(depth - 1)),
            9 => Expr::Index(self.expr(depth - 1), self.expr(depth - 1)),
            10 => Expr::Time(self.expr(depth - 1)),
            11 => Expr::Unary([UnaryOp::Negate, UnaryOp::Length, UnaryOp::Show][self.below(3) as usize], self.expr(depth - 1)),
            12..=14 => {
                let op = BinaryOp::ALL[self.below(20) as usize];
                Expr::Binary(op, self.expr(depth - 1), self.expr(depth - 1))
            }
            15 => Expr::If(self.expr(depth - 1), self.expr(depth - 1), self.expr(depth - 1)),
            16 => {
                let bindings = (0..=self.below(2)).map(|_| (self.pattern(2), self.expr(depth - 1))).collect();
                Expr::Let(bindings, self.expr(depth - 1))
            }
            17 => Expr::Each(Box::new(self.each(depth - 1))),
            18 => match self.below(3) {
                0 => Expr::Sequence((0..=self.below(3)).map(|_| self.expr(depth - 1)).collect()),
                1 => Expr::Empty(self.ty(2)),
                _ => {
                    let step = if self.below(2) == 0 { None } else { Some(self.expr(depth - 1)) };
                    Expr::Range(self.expr(depth - 1), self.expr(depth - 1), step)
                }
            },
            _ => Expr::Lambda(self.pattern(2), self.expr(depth - 1)),
        };
        self.ast.expr(expr, Span::default())
    }

    fn each(&mut self, depth: u32) -> Each {
        let mut generators = vec![];
        for _ in 0..=self.below(2) {
            let generator = match self.below(2) {
                0 => {
                    let name = Pattern::Name(self.name());
                    Generator { pattern: self.ast.pattern(name, Span::default()), source: None }
                }
                _ => Generator { pattern: self.pattern(2), source: Some(self.expr(depth)) },
            };
            generators.push(generator);
        }
        let body = if self.below(3) == 0 { None } else { Some(self.expr(depth)) };
        let filter = if self.below(2) == 0 { None } else { Some(self.expr(depth)) };
        Each { serial: self.below(4) == 0, body, generators, filter }
    }

    fn pattern(&mut self, depth: u32) -> PatternId {
        let pattern = match self.below(if depth == 0 { 1 } else { 3 }) {
            0 => Pattern::Name(self.name()),
            1 => Pattern::Pair(self.pattern(depth - 1), self.pattern(depth - 1)),
            _ => Pattern::Data(self.name(), self.pattern(depth - 1)),
        };
        self.ast.pattern(pattern, Span::default())
    }

    fn ty(&mut self, depth: u32) -> TypeExprId {
        let ty = match self.below(if depth == 0 { 1 } else { 5 }) {
            0 => TypeExpr::Name(Name::new(["int", "float", "a"][self.below(3) as usize])),
            1 => TypeExpr::Seq(self.ty(depth - 1)),
            2 => TypeExpr::Pair(self.ty(depth - 1), self.ty(depth - 1)),
            3 => TypeExpr::Function(self.ty(depth - 1), self.ty(depth - 1)),
            _ => TypeExpr::Data(Name::new("table"), self.ty(depth - 1)),
        };
        self.ast.ty(ty, Span::default())
    }

    fn form(&mut self) -> FormKind {
        match self.below(4) {
            0 => {
                let argument = self.ty(2);
                let result = self.ty(2);
                let ty = self.ast.ty(TypeExpr::Function(argument, result), Span::default());
                let context = vec![(Name::new("a"), Name::new("number"), Span::default())];
                let spec = (self.below(2) == 0).then_some(TypeSpec { ty, context });
                let doc = (self.below(2) == 0).then(|| Arc::from(&b"says \"so\""[..]));
                let name = Name::new("f1");
                let body = Some(self.expr(4));
                FormKind::Function(FunctionForm { name, name_span: Span::default(), parameter: self.pattern(2), spec, doc, body })
            }
            1 => FormKind::Bind(self.pattern(2), self.expr(4), false),
            _ => FormKind::Expr(self.expr(5)),
        }
    }
}

#[test]
fn parsing_what_was_printed_gives_the_same_tree() {
    for seed in 1..=3000u64 {
        let mut random = Random { numbers: broadloom_random::Random::new(seed), ast: Ast::default() };
        let kind = random.form();
        // A pattern at the start of a form must not look like a command.
        let mut program = Program::default();
        program.forms.push(Form { kind, span: Span::default() });
        program.ast = Arc::new(random.ast);
        let text = print_program(&program);
        let mut sources = Sources::new();
        let source = sources.add("printed", text.as_str());
        let parsed = parse(source, &text);
        let errors: String = parsed.errors.iter().map(|errors| sources.render_all(errors)).collect();
        assert_eq!(errors, "", "seed {seed}: {text}");
        assert!(same_program(&program, &parsed), "seed {seed}: {text}\n{}", print_program(&parsed));
    }
}

#[test]
fn the_library_keeps_the_invariants_of_the_typed_program() {
    let definitions = verify_library();
    assert!(definitions.as_ref().is_ok_and(|count| *count > 250), "{definitions:?}");
}

#[test]
fn floats_print_as_the_original_prints_them() {
    let cases = [
        ("14.0", "14.0"),
        ("0.1 + 0.2", "0.3"),
        ("225060000.0", "2.2506E8"),
        ("0.09999999999999964", "0.0999999999999996"),
        ("1e7", "1.0E7"),
        ("9999999.5", "9999999.5"),
        ("9999999.99999999999", "1.0E7"),
        ("0.00999999999999999999", "0.01"),
        ("0.001", "0.001"),
        ("0.0009", "9.0E-4"),
        ("-1.5e-7", "-1.5E-7"),
        ("0.0", "0.0"),
        ("-1.0 * 0.0", "-0.0"),
        ("1.0 / 3.0", "0.333333333333333"),
    ];
    let mut session = Session::new(Settings::default(), Box::new(SealedHost)).unwrap();
    for (expression, text) in cases {
        let outputs = session.eval("floats", &format!("{expression};"));
        assert_eq!(outputs[0].to_string(), format!("it = {text} : float\n"), "{expression}");
    }
    let mut settings = Settings::default();
    settings.options.widths.narrow_float = true;
    let mut session = Session::new(settings, Box::new(SealedHost)).unwrap();
    assert_eq!(session.eval("floats", "0.1;")[0].to_string(), "it = 0.1 : float\n");
}
