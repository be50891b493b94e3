//! Parser of a function body: declarations, labels, directives and instructions, split into blocks.

use super::lexer::{TokenKind, shorten};
use super::locs::Locs;
use super::names::{Entry, Names};
use super::{MAX_DEPTH, ParseResult, Parser, codes};
use crate::ids::{Block, Func, Reg};
use crate::inst::{InstData, Operand, Symbol};
use crate::module::{Function, Linkage, Param, Signature, TargetList, Variable};
use crate::types::{Space, Type};
use broadloom_diag::{Diagnostic, Span};
use cranelift_entity::PrimaryMap;
use std::collections::{HashMap, HashSet};

/// Maximum number of labels in a `.branchtargets` list.
const MAX_TARGETS: usize = 1 << 16;

/// State of a function body that is being parsed.
pub(super) struct BodyParser<'f, 'a> {
    pub(super) function: &'f mut Function,
    pub(super) names: Names<'a>,
    block: Option<Block>,
    locs: Locs,
    /// Labels further on in the text, collected on first use.
    labels: Option<HashSet<&'a str>>,
    /// Total number of labels in label ranges.
    ranged: usize,
}

impl BodyParser<'_, '_> {
    /// Returns the current block.
    fn current(&mut self) -> Block {
        match self.block {
            Some(block) => block,
            None => {
                let block = self.function.blocks.push(Default::default());
                self.enter(block);
                block
            }
        }
    }

    fn enter(&mut self, block: Block) {
        self.function.layout.push(block);
        self.block = Some(block);
    }

    /// Appends an instruction with the current source line.
    pub(super) fn push(&mut self, mut data: InstData) {
        data.loc = self.locs.current(&mut self.function.locs);
        let ends = data.is_control();
        let block = self.current();
        let inst = self.function.insts.push(data);
        self.function.blocks[block].insts.push(inst);
        if ends {
            self.block = None;
        }
    }
}

impl<'a> Parser<'a> {
    pub(super) fn body(&mut self, function: &mut Function, names: Names<'a>, head: Span) -> ParseResult<()> {
        let mut body = BodyParser { function, names, block: None, locs: Locs::default(), labels: None, ranged: 0 };
        let params = body.function.regs.len();
        let open = self.expect(b'{')?;
        let floor = body.names.depth();
        let mut braces = vec![open];
        while !braces.is_empty() {
            if self.diagnostics.is_full() {
                return Err(super::ReportedError);
            }
            match self.kind() {
                TokenKind::End => {
                    let opened = braces.last().copied().unwrap_or(head);
                    let place = self.end_place();
                    return Err(self.report(
                        Diagnostic::error(codes::UNBALANCED, "the file ends inside of a function")
                            .at(place, "expected `}`")
                            .label(opened, "to close this"),
                    ));
                }
                TokenKind::Sign(b'{') => {
                    let place = self.here();
                    self.bump();
                    if braces.len() > MAX_DEPTH {
                        let message = format!("braces nested deeper than {MAX_DEPTH} levels");
                        return Err(self.report(Diagnostic::error(codes::LIMIT, message).at(place, "too deep")));
                    }
                    braces.push(place);
                    body.names.open();
                }
                TokenKind::Sign(b'}') => {
                    self.bump();
                    braces.pop();
                    if body.names.depth() > floor {
                        body.names.close(body.function);
                    }
                }
                TokenKind::Sign(b';') => {
                    self.bump();
                }
                _ => {
                    let before = self.at;
                    if self.statement(&mut body).is_err() {
                        self.recover_statement(before);
                        // An item that can only be at the top level: the closing brace is missing.
                        if self.starts_item() {
                            self.stopped_at_item = true;
                            return Err(super::ReportedError);
                        }
                        if self.at == before {
                            self.bump();
                        }
                    }
                }
            }
        }
        for (name, span) in body.names.undefined_labels() {
            let message = format!("no label `{}` in this function", shorten(name));
            let diagnostic = Diagnostic::error(codes::UNDEFINED_LABEL, message).at(span, "no such label");
            let diagnostic = match (body.names.label_place(name), body.names.nearest_label(name)) {
                (Some(inner), _) => {
                    diagnostic.label(inner, "this one is in an inner scope, which jumps from outside do not reach")
                }
                (None, Some(near)) => diagnostic.help(format!("did you mean `{near}`?")),
                (None, None) => diagnostic,
            };
            self.report(diagnostic);
        }
        if body.function.layout.is_empty() {
            body.current();
        }
        let same = std::mem::take(&mut body.names.same);
        if body.names.has_temporaries() {
            renumber_registers(body.function, params);
        }
        renumber_blocks(function, &same);
        Ok(())
    }

