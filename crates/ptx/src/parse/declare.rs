//! Declarations: variables, functions, parameters (manual: "Variables", "Kernel and Function Directives").

use super::lexer::{TokenKind, shorten};
use super::names::Names;
use super::{MAX_DEPTH, ParseResult, Parser, codes};
use crate::ids::Func;
use crate::inst::Symbol;
use crate::module::{Directive, Function, Item, Linkage, Param, PointerInfo, RegData, Variable};
use crate::types::{Space, Type};
use broadloom_diag::{Diagnostic, Span};
use cranelift_entity::PrimaryMap;
use std::rc::Rc;

/// Directives between the head and the body of a function, with the minimum and maximum number of their
/// arguments.
pub(crate) const FUNCTION_DIRECTIVES: &[(&str, usize, usize)] = &[
    ("maxntid", 1, 3),
    ("reqntid", 1, 3),
    ("minnctapersm", 1, 1),
    ("maxnctapersm", 1, 1),
    ("maxnreg", 1, 1),
    ("noreturn", 0, 0),
    ("unique", 0, 0),
    ("reqnctapercluster", 1, 3),
    ("explicitcluster", 0, 0),
    ("maxclusterrank", 1, 1),
    ("blocksareclusters", 0, 0),
    ("abi_preserve", 1, 1),
    ("abi_preserve_control", 1, 1),
];

impl<'a> Parser<'a> {
    /// Parses an item with a linkage: a variable or a function.
    pub(super) fn linked(&mut self) -> ParseResult<()> {
        let linkage = self.linkage();
        match self.dotted() {
            Some("entry") => self.function(linkage, true),
            Some("func") => self.function(linkage, false),
            Some(word) if Space::from_name(word).is_some() => self.module_variables(linkage),
            Some("visible" | "extern" | "weak" | "common") => {
                let place = self.here();
                let diagnostic = Diagnostic::error(codes::UNEXPECTED, "a second linkage");
                Err(self.report(diagnostic.at(place, "expected `.entry`, `.func` or a state space such as `.global`")))
            }
            _ => Err(self.unexpected("`.entry`, `.func` or a state space such as `.global`")),
        }
    }

    pub(super) fn linkage(&mut self) -> Linkage {
        let linkage = match self.dotted() {
            Some("visible") => Linkage::Visible,
            Some("extern") => Linkage::Extern,
            Some("weak") => Linkage::Weak,
            Some("common") => Linkage::Common,
            _ => return Linkage::Private,
        };
        self.bump();
        linkage
    }

    pub(super) fn module_variables(&mut self, linkage: Linkage) -> ParseResult<()> {
        let start = Variable { linkage, ..self.variable_start()? };
        loop {
            let (variable, name) = self.variable_rest(start.clone(), true)?;
            let span = variable.span;
            if matches!(variable.space, Space::Reg | Space::Param) {
                let message = format!("`{}` can only be declared inside of a function", variable.space);
                return Err(self.report(Diagnostic::error(codes::WRONG_NAME, message).at(span, "outside of any function")));
            }
            self.declare_global(name, span, variable)?;
            if !self.eat(b',') {
                break;
            }
        }
        self.expect_end(b';')?;
        Ok(())
    }

    fn declare_global(&mut self, name: &'a str, span: Span, variable: Variable) -> ParseResult<()> {
        match self.globals.get(name) {
            None => {
                let var = self.module.variables.push(variable);
                Rc::make_mut(&mut self.globals).insert(name, Symbol::Var(var));
                self.module.items.push(Item::Variable(var));
                Ok(())
            }
            // A declaration may be repeated, and `.extern` may be followed by the definition.
            Some(Symbol::Var(var))
                if self.module.variables[*var].linkage == Linkage::Extern || variable.linkage == Linkage::Extern =>
            {
                let var = *var;
                if variable.linkage != Linkage::Extern {
                    self.module.variables[var] = variable;
                }
                Ok(())
            }
            Some(symbol) => {
                let earlier = match *symbol {
                    Symbol::Var(var) | Symbol::Local(var) => self.module.variables[var].span,
                    Symbol::Func(func) => self.module.functions[func].span,
                };
                Err(self.duplicate(name, span, earlier))
            }
        }
    }

    pub(super) fn duplicate(&mut self, name: &str, span: Span, earlier: Span) -> super::ReportedError {
        self.report(
            Diagnostic::error(codes::DUPLICATE, format!("`{}` is declared twice", shorten(name)))
                .at(span, "declared again here")
                .label(earlier, "declared first here"),
        )
    }

