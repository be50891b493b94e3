//! Blocks, instructions and operands as text.

use super::Printer;
use crate::ids::{Block, Loc, Reg};
use crate::inst::{Address, Base, Call, Callee, InstData, Mnemonic, Operand, Selector};
use crate::module::{BodyForm, Function, LocData};
use std::collections::HashMap;
use std::fmt::Write as _;

/// Returns the name of a block, with or without a label.
pub(super) fn block_name(function: &Function, block: Block) -> String {
    function.blocks[block].label.clone().unwrap_or_else(|| block.to_string())
}

impl Printer<'_> {
    pub(super) fn print_blocks(&mut self, function: &Function) {
        let mut loc: Option<Loc> = None;
        let mut latest = HashMap::new();
        for block in &function.layout {
            let data = &function.blocks[*block];
            match function.form {
                BodyForm::Registers => {
                    if let Some(label) = &data.label {
                        let _ = writeln!(self.out, "{label}:");
                    }
                }
                BodyForm::Ssa => self.print_block_head(function, *block),
            }
            for pragma in &data.pragmas {
                let _ = writeln!(self.out, "\t.pragma \"{pragma}\";");
            }
            for inst in &data.insts {
                let data = &function.insts[*inst];
                if data.loc != loc
                    && let Some(next) = data.loc
                {
                    self.print_loc(function, next, &mut latest);
                    loc = data.loc;
                }
                self.out.push('\t');
                self.print_instruction(function, data);
                self.out.push('\n');
            }
            for edge in &function.blocks[*block].edges {
                let _ = write!(self.out, "\t-> {}", block_name(function, edge.target));
                self.print_block_values(function, &edge.args, false);
                self.out.push('\n');
            }
        }
    }

    /// Prints the name of a block in SSA form with its parameters.
    fn print_block_head(&mut self, function: &Function, block: Block) {
        self.out.push_str(&block_name(function, block));
        self.print_block_values(function, &function.blocks[block].params, true);
        self.out.push_str(":\n");
    }

    fn print_block_values(&mut self, function: &Function, regs: &[Reg], typed: bool) {
        for (index, reg) in regs.iter().enumerate() {
            let data = &function.regs[*reg];
            self.out.push_str(if index == 0 { "(" } else { ", " });
            if typed {
                let _ = write!(self.out, ".{} ", data.ty.name());
            }
            self.out.push_str(&data.name);
        }
        if !regs.is_empty() {
            self.out.push(')');
        }
    }

    /// Prints a line, after the lines that it was inlined at if the latest `.loc` of their location differs.
    fn print_loc(&mut self, function: &Function, loc: Loc, latest: &mut HashMap<(u32, u32, u32), Loc>) {
        let place = |loc: &LocData| (loc.file, loc.line, loc.column);
        let mut chain = vec![loc];
        while let Some(inner) = chain.last()
            && let Some(inlined) = &function.locs[*inner].inlined
            && inlined.at < *inner
            && latest.get(&place(&function.locs[inlined.at])) != Some(&inlined.at)
        {
            chain.push(inlined.at);
        }
        for loc in chain.into_iter().rev() {
            let data = &function.locs[loc];
            let _ = write!(self.out, "\t.loc {} {} {}", data.file, data.line, data.column);
            if let Some(inlined) = &data.inlined {
                let (label, offset) = &inlined.function;
                let _ = write!(self.out, ", function_name {label}");
                if *offset > 0 {
                    let _ = write!(self.out, "+{offset}");
                }
                let (file, line, column) = place(&function.locs[inlined.at]);
                let _ = write!(self.out, ", inlined_at {file} {line} {column}");
            }
            self.out.push('\n');
            latest.insert(place(data), loc);
        }
    }

    pub(super) fn print_instruction(&mut self, function: &Function, data: &InstData) {
        if let Some(guard) = data.guard {
            let _ = write!(self.out, "@{}{} ", if guard.negated { "!" } else { "" }, function.regs[guard.reg].name);
        }
        match &data.mnemonic {
            Mnemonic::Known { form, .. } => {
                self.out.push_str(form.get().opcode.name());
                for modifier in data.modifiers() {
                    self.out.push('.');
                    self.out.push_str(modifier.text());
                }
            }
            Mnemonic::Opaque(text) => self.out.push_str(text),
        }
        let specs = data.form().map_or(&[][..], |form| form.operands);
        let mut first = true;
        for (index, operand) in data.operands.iter().enumerate() {
            if *operand == Operand::Absent {
                continue;
            }
            let paired = specs.get(index).is_some_and(|spec| spec.paired);
            self.out.push_str(match (first, paired) {
                (true, _) => " ",
                (false, true) => "|",
                (false, false) => ", ",
            });
            first = false;
            self.print_operand(function, operand);
        }
        self.out.push(';');
    }

    fn print_operand(&mut self, function: &Function, operand: &Operand) {
        match operand {
            Operand::Reg(reg) => self.out.push_str(&function.regs[*reg].name),
            Operand::Not(reg) => {
                let _ = write!(self.out, "!{}", function.regs[*reg].name);
            }
            Operand::Part { reg, negated, selector } => {
                let _ = write!(self.out, "{}{}", if *negated { "-" } else { "" }, function.regs[*reg].name);
                if let Some(selector) = selector {
                    self.print_selector(*selector);
                }
            }
            Operand::Imm(imm) => {
                let _ = write!(self.out, "{imm}");
            }
            Operand::Special(special) => self.out.push_str(special.text()),
            Operand::Symbol(symbol, offset) => {
                self.print_symbol(*symbol, Some(function));
                self.print_offset(*offset);
            }
            Operand::Memory(address) => {
                self.out.push('[');
                self.print_address(function, *address);
                self.out.push(']');
            }
            Operand::Texture(texture) => {
                self.out.push('[');
                self.print_address(function, texture.base);
                for operand in &texture.rest {
                    self.out.push_str(", ");
                    self.print_operand(function, operand);
                }
                self.out.push(']');
            }
            Operand::Vector(list) => {
                self.out.push('{');
                self.print_list(function, list);
                self.out.push('}');
            }
            Operand::Label(block) => self.out.push_str(&block_name(function, *block)),
            Operand::Targets(targets) => self.out.push_str(&function.targets[*targets].name),
            Operand::Sink => self.out.push('_'),
            Operand::Pair(pair) => {
                self.print_operand(function, &pair[0]);
                self.out.push('|');
                self.print_operand(function, &pair[1]);
            }
            Operand::Absent => {}
            Operand::Call(call) => self.print_call(function, call),
        }
    }

    fn print_list(&mut self, function: &Function, list: &[Operand]) {
        for (index, operand) in list.iter().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            self.print_operand(function, operand);
        }
    }

    fn print_address(&mut self, function: &Function, address: Address) {
        match address.base {
            Base::Reg(reg) => {
                self.out.push_str(&function.regs[reg].name);
                self.print_offset(address.offset);
            }
            Base::Symbol(symbol) => {
                self.print_symbol(symbol, Some(function));
                self.print_offset(address.offset);
            }
            Base::Absolute => {
                let _ = write!(self.out, "{}", address.offset);
            }
        }
    }

    fn print_selector(&mut self, selector: Selector) {
        match selector {
            Selector::B0 => self.out.push_str(".b0"),
            Selector::B1 => self.out.push_str(".b1"),
            Selector::B2 => self.out.push_str(".b2"),
            Selector::B3 => self.out.push_str(".b3"),
            Selector::H0 => self.out.push_str(".h0"),
            Selector::H1 => self.out.push_str(".h1"),
            Selector::Lanes(lanes) if lanes & 0x8000 != 0 => {
                let _ = write!(self.out, ".h{:02x}", lanes & 0x7fff);
            }
            Selector::Lanes(lanes) => {
                let _ = write!(self.out, ".b{lanes:04x}");
            }
            Selector::Mask(mask) => {
                self.out.push_str(".b");
                (0..4).rev().filter(|byte| mask >> byte & 1 == 1).for_each(|byte: u8| self.out.push(char::from(b'0' + byte)));
            }
        }
    }

    fn print_call(&mut self, function: &Function, call: &Call) {
        if !call.results.is_empty() {
            self.out.push('(');
            self.print_list(function, &call.results);
            self.out.push_str("), ");
        }
        let mut proto_name = None;
        match call.callee {
            Callee::Direct(func) => self.out.push_str(&self.module.functions[func].name),
            Callee::Indirect { reg, proto } => {
                self.out.push_str(&function.regs[reg].name);
                proto_name = proto.map(|proto| function.protos[proto].name.as_str());
            }
        }
        if !call.arguments.is_empty() {
            self.out.push_str(", (");
            self.print_list(function, &call.arguments);
            self.out.push(')');
        }
        if let Some(name) = proto_name {
            let _ = write!(self.out, ", {name}");
        }
    }
}