    fn statement(&mut self, body: &mut BodyParser<'_, 'a>) -> ParseResult<()> {
        match self.kind() {
            TokenKind::Dotted => self.body_directive(body),
            TokenKind::Name if self.kind_ahead(1) == TokenKind::Sign(b':') => self.label(body),
            TokenKind::Dwarf => {
                self.bump();
                Ok(())
            }
            _ => {
                let data = self.instruction(body)?;
                body.push(data);
                Ok(())
            }
        }
    }

    fn label(&mut self, body: &mut BodyParser<'_, 'a>) -> ParseResult<()> {
        let (name, span) = self.expect_name("a label")?;
        self.expect(b':')?;
        match self.dotted() {
            Some("branchtargets") => return self.branch_targets(body, name, span),
            Some("callprototype") => return self.call_prototype(body, name, span),
            Some("calltargets") => return self.call_targets(body, name, span),
            _ => {}
        }
        match body.names.define_label(body.function, name, span) {
            Ok(block) => {
                body.enter(block);
                Ok(())
            }
            Err(earlier) => Err(self.duplicate(name, span, earlier)),
        }
    }

    fn branch_targets(&mut self, body: &mut BodyParser<'_, 'a>, name: &'a str, span: Span) -> ParseResult<()> {
        self.bump();
        let mut blocks = vec![];
        loop {
            let (label, place) = self.expect_name("a label")?;
            if self.is_sign(b'<') {
                self.label_range(body, label, place, &mut blocks)?;
            } else {
                blocks.push(body.names.want_label(body.function, label, place));
            }
            if blocks.len() > MAX_TARGETS {
                let message = format!("more than {MAX_TARGETS} labels");
                return Err(self.report(Diagnostic::error(codes::LIMIT, message).at(span, "in this list")));
            }
            if !self.eat(b',') {
                break;
            }
        }
        self.expect_end(b';')?;
        let list = TargetList { name: body.names.make_name(name), blocks };
        let targets = body.function.targets.push(list);
        body.names.declare(name, Entry::Targets(targets), span).map_err(|earlier| self.duplicate(name, span, earlier))
    }

    /// Parses `L<4>`, which means `L0` to `L3`.
    fn label_range(
        &mut self,
        body: &mut BodyParser<'_, 'a>,
        prefix: &str,
        place: Span,
        blocks: &mut Vec<Block>,
    ) -> ParseResult<()> {
        self.expect(b'<')?;
        let count = self.expect_integer("a number of labels")?;
        self.expect(b'>')?;
        if count > MAX_TARGETS as u64 {
            let message = format!("more than {MAX_TARGETS} labels");
            return Err(self.report(Diagnostic::error(codes::LIMIT, message).at(place, "in this range")));
        }
        // A short range may name many labels, so the total is limited.
        body.ranged += count as usize;
        if body.ranged > MAX_TARGETS {
            let message = format!("ranges of more than {MAX_TARGETS} labels in one function");
            return Err(self.report(Diagnostic::error(codes::LIMIT, message).at(place, "too many with this")));
        }
        let labels = body.labels.take().unwrap_or_else(|| self.labels_ahead());
        for number in 0..count {
            let wanted = format!("{prefix}{number}");
            match (labels.get(wanted.as_str()), body.names.find_label(&wanted)) {
                (_, Some(block)) => blocks.push(block),
                (Some(name), None) => blocks.push(body.names.want_label(body.function, name, place)),
                (None, None) => {
                    let message = format!("no label `{}` in this function", shorten(&wanted));
                    let label = format!("`{}<{count}>` stands for it", shorten(prefix));
                    return Err(self.report(Diagnostic::error(codes::UNDEFINED_LABEL, message).at(place, label)));
                }
            }
        }
        body.labels = Some(labels);
        Ok(())
    }

