//! Inputs of a function's code, as bytes to be hashed.
//!
//! The bytes contain everything that the text of the function says. They do not contain the spans of the
//! instructions and the file name. The bytes are specific to this build; keys hold what identifies the build.

use broadloom_ptx::{Callee, Func, Function, InstData, Mnemonic, Module, Operand, Signature, Variable};
use std::hash::{Hash, Hasher};

/// Hasher that keeps all bytes.
#[derive(Default)]
pub(super) struct Content(Vec<u8>);

impl Hasher for Content {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Unused: only the bytes are needed.
    fn finish(&self) -> u64 {
        0
    }
}

impl Content {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn put(&mut self, value: &(impl Hash + ?Sized)) {
        value.hash(self);
    }

    fn debug(&mut self, value: &impl std::fmt::Debug) {
        self.put(&format!("{value:?}"));
    }

    /// Adds a variable without its initial contents, which code reads from memory.
    pub(super) fn variable(&mut self, variable: &Variable) {
        let Variable { name, space, bank, ty, vector, dims, align, linkage, managed, unified, pointer, init, span: _ } = variable;
        self.put(&(name, bank, ty, vector, dims, align, linkage));
        self.put(&(space, managed, unified, variable.bytes(), init.is_some()));
        self.debug(pointer);
    }

    fn signature(&mut self, signature: &Signature) {
        let Signature { name, results, params, directives, span: _ } = signature;
        self.put(&(name, results.len(), params.len()));
        results.iter().chain(params).for_each(|variable| self.variable(variable));
        self.debug(directives);
    }

    /// Adds a function with its body.
    pub(super) fn function(&mut self, function: &Function) {
        let Function { name, linkage, is_kernel, results, params, directives, has_body, form, .. } = function;
        let Function { variables, regs, protos, targets, locs, insts: _, blocks, layout, span: _, .. } = function;
        self.put(&(name, linkage, is_kernel, has_body, form));
        self.debug(&(results, params, directives));
        self.put(&variables.len());
        variables.values().for_each(|variable| self.variable(variable));
        self.put(&regs.len());
        regs.values().for_each(|reg| self.put(&(&reg.name, reg.ty)));
        self.put(&protos.len());
        protos.values().for_each(|signature| self.signature(signature));
        self.put(&targets.len());
        targets.values().for_each(|list| self.put(&(&list.name, &list.blocks)));
        self.put(&locs.len());
        locs.values().for_each(|loc| self.put(loc));
        self.put(&layout.len());
        for block in layout {
            let data = &blocks[*block];
            self.put(&(block, &data.label, &data.pragmas, &data.params, data.insts.len(), data.edges.len()));
            data.edges.iter().for_each(|edge| self.put(&(edge.target, &edge.args)));
            data.insts.iter().for_each(|inst| self.instruction(&function.insts[*inst]));
        }
    }

    /// Adds the functions that a function calls by name. Code depends on their names and signatures if they
    /// have no body.
    pub(super) fn called(&mut self, module: &Module, func: Func) {
        for (_, inst) in module.functions[func].instructions() {
            if let Some(Callee::Direct(callee)) = inst.callee() {
                let callee = &module.functions[callee];
                self.put(&(&callee.name, callee.has_body, callee.is_kernel));
                self.debug(&(&callee.results, &callee.params));
                callee.variables.values().for_each(|variable| self.variable(variable));
            }
        }
    }

    fn instruction(&mut self, inst: &InstData) {
        let InstData { guard, mnemonic, operands, loc, span: _ } = inst;
        self.put(&(guard, loc));
        match mnemonic {
            Mnemonic::Known { form, modifiers } => self.put(&(form, modifiers.len())),
            Mnemonic::Opaque(text) => self.put(text),
        }
        inst.modifiers().for_each(|modifier| self.put(&modifier));
        self.operands(operands);
    }

    fn operands(&mut self, operands: &[Operand]) {
        self.put(&operands.len());
        operands.iter().for_each(|operand| self.operand(operand));
    }

    fn operand(&mut self, operand: &Operand) {
        std::mem::discriminant(operand).hash(self);
        match operand {
            Operand::Reg(reg) | Operand::Not(reg) => self.put(reg),
            Operand::Part { reg, negated, selector } => self.put(&(reg, negated, selector)),
            Operand::Imm(imm) => self.put(imm),
            Operand::Special(special) => self.put(special),
            Operand::Symbol(symbol, offset) => self.put(&(symbol, offset)),
            Operand::Memory(address) => self.put(address),
            Operand::Texture(texture) => {
                self.put(&texture.base);
                self.operands(&texture.rest);
            }
            Operand::Vector(list) => self.operands(list),
            Operand::Label(block) => self.put(block),
            Operand::Targets(targets) => self.put(targets),
            Operand::Pair(pair) => self.operands(&pair[..]),
            Operand::Call(call) => {
                self.put(&call.callee);
                self.operands(&call.results);
                self.operands(&call.arguments);
            }
            Operand::Sink | Operand::Absent => {}
        }
    }
}
