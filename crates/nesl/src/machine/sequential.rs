//! Calls that run sequentially, each in one thread or one warp of the device.

use super::Machine;
use crate::eval::Run;
use crate::run::Entry;
use crate::vcode::{FuncId, Inst, SequentialCall};

impl Machine<'_, '_, '_> {
    /// Takes the sizes of calls and pushes their execution mode. `place` is the instruction.
    pub(super) fn small(&mut self, place: (FuncId, usize)) -> Run<()> {
        let [sizes] = self.take::<1>()?;
        // The calls follow this instruction.
        let code = self.program.functions[place.0].code.get(place.1..).unwrap_or_default();
        let form = code.iter().find_map(|inst| match inst {
            Inst::Sequential(call) => Some(call.form.clone()),
            _ => None,
        });
        let (way, limit) = match self.accelerator.as_deref_mut() {
            Some(accelerator) if matches!(sizes, Entry::Device(_)) => accelerator.small(&sizes, place, form.as_deref())?,
            _ => (0, 0),
        };
        let (way, limit) = (self.ints(vec![way])?, self.ints(vec![limit])?);
        self.stack.extend([way, limit]);
        self.count(1)
    }

    /// Executes a call sequentially. Returns false if the flattened function must be called instead; the
    /// operands are then on the stack.
    pub(super) fn sequential(&mut self, call: &SequentialCall) -> Run<bool> {
        let Some((operands, _)) = &self.program.functions[call.fallback].signature else { return Ok(false) };
        let range = self.range(operands.len() as u32, 0)?;
        let operands = self.stack[range.clone()].to_vec();
        let Some(accelerator) = self.accelerator.as_deref_mut() else { return Ok(false) };
        let Some(made) = accelerator.sequential(&call.form, &operands)? else { return Ok(false) };
        let mut results = Vec::with_capacity(made.len());
        for made in made {
            results.push(self.entry(made)?);
        }
        self.stack.truncate(range.start);
        self.count(results.iter().map(Entry::len).sum())?;
        self.stack.extend(results);
        Ok(true)
    }

    /// Returns the function to call instead of a sequential form; `None` if the form was executed.
    pub(super) fn instead(&mut self, call: &SequentialCall) -> Run<Option<FuncId>> {
        if self.world.options().is_stopped() {
            return Err(self.world.options().stopped());
        }
        Ok((!self.sequential(call)?).then_some(call.fallback))
    }
}