    /// Returns all labels from here to the end of the function.
    fn labels_ahead(&self) -> HashSet<&'a str> {
        let rest = self.tokens[self.at..].windows(2);
        let function =
            rest.take_while(|pair| pair[0].kind != TokenKind::Dotted || !matches!(self.word_of(pair[0]), "entry" | "func"));
        let labels = function.filter(|pair| pair[0].kind == TokenKind::Name && pair[1].kind == TokenKind::Sign(b':'));
        labels.map(|pair| self.text_of(pair[0])).collect()
    }

    fn call_prototype(&mut self, body: &mut BodyParser<'_, 'a>, name: &'a str, span: Span) -> ParseResult<()> {
        self.bump();
        let results = if self.is_sign(b'(') { self.prototype_params()? } else { vec![] };
        let (name_inside, place) = self.expect_name("`_`")?;
        if name_inside != "_" {
            let message = format!("a prototype has no name inside, but `_`: found `{}`", shorten(name_inside));
            return Err(self.report(Diagnostic::error(codes::UNEXPECTED, message).at(place, "expected `_`")));
        }
        let params = if self.is_sign(b'(') { self.prototype_params()? } else { vec![] };
        let mut directives = vec![];
        self.function_directives(&mut directives)?;
        self.expect(b';')?;
        let proto = Signature { name: body.names.make_name(name), results, params, directives, span };
        let proto = body.function.protos.push(proto);
        body.names.declare(name, Entry::Proto(proto), span).map_err(|earlier| self.duplicate(name, span, earlier))
    }

    /// Parses `.calltargets f, g;`, the possible targets of a pointer. Only their signature matters for the
    /// call, so it is stored as their common prototype.
    fn call_targets(&mut self, body: &mut BodyParser<'_, 'a>, name: &'a str, span: Span) -> ParseResult<()> {
        self.bump();
        let mut shared: Option<(Func, Span)> = None;
        loop {
            let (target, place) = self.expect_name("the name of a function")?;
            let Some(Symbol::Func(func)) = self.globals.get(target).copied() else {
                let message = format!("no function `{}` is declared", shorten(target));
                return Err(self.report(Diagnostic::error(codes::UNDECLARED, message).at(place, "not declared before its use")));
            };
            let Some((first, first_place)) = shared else {
                shared = Some((func, place));
                if !self.eat(b',') {
                    break;
                }
                continue;
            };
            if self.signature_of(body, func) != self.signature_of(body, first) {
                let diagnostic = Diagnostic::error(codes::BAD_TYPE, "functions of one list have the same parameters and results");
                return Err(self.report(diagnostic.at(place, "not like the first").label(first_place, "the first")));
            }
            if !self.eat(b',') {
                break;
            }
        }
        self.expect_end(b';')?;
        let Some((func, _)) = shared else { return Ok(()) };
        let (results, params) = self.signature_of(body, func);
        let proto = Signature { name: body.names.make_name(name), results, params, directives: vec![], span };
        let proto = body.function.protos.push(proto);
        body.names.declare(name, Entry::Proto(proto), span).map_err(|earlier| self.duplicate(name, span, earlier))
    }

    /// Returns results and parameters of a function as in a prototype. The function being parsed is not in
    /// the module yet.
    fn signature_of(&self, body: &BodyParser<'_, 'a>, func: Func) -> (Vec<Variable>, Vec<Variable>) {
        let known = &self.module.functions[func];
        let function = if known.name.is_empty() { &*body.function } else { known };
        let plain = |param: &Param| {
            let (space, ty, shape) = match param {
                Param::Memory(var) => (Space::Param, function.variables[*var].ty, Some(&function.variables[*var])),
                Param::Reg(reg) => (Space::Reg, function.regs[*reg].ty, None),
            };
            let mut variable = Variable::new("_", space, ty);
            if let Some(shape) = shape {
                (variable.align, variable.vector, variable.dims) = (shape.align, shape.vector, shape.dims.clone());
            }
            variable
        };
        (function.results.iter().map(plain).collect(), function.params.iter().map(plain).collect())
    }

    fn body_directive(&mut self, body: &mut BodyParser<'_, 'a>) -> ParseResult<()> {
        let place = self.here();
        match self.dotted() {
            Some("loc") => {
                body.locs.read(self.loc_directive()?);
                Ok(())
            }
            Some("pragma") => {
                self.bump();
                let text = self.expect_text("a string")?;
                self.expect(b';')?;
                let block = body.current();
                let block = if body.function.blocks[block].insts.is_empty() {
                    block
                } else {
                    body.block = None;
                    body.current()
                };
                body.function.blocks[block].pragmas.push(text);
                Ok(())
            }
            Some("reg") => self.registers(body),
            Some("version" | "target" | "address_size" | "section" | "alias") => {
                let message = format!("`{}` stands at the top of a module, not in a function", self.text_of(self.token()));
                Err(self.report(
                    Diagnostic::error(codes::UNKNOWN_DIRECTIVE, message)
                        .at(place, "inside of a function")
                        .label(body.function.span, "is this function closed with `}`?"),
                ))
            }
            // `.func` or `.entry` inside a body: the brace before it is missing.
            Some(_) if self.starts_item() => Err(self.report(
                Diagnostic::error(codes::UNBALANCED, "a function starts inside of another")
                    .at(place, "expected `}` before this")
                    .label(body.function.span, "this function is not closed"),
            )),
            Some(linkage @ ("visible" | "extern" | "weak" | "common")) if self.next_is_reg() => {
                let message = format!("a register cannot be `.{linkage}`");
                Err(self
                    .report(Diagnostic::error(codes::WRONG_NAME, message).at(place, "registers belong to their function alone")))
            }
            Some("visible" | "extern" | "weak" | "common") => {
                let linkage = self.linkage();
                self.local_variables(body, linkage)
            }
            Some(word) if Space::from_name(word).is_some() => self.local_variables(body, Linkage::Private),
            Some(word) if self.kind_ahead(1) == TokenKind::Sign(b':') => {
                let diagnostic = Diagnostic::error(codes::UNEXPECTED, format!("`.{}` is not a label", shorten(word)));
                Err(self.report(diagnostic.at(place, "a label has no dot").help(format!("write `{}:`", shorten(word)))))
            }
            Some(word) => {
                let message = format!("`.{}` has no meaning inside of a function", shorten(word));
                let diagnostic = Diagnostic::error(codes::UNKNOWN_DIRECTIVE, message);
                let known = ["reg", "local", "shared", "param", "global", "const", "loc", "pragma"];
                Err(self.report(match (Type::from_name(word), crate::select::nearest(word, known.into_iter())) {
                    (Some(_), _) => diagnostic.at(place, "a type; an instruction starts with its name"),
                    (None, Some(near)) => diagnostic.at(place, "not known here").help(format!("did you mean `.{near}`?")),
                    (None, None) => diagnostic.at(place, "not known here"),
                }))
            }
            None => Err(self.unexpected("a statement")),
        }
    }

    fn registers(&mut self, body: &mut BodyParser<'_, 'a>) -> ParseResult<()> {
        let start = self.variable_start()?;
        loop {
            let (name, span) = self.expect_name("the name of a register")?;
            if !start.ty.is_register() {
                let message = format!("a register cannot have the type `{}`", start.ty);
                return Err(self.report(Diagnostic::error(codes::BAD_TYPE, message).at(span, "no registers of this type exist")));
            }
            let declared = if self.eat(b'<') {
                let count = self.expect_integer("a number of registers")?;
                self.expect(b'>')?;
                body.names.declare_range(name, count, start.ty, span)
            } else if start.vector > 1 {
                let entry = Entry::Vector { ty: start.ty, regs: vec![None; usize::from(start.vector)] };
                body.names.declare(name, entry, span)
            } else {
                body.names.declare(name, Entry::Reg { ty: start.ty, reg: None }, span)
            };
            declared.map_err(|earlier| self.duplicate(name, span, earlier))?;
            if self.is_sign(b'=') || self.is_sign(b'[') {
                let place = self.here();
                let diagnostic = match self.eat(b'=') {
                    true => Diagnostic::error(codes::BAD_INITIALISER, "a register has no initialiser").help(format!(
                        "give it a value in the code: `mov{} {}, …;`",
                        start.ty,
                        shorten(name)
                    )),
                    false => Diagnostic::error(codes::BAD_TYPE, "there are no arrays of registers")
                        .help(format!("`{0}<4>` declares `{0}0` to `{0}3`", shorten(name))),
                };
                return Err(self.report(diagnostic.at(place, "not for registers")));
            }
            if !self.eat(b',') {
                break;
            }
        }
        self.expect_end(b';')?;
        Ok(())
    }

    /// Tests if `.reg` follows the next token.
    fn next_is_reg(&self) -> bool {
        let next = self.tokens[(self.at + 1).min(self.tokens.len() - 1)];
        next.kind == TokenKind::Dotted && self.word_of(next) == "reg"
    }

    fn local_variables(&mut self, body: &mut BodyParser<'_, 'a>, linkage: Linkage) -> ParseResult<()> {
        let place = self.last();
        let mut start = self.variable_start()?;
        if linkage != Linkage::Private && matches!(start.space, Space::Local | Space::Param) {
            let message = format!("a variable in `{}` belongs to its function alone", start.space);
            return Err(self.report(Diagnostic::error(codes::WRONG_NAME, message).at(place, "nobody else can see it")));
        }
        start.linkage = linkage;
        loop {
            let (variable, name) = self.variable_rest(start.clone(), true)?;
            let span = variable.span;
            let var = body.names.make_local(body.function, variable);
            body.names.declare(name, Entry::Local(var), span).map_err(|earlier| self.duplicate(name, span, earlier))?;
            if !self.eat(b',') {
                break;
            }
        }
        self.expect_end(b';')?;
        Ok(())
    }
}

