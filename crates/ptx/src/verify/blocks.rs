//! Checks of blocks: control instructions end them, and labels lead to them.

use super::{BodyChecker, codes};
use crate::ids::{Block, Inst};
use crate::inst::Operand;
use crate::module::BodyForm;
use std::collections::HashSet;

impl BodyChecker<'_, '_> {
    pub(super) fn blocks(&mut self) {
        let function = self.function;
        if !function.has_body {
            if !function.layout.is_empty() {
                self.broken("has instructions but no body");
            }
            return;
        }
        if function.layout.is_empty() {
            return self.broken("has a body without a block");
        }
        let mut placed: HashSet<Block> = HashSet::new();
        let mut insts: HashSet<Inst> = HashSet::new();
        for block in &function.layout {
            if !placed.insert(*block) {
                return self.broken("has a block that stands twice in its layout");
            }
            let data = &function.blocks[*block];
            for (index, inst) in data.insts.iter().enumerate() {
                if !insts.insert(*inst) {
                    return self.broken("has an instruction that stands twice in its blocks");
                }
                if function.insts[*inst].is_control() && index + 1 < data.insts.len() {
                    let message = format!("`{}` stands in the middle of a block", function.insts[*inst].mnemonic_text());
                    self.report(*inst, codes::BAD_BLOCK, message, "control leaves the block here");
                }
            }
        }
        for (inst, data) in function.instructions() {
            for operand in &data.operands {
                match operand {
                    Operand::Label(block) => self.target(inst, *block, &placed),
                    Operand::Targets(targets) => {
                        let list = &function.targets[*targets];
                        if list.blocks.is_empty() {
                            let message = format!("the list `{}` of branch targets is empty", list.name);
                            self.report(inst, codes::BAD_BLOCK, message, "leads nowhere");
                        }
                        for block in &list.blocks {
                            self.target(inst, *block, &placed);
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    fn broken(&mut self, what: &str) {
        let message = format!("`{}` {what}", self.function.name);
        self.checker.report(codes::BAD_BLOCK, message, self.function.span, "");
    }

    fn target(&mut self, inst: Inst, block: Block, placed: &HashSet<Block>) {
        let name = || format!("{block}");
        if !placed.contains(&block) {
            let label = self.function.blocks[block].label.clone().unwrap_or_else(name);
            let message = format!("a branch to `{label}`, which is not in the layout of `{}`", self.function.name);
            self.report(inst, codes::BAD_BLOCK, message, "leads nowhere");
        } else if self.function.form == BodyForm::Registers && self.function.blocks[block].label.is_none() {
            let message = format!("a branch to `{block}` of `{}`, which has no label", self.function.name);
            self.report(inst, codes::NO_LABEL, message, "cannot be written");
        }
    }
}