    /// Parses everything before the first name: state space, alignment, vector length, type and attributes.
    pub(super) fn variable_start(&mut self) -> ParseResult<Variable> {
        let place = self.here();
        let space = self.dotted().and_then(Space::from_name);
        let Some(space) = space else { return Err(self.unexpected("a state space such as `.global`")) };
        self.bump();
        let mut variable = Variable::new("", space, Type::B8);
        if matches!(space, Space::Const) && self.eat(b'[') {
            let bank = self.expect_u32("the number of a bank")?;
            if bank > 10 {
                let message = format!("the banks of `.const` are 0 to 10, not {bank}");
                let place = self.last();
                return Err(self.report(Diagnostic::error(codes::LIMIT, message).at(place, "too large")));
            }
            variable.bank = Some(bank as u8);
            self.expect(b']')?;
        } else if self.is_sign(b'[') {
            let place = self.here();
            let diagnostic = Diagnostic::error(codes::BAD_TYPE, format!("`{space}` has no banks"));
            return Err(self.report(diagnostic.at(place, "only `.const` has")));
        }
        let mut ty = None;
        while let Some(word) = self.dotted() {
            let word_place = self.here();
            self.bump();
            match word {
                "align" if ty.is_none() => variable.align = Some(self.alignment()?),
                "v2" | "v4" if variable.vector == 1 => variable.vector = if word == "v2" { 2 } else { 4 },
                "attribute" => self.attributes(&mut variable)?,
                "ptr" => variable.pointer = Some(self.pointer()?),
                word => match Type::from_name(word) {
                    Some(found) if ty.is_none() => ty = Some(found),
                    Some(_) => {
                        let diagnostic = Diagnostic::error(codes::BAD_TYPE, "a second type in one declaration");
                        return Err(self.report(diagnostic.at(word_place, "expected a name")));
                    }
                    None => return Err(self.no_type(word, word_place, ty.is_some())),
                },
            }
        }
        match ty {
            Some(ty) => variable.ty = ty,
            None if self.kind() == TokenKind::Name => return Err(self.no_type(self.text_of(self.token()), self.here(), false)),
            None => {
                let diagnostic = Diagnostic::error(codes::BAD_TYPE, "a declaration without a type");
                return Err(self.report(diagnostic.at(place, "expected a type such as `.f32` behind this")));
            }
        }
        if variable.vector > 1 && !variable.ty.is_register() {
            let message = format!("there are no vectors of `{}`", variable.ty);
            return Err(self.report(Diagnostic::error(codes::BAD_TYPE, message).at(place.to(self.last()), "not a vector")));
        }
        if variable.element_bytes() > 16 {
            let message = format!("a vector has at most 128 bits, not {}", 8 * variable.element_bytes());
            return Err(self.report(Diagnostic::error(codes::BAD_TYPE, message).at(place.to(self.last()), "too wide")));
        }
        Ok(variable)
    }

