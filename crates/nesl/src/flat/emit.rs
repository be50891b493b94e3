//! Translation of flattened programs to VCODE.
//!
//! Operands are moved to the top of the stack at their last use and copied otherwise. Dead vectors are popped
//! where they die, so a call at the end of a function leaves nothing behind.

use super::{Block, Op, Program, Stmt, VarId, Vars};
use crate::vcode::{self, Inst};
use broadloom_diag::Span;
use cranelift_entity::{EntityRef, SecondaryMap};

/// Writes a program as VCODE.
pub fn emit(program: &Program) -> vcode::Program {
    let mut out = vcode::Program::default();
    for function in program.functions.values() {
        let mut emitter = Emitter { code: vec![], spans: vec![], stack: function.params.clone() };
        emitter.block(&function.body, &LiveVectors::new());
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

type LiveVectors = SecondaryMap<VarId, bool>;

/// Visits the operands of the statements of a block, including those in conditionals, and its results.
fn each_use(block: &Block, see: &mut dyn FnMut(VarId)) {
    block.stmts.iter().for_each(|stmt| each_use_of(stmt, see));
    block.results.iter().for_each(|&var| see(var));
}

/// Visits the operands of a statement, and the uses in its branches.
fn each_use_of(stmt: &Stmt, see: &mut dyn FnMut(VarId)) {
    stmt.args.iter().for_each(|&var| see(var));
    if let Op::If(branches) = &stmt.op {
        each_use(&branches.0, see);
        each_use(&branches.1, see);
    }
}

impl Emitter {
    fn push(&mut self, inst: Inst, span: Span) {
        self.code.push(inst);
        self.spans.push(span);
    }

    /// Emits a block. Vectors of `after` are live after it. All others are popped at its end, except its
    /// results, which are on top.
    fn block(&mut self, block: &Block, after: &LiveVectors) {
        // The vectors that each statement uses last, found by walking backwards.
        let mut live = after.clone();
        block.results.iter().for_each(|&var| live[var] = true);
        let mut last_uses: Vec<Vars> = Vec::with_capacity(block.stmts.len());
        for stmt in block.stmts.iter().rev() {
            let mut last = Vars::new();
            each_use_of(stmt, &mut |var| {
                if !std::mem::replace(&mut live[var], true) {
                    last.push(var);
                }
            });
            last_uses.push(last);
        }
        self.drop_dead(&live, Span::default());
        for stmt in &block.stmts {
            for var in last_uses.pop().unwrap_or_default() {
                live[var] = false;
            }
            let after = &live;
            match &stmt.op {
                Op::If(branches) => {
                    let mut kept = after.clone();
                    each_use(&branches.0, &mut |var| kept[var] = true);
                    each_use(&branches.1, &mut |var| kept[var] = true);
                    self.operands(&stmt.args, &kept, stmt.span);
                }
                _ => self.operands(&stmt.args, after, stmt.span),
            }
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
                Op::Loop(form, fallback) => {
                    let fallback = vcode::FuncId::new(fallback.index());
                    self.push(Inst::Loop(Box::new(vcode::LoopCall { form: form.clone(), fallback })), stmt.span);
                }
                Op::Call(callee) => self.push(Inst::Call(vcode::FuncId::new(callee.index())), stmt.span),
                Op::If(branches) => {
                    let (start, before) = (self.code.len(), self.stack.clone());
                    self.push(Inst::If(0), stmt.span);
                    self.block(&branches.0, after);
                    let middle = self.code.len();
                    self.push(Inst::Else(0), stmt.span);
                    self.code[start] = Inst::If(self.code.len() as u32);
                    self.stack = before;
                    self.block(&branches.1, after);
                    self.push(Inst::EndIf, stmt.span);
                    self.code[middle] = Inst::Else(self.code.len() as u32);
                    let base = self.stack.len() - stmt.results.len();
                    self.stack.truncate(base);
                }
            }
            self.stack.extend(&stmt.results);
            self.drop_dead(after, stmt.span);
        }
        self.operands(&block.results, after, Span::default());
        // Results keep the order of the block; copies of one vector have its name.
        let base = self.stack.len() - block.results.len();
        let results = self.stack.split_off(base);
        self.drop_below(after, results.len());
        self.stack.extend(results);
    }

    /// Moves operands to the top, in order.
    fn operands(&mut self, args: &[VarId], after: &LiveVectors, span: Span) {
        if self.stack.ends_with(args) && args.iter().enumerate().all(|(i, arg)| !after[*arg] && !args[..i].contains(arg)) {
            return;
        }
        for (index, &arg) in args.iter().enumerate() {
            // Operands that were moved already are above all others.
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
            if after[arg] {
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

    fn drop_dead(&mut self, live: &LiveVectors, span: Span) {
        for index in (0..self.stack.len()).rev() {
            if !live[self.stack[index]] {
                let from = (self.stack.len() - 1 - index) as u32;
                self.push(Inst::Pop(1, from), span);
                self.stack.remove(index);
            }
        }
    }

    /// Drops dead vectors below results that the model of the stack does not contain.
    fn drop_below(&mut self, live: &LiveVectors, above: usize) {
        for index in (0..self.stack.len()).rev() {
            if !live[self.stack[index]] {
                let from = (self.stack.len() - 1 - index + above) as u32;
                self.push(Inst::Pop(1, from), Span::default());
                self.stack.remove(index);
            }
        }
    }
}