/// Renumbers the registers after the parameters in the order in which instructions name them, as for a
/// printed module.
fn renumber_registers(function: &mut Function, params: usize) {
    let old: PrimaryMap<Reg, _> = std::mem::take(&mut function.regs);
    let mut number: HashMap<Reg, Reg> = HashMap::new();
    let mut visit = |reg: Reg| *number.entry(reg).or_insert_with(|| function.regs.push(old[reg].clone()));
    for reg in old.keys().take(params) {
        visit(reg);
    }
    function.insts.values_mut().for_each(|data| data.change_registers(|reg| *reg = visit(*reg)));
}

/// Renumbers the blocks in text order and resolves every label to its block.
fn renumber_blocks(function: &mut Function, same: &HashMap<Block, Block>) {
    let final_block = |mut block: Block| {
        // Each step leads to an enclosing scope, so there are at most MAX_DEPTH steps.
        while let Some(next) = same.get(&block) {
            block = *next;
        }
        block
    };
    let mut old: PrimaryMap<Block, _> = std::mem::take(&mut function.blocks);
    let mut number: HashMap<Block, Block> = HashMap::new();
    for block in std::mem::take(&mut function.layout) {
        let renamed = function.blocks.push(std::mem::take(&mut old[block]));
        number.insert(block, renamed);
        function.layout.push(renamed);
    }
    let Some(&entry) = function.layout.first() else { return };
    // A missing label was reported before, so any block will do.
    let renamed = |block: Block| number.get(&final_block(block)).copied().unwrap_or(entry);
    for data in function.insts.values_mut() {
        for operand in &mut data.operands {
            if let Operand::Label(block) = operand {
                *block = renamed(*block);
            }
        }
    }
    for list in function.targets.values_mut() {
        for block in &mut list.blocks {
            *block = renamed(*block);
        }
    }
}
