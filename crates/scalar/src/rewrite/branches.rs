//! Conditions: resolved if they are known, converted to selections if they are short.

use super::{Flow, Rewrite, VariableValues};
use crate::body::Statement;
use crate::builder::Value;
use crate::id::{BlockId, Id, Var};
use crate::op::{BinaryOp, Op, UnaryOp};

impl Rewrite<'_, '_> {
    pub(super) fn condition(&mut self, condition: Id, then: BlockId, otherwise: BlockId) -> Flow {
        let condition = self.value(condition);
        if self.options.forward
            && let Some(literal) = self.builder.as_literal(condition)
        {
            return self.block(if literal.bits() != 0 { then } else { otherwise });
        }
        if self.options.convert_ifs && self.convert(condition, then, otherwise) {
            return Flow::On;
        }
        let before = self.known.clone();
        self.builder.begin_if(condition);
        let then_flow = self.block(then);
        let known_then = std::mem::replace(&mut self.known, before);
        self.builder.begin_else();
        let otherwise_flow = self.block(otherwise);
        self.builder.end_if();
        match (then_flow, otherwise_flow) {
            (Flow::On, Flow::On) => self.known.retain(|var, value| known_then.get(var) == Some(value)),
            (Flow::On, Flow::Ended) => self.known = known_then,
            (Flow::Ended, Flow::On) => {}
            (Flow::Ended, Flow::Ended) => return Flow::Ended,
        }
        Flow::On
    }

    /// Converts short assignments on both sides to selections, if the sides contain nothing else.
    fn convert(&mut self, condition: Value, then: BlockId, otherwise: BlockId) -> bool {
        if !self.is_short(&[then, otherwise]) {
            return false;
        }
        let before = self.known.clone();
        let mut results = vec![];
        for block in [then, otherwise] {
            let mut set = VariableValues::default();
            let source = self.source;
            for statement in &source.block(block).statements {
                match statement {
                    Statement::Define(id) => self.define(*id),
                    Statement::Set(var, value) if self.live.as_ref().is_none_or(|live| live.vars[var.index()]) => {
                        let value = self.value(*value);
                        self.known.insert(*var, value);
                        set.insert(*var, value);
                    }
                    _ => {}
                }
            }
            self.known.clone_from(&before);
            results.push(set);
        }
        let mut vars: Vec<Var> = results.iter().flat_map(|set| set.keys().copied()).collect();
        vars.sort();
        vars.dedup();
        for var in vars {
            let sides: Vec<Value> = results.iter().map(|set| set.get(&var).copied().unwrap_or_else(|| self.get(var))).collect();
            let value = self.builder.select(condition, sides[0], sides[1]);
            self.set(var, value);
        }
        true
    }

    /// Returns true if blocks contain only cheap assignments.
    fn is_short(&self, blocks: &[BlockId]) -> bool {
        let mut work = vec![];
        for block in blocks {
            for statement in &self.source.block(*block).statements {
                match statement {
                    Statement::Define(id) if matches!(self.source.node(*id).op, Op::Get(_)) => {}
                    Statement::Set(_, value) => work.push(*value),
                    _ => return false,
                }
            }
        }
        let (mut cost, mut seen) = (work.len(), vec![]);
        while let Some(id) = work.pop() {
            if cost > 16 || seen.len() > 64 {
                return false;
            }
            if self.mapped(id).is_some() || seen.contains(&id) {
                continue;
            }
            seen.push(id);
            let op = &self.source.node(id).op;
            cost += cost_of(op);
            if op.is_pure() {
                op.each_operand(|operand| work.push(operand));
            }
        }
        cost <= 16
    }
}

/// Estimates the number of simple instructions of a node.
fn cost_of(op: &Op) -> usize {
    match op {
        Op::Literal(_) | Op::Parameter(_) | Op::Assume(..) | Op::Vector(_) | Op::Lane(..) | Op::Bitcast(_) | Op::Get(_) => 0,
        Op::Binary(BinaryOp::Div | BinaryOp::Rem, ..) => 12,
        Op::Unary(UnaryOp::Sqrt, _) => 12,
        Op::Math(..) => 24,
        Op::Table(..) => 8,
        _ => 1,
    }
}
