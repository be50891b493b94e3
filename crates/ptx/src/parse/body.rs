//! The body of a function: declarations, labels, directives and instructions, cut into blocks.

use super::lexer::{TokenKind, shorten};
use super::names::{Entry, Names};
use super::{MAX_DEPTH, Parsed, Parser, codes};
use crate::inst::{InstData, Operand};
use crate::module::{Block, Function, Linkage, Loc, LocData, Signature, TargetList};
use crate::types::Space;
use broadloom_diag::{Diagnostic, Span};
use cranelift_entity::PrimaryMap;
use std::collections::HashMap;

/// A function while its body is read.
pub(super) struct Body<'f, 'a> {
    pub(super) function: &'f mut Function,
    pub(super) names: Names<'a>,
    block: Option<Block>,
    loc: Option<Loc>,
    locs: HashMap<LocData, Loc>,
    /// A `.loc` that no instruction has used so far.
    fresh_loc: Option<LocData>,
}

impl Body<'_, '_> {
    /// The block that the next instruction goes to.
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

    fn push(&mut self, mut data: InstData) {
        if let Some(fresh) = self.fresh_loc.take() {
            let loc = *self.locs.entry(fresh).or_insert_with_key(|data| self.function.locs.push(data.clone()));
            self.loc = Some(loc);
        }
        data.loc = self.loc;
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
    pub(super) fn body(&mut self, function: &mut Function, names: Names<'a>, head: Span) -> Parsed<()> {
        let mut body = Body { function, names, block: None, loc: None, locs: HashMap::new(), fresh_loc: None };
        let open = self.expect(b'{')?;
        let floor = body.names.depth();
        let mut braces = vec![open];
        while !braces.is_empty() {
            if self.diagnostics.is_full() {
                return Err(super::Reported);
            }
            match self.kind() {
                TokenKind::End => {
                    let opened = braces.last().copied().unwrap_or(head);
                    let place = self.here();
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
                        self.recover();
                        if self.at == before {
                            self.bump();
                        }
                        // Something that can only stand at the top: the closing brace is missing.
                        if matches!(self.dotted(), Some("entry" | "func" | "visible" | "version")) {
                            return Err(super::Reported);
                        }
                    }
                }
            }
        }
        for (name, span) in body.names.undefined_labels() {
            self.report(
                Diagnostic::error(codes::UNDEFINED_LABEL, format!("no label `{}` in this function", shorten(name)))
                    .at(span, "no such label"),
            );
        }
        if body.function.layout.is_empty() {
            body.current();
        }
        let same = std::mem::take(&mut body.names.same);
        renumber_blocks(function, &same);
        Ok(())
    }

    fn statement(&mut self, body: &mut Body<'_, 'a>) -> Parsed<()> {
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

    fn label(&mut self, body: &mut Body<'_, 'a>) -> Parsed<()> {
        let (name, span) = self.expect_name("a label")?;
        self.expect(b':')?;
        match self.dotted() {
            Some("branchtargets") => return self.branch_targets(body, name, span),
            Some("callprototype") => return self.call_prototype(body, name, span),
            Some("calltargets") => return self.call_targets(),
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

    fn branch_targets(&mut self, body: &mut Body<'_, 'a>, name: &'a str, span: Span) -> Parsed<()> {
        self.bump();
        let mut blocks = vec![];
        loop {
            let (label, place) = self.expect_name("a label")?;
            // `L<4>` stands for `L0` to `L3`.
            if self.eat(b'<') {
                return Err(self.unexpected("labels one by one"));
            }
            blocks.push(body.names.want_label(body.function, label, place));
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b';')?;
        let list = TargetList { name: body.names.make_name(name), blocks };
        let targets = body.function.targets.push(list);
        body.names.declare(name, Entry::Targets(targets), span).map_err(|earlier| self.duplicate(name, span, earlier))
    }

    fn call_prototype(&mut self, body: &mut Body<'_, 'a>, name: &'a str, span: Span) -> Parsed<()> {
        self.bump();
        let results = if self.is_sign(b'(') { self.prototype_params()? } else { vec![] };
        self.expect_name("`_`")?;
        let params = if self.is_sign(b'(') { self.prototype_params()? } else { vec![] };
        let mut directives = vec![];
        self.function_directives(&mut directives)?;
        self.expect(b';')?;
        let proto = Signature { name: body.names.make_name(name), results, params, directives, span };
        let proto = body.function.protos.push(proto);
        body.names.declare(name, Entry::Proto(proto), span).map_err(|earlier| self.duplicate(name, span, earlier))
    }

    /// `.calltargets f, g;` only promises which functions a pointer can point to.
    fn call_targets(&mut self) -> Parsed<()> {
        let place = self.here();
        Err(self.report(
            Diagnostic::error(codes::UNKNOWN_DIRECTIVE, "`.calltargets` is not read")
                .at(place, "")
                .help("use `.callprototype`, as every compiler since PTX 2.1 does"),
        ))
    }

    fn body_directive(&mut self, body: &mut Body<'_, 'a>) -> Parsed<()> {
        let place = self.here();
        match self.dotted() {
            Some("loc") => {
                body.fresh_loc = Some(self.loc_directive()?);
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
            Some("visible" | "extern" | "weak" | "common") => {
                let linkage = self.linkage();
                self.local_variables(body, linkage)
            }
            Some(word) if Space::from_name(word).is_some() => self.local_variables(body, Linkage::Private),
            // `.func` or `.entry` inside a body: the brace before it is missing.
            Some("entry" | "func") => Err(self.report(
                Diagnostic::error(codes::UNBALANCED, "a function starts inside of another")
                    .at(place, "expected `}` before this")
                    .label(body.function.span, "this function is not closed"),
            )),
            Some(word) => {
                let message = format!("`.{}` has no meaning inside of a function", shorten(word));
                Err(self.report(Diagnostic::error(codes::UNKNOWN_DIRECTIVE, message).at(place, "not known here")))
            }
            None => Err(self.unexpected("a statement")),
        }
    }

    fn registers(&mut self, body: &mut Body<'_, 'a>) -> Parsed<()> {
        let start = self.variable_start()?;
        loop {
            let (name, span) = self.expect_name("the name of a register")?;
            if !start.ty.is_register() {
                let message = format!("a register cannot have the type `{}`", start.ty);
                return Err(self.report(Diagnostic::error(codes::BAD_TYPE, message).at(span, "no registers of this type exist")));
            }
            let declared = if self.eat(b'<') {
                let count = self.expect_integer("how many registers")?;
                self.expect(b'>')?;
                body.names.declare_range(name, count, start.ty, span)
            } else if start.vector > 1 {
                let entry = body.names.make_vector(body.function, name, start.ty, start.vector);
                body.names.declare(name, entry, span)
            } else {
                body.names.declare(name, Entry::Reg { ty: start.ty, reg: None }, span)
            };
            declared.map_err(|earlier| self.duplicate(name, span, earlier))?;
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b';')?;
        Ok(())
    }

    fn local_variables(&mut self, body: &mut Body<'_, 'a>, linkage: Linkage) -> Parsed<()> {
        let mut start = self.variable_start()?;
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
        self.expect(b';')?;
        Ok(())
    }
}

/// Numbers the blocks in the order of the text and lets every label point to the block that has it.
fn renumber_blocks(function: &mut Function, same: &HashMap<Block, Block>) {
    let final_block = |mut block: Block| {
        // Each step leads to an enclosing scope, so there are at most MAX_DEPTH of them.
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
    // A label without a block was reported; any block does.
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
