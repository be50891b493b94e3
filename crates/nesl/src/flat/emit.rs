//! Flattened programs to VCODE.
//!
//! Operands are moved to the top of the stack when this is their last use and copied otherwise. Vectors that are not
//! needed any more are popped where they die, so that a call at the end of a function leaves nothing behind.

use super::{Block, Op, Program, VarId};
use crate::vcode::{self, Inst};
use broadloom_diag::Span;
use cranelift_entity::{EntityRef, EntitySet};

/// Writes a program as VCODE.
pub fn emit(program: &Program) -> vcode::Program {
    let mut out = vcode::Program::default();
    for function in program.functions.values() {
        let mut emitter = Emitter { code: vec![], spans: vec![], stack: function.params.clone() };
        emitter.block(&function.body, &EntitySet::new());
        emitter.push(Inst::Return, Span::default());
        let types = |vars: &[VarId]| vars.iter().map(|&var| function.vars[var].ty).collect();
        let signature = Some((types(&function.params), types(&function.body.results)));
        out.functions.push(vcode::Function {
            name: function.name.clone(),
            source: function.source.clone(),
            signature,
            code: emitter.code,
            spans: emitter.spans,
        });
    }
    out.main = program.main.map(|main| vcode::FuncId::new(main.index()));
    out
}

struct Emitter {
    code: Vec<Inst>,
    spans: Vec<Span>,
    /// The vectors on the stack, the top last.
    stack: Vec<VarId>,
}

/// Adds the vectors that a block uses from outside of it.
fn uses(block: &Block, out: &mut EntitySet<VarId>) {
    for stmt in &block.stmts {
        out.extend(stmt.args.iter().copied());
        if let Op::If(branches) = &stmt.op {
            uses(&branches.0, out);
            uses(&branches.1, out);
        }
    }
    out.extend(block.results.iter().copied());
}

impl Emitter {
    fn push(&mut self, inst: Inst, span: Span) {
        self.code.push(inst);
        self.spans.push(span);
    }

    /// Emits a block. Vectors of `after` are needed behind it; all others are gone at its end but for its results, which
    /// lie on top.
    fn block(&mut self, block: &Block, after: &EntitySet<VarId>) {
        // Walking backwards, the vectors that are needed behind each statement.
        let mut live = after.clone();
        live.extend(block.results.iter().copied());
        let mut behind = Vec::with_capacity(block.stmts.len());
        for stmt in block.stmts.iter().rev() {
            behind.push(live.clone());
            live.extend(stmt.args.iter().copied());
            if let Op::If(branches) = &stmt.op {
                uses(&branches.0, &mut live);
                uses(&branches.1, &mut live);
            }
        }
        self.drop_dead(&live, Span::default());
        for stmt in &block.stmts {
            let after = behind.pop().unwrap_or_default();
            let mut kept = after.clone();
            if let Op::If(branches) = &stmt.op {
                uses(&branches.0, &mut kept);
                uses(&branches.1, &mut kept);
            }
            self.operands(&stmt.args, &kept, stmt.span);
            let base = self.stack.len() - stmt.args.len();
            self.stack.truncate(base);
            match &stmt.op {
                Op::Vector(op, ty) => self.push(Inst::Op(*op, *ty), stmt.span),
                Op::Const(constant) => self.push(Inst::Const(constant.clone()), stmt.span),
                Op::Check(check) => self.push(Inst::Check(*check), stmt.span),
                Op::Foreign(call) => self.push(Inst::Foreign(call.clone()), stmt.span),
                Op::Small => self.push(Inst::Small, stmt.span),
                Op::Sequential(form, fallback) => {
                    let fallback = vcode::FuncId::new(fallback.index());
                    self.push(Inst::Sequential(Box::new(vcode::SequentialCall { form: form.clone(), fallback })), stmt.span);
                }
                Op::Call(callee) => self.push(Inst::Call(vcode::FuncId::new(callee.index())), stmt.span),
                Op::If(branches) => {
                    let (start, before) = (self.code.len(), self.stack.clone());
                    self.push(Inst::If(0), stmt.span);
                    self.block(&branches.0, &after);
                    let middle = self.code.len();
                    self.push(Inst::Else(0), stmt.span);
                    self.code[start] = Inst::If(self.code.len() as u32);
                    self.stack = before;
                    self.block(&branches.1, &after);
                    self.push(Inst::EndIf, stmt.span);
                    self.code[middle] = Inst::Else(self.code.len() as u32);
                    let base = self.stack.len() - stmt.results.len();
                    self.stack.truncate(base);
                }
            }
            self.stack.extend(&stmt.results);
            self.drop_dead(&after, stmt.span);
        }
        self.operands(&block.results, after, Span::default());
        // Results keep the order of the block; copies of one vector have its name.
        let base = self.stack.len() - block.results.len();
        let results = self.stack.split_off(base);
        self.drop_below(after, results.len());
        self.stack.extend(results);
    }

    /// Brings operands to the top, in order.
    fn operands(&mut self, args: &[VarId], after: &EntitySet<VarId>, span: Span) {
        if self.stack.ends_with(args) && args.iter().enumerate().all(|(i, arg)| !after.contains(*arg) && !args[..i].contains(arg))
        {
            return;
        }
        for (index, &arg) in args.iter().enumerate() {
            // Operands that were brought already lie above all others.
            let searched = self.stack.len() - index;
            let Some(position) = self.stack[..searched].iter().rposition(|&var| var == arg) else {
                // Moved already: a second use of the operand copies the first.
                let position = self.stack.iter().rposition(|&var| var == arg).unwrap_or(0);
                let from = (self.stack.len() - 1 - position) as u32;
                self.push(Inst::Copy(1, from), span);
                self.stack.push(arg);
                continue;
            };
            let from = (self.stack.len() - 1 - position) as u32;
            if after.contains(arg) {
                self.push(Inst::Copy(1, from), span);
            } else {
                self.stack.remove(position);
                if from > 0 {
                    self.push(Inst::CopyPop(1, from), span);
                }
            }
            self.stack.push(arg);
        }
    }

    fn drop_dead(&mut self, live: &EntitySet<VarId>, span: Span) {
        for index in (0..self.stack.len()).rev() {
            if !live.contains(self.stack[index]) {
                let from = (self.stack.len() - 1 - index) as u32;
                self.push(Inst::Pop(1, from), span);
                self.stack.remove(index);
            }
        }
    }

    /// Drops what is dead below results that the model of the stack does not hold.
    fn drop_below(&mut self, live: &EntitySet<VarId>, above: usize) {
        for index in (0..self.stack.len()).rev() {
            if !live.contains(self.stack[index]) {
                let from = (self.stack.len() - 1 - index + above) as u32;
                self.push(Inst::Pop(1, from), Span::default());
                self.stack.remove(index);
            }
        }
    }
}