    /// Reports a word in place of a type or, after a type, of a name.
    fn no_type(&mut self, word: &str, place: Span, has_type: bool) -> super::ReportedError {
        let vector =
            word.strip_prefix('v').is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit()));
        let bad = |message: String, label: &str| Diagnostic::error(codes::BAD_TYPE, message).at(place, label);
        let diagnostic = if matches!(word, "v2" | "v4") {
            bad("a second length of the vector".to_owned(), "one is enough")
        } else if vector {
            bad(format!("`.{}` is not a length of vectors", shorten(word)), "expected `.v2` or `.v4`")
        } else if Space::from_name(word).is_some() {
            bad("a second state space".to_owned(), "expected a type such as `.f32`")
        } else if has_type {
            let diagnostic = bad(format!("expected a name, found `.{}`", shorten(word)), "expected a name");
            match word {
                "align" => diagnostic.help("`.align` stands before the type"),
                _ => diagnostic.help("a name has no dot"),
            }
        } else {
            let shown = &self.text[place.start as usize..place.end as usize];
            let diagnostic = bad(format!("`{}` is not a type", shorten(shown)), "expected a type such as `.f32`");
            match Type::meant(word).or_else(|| crate::select::nearest(word, Type::ALL.iter().map(|ty| ty.name()))) {
                Some(near) => diagnostic.help(format!("did you mean `.{near}`?")),
                None => diagnostic,
            }
        };
        self.report(diagnostic)
    }

    fn alignment(&mut self) -> ParseResult<u32> {
        let place = self.here();
        let align = self.expect_u32("an alignment in bytes")?;
        if align.is_power_of_two() {
            return Ok(align);
        }
        let message = format!("an alignment is a power of two, not {align}");
        Err(self.report(Diagnostic::error(codes::BAD_TYPE, message).at(place, "not a power of two")))
    }

    /// Parses `.ptr[.space][.align N]` after the type of a kernel's parameter.
    fn pointer(&mut self) -> ParseResult<PointerInfo> {
        let mut pointer = PointerInfo { space: Space::Generic, align: None };
        while let Some(word) = self.dotted() {
            match word {
                "align" => {
                    self.bump();
                    pointer.align = Some(self.alignment()?);
                }
                "const" | "global" | "local" | "shared" => {
                    self.bump();
                    pointer.space = Space::from_name(word).unwrap_or(Space::Generic);
                }
                _ => break,
            }
        }
        Ok(pointer)
    }

    fn attributes(&mut self, variable: &mut Variable) -> ParseResult<()> {
        self.expect(b'(')?;
        loop {
            match self.dotted() {
                Some("managed") => {
                    self.bump();
                    variable.managed = true;
                }
                Some("unified") => {
                    self.bump();
                    self.expect(b'(')?;
                    let first = self.expect_integer("a number")?;
                    self.expect(b',')?;
                    variable.unified = Some((first, self.expect_integer("a number")?));
                    self.expect(b')')?;
                }
                _ => return Err(self.unexpected("`.managed` or `.unified`")),
            }
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b')')?;
        Ok(())
    }

    /// Parses name, dimensions and initialiser.
    pub(super) fn variable_rest(&mut self, mut variable: Variable, may_init: bool) -> ParseResult<(Variable, &'a str)> {
        let (name, span) = self.expect_name("the name of a variable")?;
        variable.name = name.to_owned();
        variable.span = span;
        self.dimensions(&mut variable)?;
        if !variable.ty.is_memory() && variable.space != Space::Reg {
            let message = format!("a variable cannot have the type `{}`", variable.ty);
            return Err(self.report(Diagnostic::error(codes::BAD_TYPE, message).at(span, "there are no such values in memory")));
        }
        if variable.bytes().is_none() {
            return Err(
                self.report(Diagnostic::error(codes::LIMIT, "an array larger than 64 bits can count").at(span, "too large"))
            );
        }
        if may_init && self.eat(b'=') {
            self.declaring = Some(name);
            let init = self.initialiser(0);
            self.declaring = None;
            variable.init = Some(init?.fitted(variable.ty));
        }
        Ok((variable, name))
    }

    fn dimensions(&mut self, variable: &mut Variable) -> ParseResult<()> {
        while self.eat(b'[') {
            if variable.dims.len() >= MAX_DEPTH {
                let place = self.last();
                let message = format!("an array has at most {MAX_DEPTH} dimensions");
                return Err(self.report(Diagnostic::error(codes::LIMIT, message).at(place, "one too many")));
            }
            let place = self.here();
            let size = if self.is_sign(b']') {
                if !variable.dims.is_empty() {
                    let diagnostic = Diagnostic::error(codes::BAD_TYPE, "only the first dimension of an array can be left open");
                    return Err(self.report(diagnostic.at(place, "expected a number")));
                }
                None
            } else {
                match self.integer_expression()? {
                    size if size >= 0 => Some(size as u64),
                    size => {
                        let negative = self.text_of(self.tokens[self.at - 1]).parse::<u64>() != Ok(size as u64);
                        let diagnostic = match negative {
                            true => Diagnostic::error(codes::BAD_TYPE, "an array of a negative size"),
                            false => Diagnostic::error(codes::LIMIT, "an array larger than 64 bits can count"),
                        };
                        let place = place.to(self.last());
                        return Err(self.report(diagnostic.at(place, if negative { "negative" } else { "too large" })));
                    }
                }
            };
            variable.dims.push(size);
            self.expect(b']')?;
        }
        Ok(())
    }

    /// Parses `+ n` or `- n` after a name.
    pub(super) fn signed_offset(&mut self) -> ParseResult<i64> {
        let negative = self.is_sign(b'-');
        self.bump();
        let value = self.offset_expression()?;
        Ok(if negative { value.wrapping_neg() } else { value })
    }

    fn function(&mut self, linkage: Linkage, is_kernel: bool) -> ParseResult<()> {
        let start = self.here();
        self.bump();
        let mut function = Function::new("", is_kernel);
        function.linkage = linkage;
        let mut named = vec![];
        if self.eat_dotted("attribute") {
            let mut ignored = Variable::new("", Space::Global, Type::B8);
            self.attributes(&mut ignored)?;
            if let Some((a, b)) = ignored.unified {
                let halves = [a, b].into_iter().flat_map(|half| [(half >> 32) as u32, half as u32]);
                function.directives.push(Directive::Words("attribute.unified", halves.collect()));
            }
        }
        if self.is_sign(b'(') {
            if is_kernel && self.kind_ahead(1) != TokenKind::Sign(b')') {
                let place = self.here();
                let diagnostic = Diagnostic::error(codes::WRONG_NAME, "a kernel has no result");
                return Err(self.report(diagnostic.at(place, "expected the name of the kernel")));
            }
            if is_kernel {
                return Err(self.unexpected("the name of the kernel"));
            }
            function.results = self.params(&mut function, &mut named)?;
        }
        let (name, span) = self.expect_name(if is_kernel { "the name of the kernel" } else { "the name of the function" })?;
        function.name = name.to_owned();
        function.span = span;
        if self.is_sign(b'(') {
            function.params = self.params(&mut function, &mut named)?;
        }
        self.function_directives(&mut function.directives)?;
        let has_body = self.is_sign(b'{');
        if !has_body && !self.is_sign(b';') {
            return Err(self.unexpected("`{` or `;`"));
        }
        let func = self.declare_function(name, span, function, has_body)?;
        if !has_body {
            self.expect(b';')?;
            self.module.items.push(Item::Declaration(func));
            return Ok(());
        }
        let mut function = std::mem::replace(&mut self.module.functions[func], Function::new("", is_kernel));
        function.has_body = true;
        let mut names = Names::new(self.globals.clone());
        for (name, span, earlier) in names.declare_params(&function, &named) {
            self.duplicate(name, span, earlier);
        }
        let outcome = self.body(&mut function, names, start);
        self.module.functions[func] = function;
        self.module.items.push(Item::Definition(func));
        outcome
    }

    fn declare_function(&mut self, name: &'a str, span: Span, function: Function, has_body: bool) -> ParseResult<Func> {
        match self.globals.get(name).copied() {
            None => {
                let func = self.module.functions.push(function);
                Rc::make_mut(&mut self.globals).insert(name, Symbol::Func(func));
                Ok(func)
            }
            Some(Symbol::Func(func)) => {
                let known = &self.module.functions[func];
                if known.has_body && has_body {
                    let earlier = known.span;
                    return Err(self.duplicate(name, span, earlier));
                }
                if let Some(difference) = difference(known, &function) {
                    let earlier = known.span;
                    return Err(self.report(
                        Diagnostic::error(codes::DUPLICATE, format!("`{}` is declared in two different ways", shorten(name)))
                            .at(span, format!("here with {difference}"))
                            .label(earlier, "first declared here"),
                    ));
                }
                if !known.has_body {
                    let linkage = if function.linkage == Linkage::Private { known.linkage } else { function.linkage };
                    self.module.functions[func] = Function { linkage, ..function };
                }
                Ok(func)
            }
            Some(Symbol::Var(var) | Symbol::Local(var)) => {
                let earlier = self.module.variables[var].span;
                Err(self.duplicate(name, span, earlier))
            }
        }
    }

    /// Parses `( .param .u64 a, .reg .b32 %b )`.
    fn params(&mut self, function: &mut Function, named: &mut Vec<(Param, &'a str, Span)>) -> ParseResult<Vec<Param>> {
        self.expect(b'(')?;
        let mut params = vec![];
        if self.eat(b')') {
            return Ok(params);
        }
        loop {
            if !matches!(self.dotted(), Some("param" | "reg")) {
                return Err(self.no_parameter());
            }
            let start = self.variable_start()?;
            let (variable, name) = self.variable_rest(start, false)?;
            let span = variable.span;
            if variable.space == Space::Reg && function.is_kernel {
                let diagnostic = Diagnostic::error(codes::WRONG_NAME, "a parameter of a kernel lives in `.param`, not in `.reg`");
                return Err(self.report(diagnostic.at(span, "in a register")));
            }
            let param = match variable.space {
                Space::Param => Param::Memory(function.variables.push(variable)),
                Space::Reg => Param::Reg(function.regs.push(RegData { name: name.to_owned(), ty: variable.ty })),
                Space::Generic | Space::Const | Space::Global | Space::Local | Space::Shared | Space::Tex => {
                    return Err(self.no_parameter());
                }
            };
            // `_` is not a name: declarations and prototypes may use it repeatedly.
            if name != "_" {
                named.push((param, name, span));
            }
            params.push(param);
            if !self.eat(b',') {
                break;
            }
        }
        if self.is_sign(b'=') {
            let place = self.here();
            let diagnostic = Diagnostic::error(codes::BAD_INITIALISER, "a parameter has no initialiser");
            return Err(self.report(diagnostic.at(place, "its value comes from the caller")));
        }
        self.expect_end(b')')?;
        Ok(params)
    }

    fn no_parameter(&mut self) -> super::ReportedError {
        let place = self.here();
        let mut diagnostic = Diagnostic::error(codes::UNEXPECTED, format!("expected a parameter, found {}", self.found()));
        diagnostic = diagnostic.at(place, "expected `.param` or, for a function, `.reg`");
        if self.dotted().is_some() || self.kind() == TokenKind::Name {
            diagnostic = diagnostic.help("a parameter is written `.param .u32 name`");
        }
        self.report(diagnostic)
    }

    pub(super) fn function_directives(&mut self, directives: &mut Vec<Directive>) -> ParseResult<()> {
        while let Some(word) = self.dotted() {
            let place = self.here();
            // The next directive follows: a body or `;` is missing.
            if super::DIRECTIVES.contains(&word) && word != "pragma" {
                break;
            }
            if word == "pragma" {
                self.bump();
                directives.push(Directive::Pragma(self.expect_text("a string")?));
                self.expect(b';')?;
                continue;
            }
            let Some(&(name, least, most)) = FUNCTION_DIRECTIVES.iter().find(|(name, ..)| *name == word) else {
                let message = format!("`.{}` is not a directive of a function", shorten(word));
                let mut diagnostic = Diagnostic::error(codes::UNKNOWN_DIRECTIVE, message).at(place, "not known here");
                if let Some(near) = crate::select::nearest(word, FUNCTION_DIRECTIVES.iter().map(|(name, ..)| *name)) {
                    diagnostic = diagnostic.help(format!("did you mean `.{near}`?"));
                }
                return Err(self.report(diagnostic));
            };
            self.bump();
            let mut numbers = vec![];
            if least > 0 {
                numbers.push(self.expect_u32("a number")?);
                while self.eat(b',') {
                    if numbers.len() == most {
                        let plural = if most == 1 { "" } else { "s" };
                        let diagnostic =
                            Diagnostic::error(codes::LIMIT, format!("`.{name}` takes {most} number{plural} at most"));
                        let extra = self.here();
                        return Err(self.report(diagnostic.at(extra, "one too many")));
                    }
                    numbers.push(self.expect_u32("a number")?);
                }
            }
            directives.push(Directive::Words(name, numbers));
        }
        Ok(())
    }

    /// Parses the parameters of a prototype, like those of a function but without declaring anything.
    pub(super) fn prototype_params(&mut self) -> ParseResult<Vec<Variable>> {
        let mut scratch = Function::new("", false);
        let params = self.params(&mut scratch, &mut vec![])?;
        let Function { variables, regs, .. } = scratch;
        Ok(params.into_iter().map(|param| prototype_variable(param, &variables, &regs)).collect())
    }
}

/// Returns the difference between two declarations of a function, if any.
fn difference(known: &Function, other: &Function) -> Option<String> {
    if known.is_kernel != other.is_kernel {
        return Some((if other.is_kernel { "`.entry`" } else { "`.func`" }).to_owned());
    }
    let count = |what: &str, count: usize| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    if known.params.len() != other.params.len() {
        return Some(count("parameter", other.params.len()));
    }
    if known.results.len() != other.results.len() {
        return Some(count("result", other.results.len()));
    }
    let shape = |function: &Function, param: &Param| match param {
        Param::Memory(var) => (Space::Param, function.variables[*var].ty, function.variables[*var].bytes()),
        Param::Reg(reg) => (Space::Reg, function.regs[*reg].ty, None),
    };
    let differs = |(a, b): (&Param, &Param)| shape(known, a) != shape(other, b);
    let position = |a: &[Param], b: &[Param]| a.iter().zip(b).position(differs).map(|index| index + 1);
    let param = position(&known.params, &other.params).map(|number| format!("another type of parameter {number}"));
    param.or_else(|| position(&known.results, &other.results).map(|number| format!("another type of result {number}")))
}

fn prototype_variable(
    param: Param,
    variables: &PrimaryMap<crate::ids::Var, Variable>,
    regs: &PrimaryMap<crate::ids::Reg, RegData>,
) -> Variable {
    match param {
        Param::Memory(var) => variables[var].clone(),
        Param::Reg(reg) => Variable::new(regs[reg].name.clone(), Space::Reg, regs[reg].ty),
    }
}
