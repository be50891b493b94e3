//! Program of a sort.

use super::{GPU_BITS, Round, Sort, parts, sweep};
use crate::cost::Costs;
use crate::kit::Draft;
use crate::program::Program;
use crate::{Count, Domain, Error, Result};
use broadloom_device::Machine;
use broadloom_scalar::Type;

impl Sort {
    fn rounds(&self, types: &[Type], digit_bits: impl Fn(u32) -> u32) -> Result<Vec<Round>> {
        let mut rounds = vec![];
        for (key, how) in self.keys.iter().enumerate().rev() {
            let element = types[key].element();
            let all = element.bits();
            let bits = match how.bits {
                Some(bits) if element.is_signed() || element.is_float() || how.descending => {
                    let reason = format!("a key of type `{element}` with {bits} bits; only unsigned, ascending keys have fewer");
                    return Err(Error::Pattern { pattern: "sort", reason });
                }
                bits => bits.unwrap_or(all).min(all),
            };
            let digit = digit_bits(bits);
            rounds.extend((0..bits).step_by(digit as usize).map(|shift| Round { key, shift, bits: digit }));
        }
        Ok(rounds)
    }

    /// Returns the program for a machine.
    pub fn program(&self, machine: &Machine) -> Result<Program> {
        let types = self.source.results();
        let bad = |reason: String| Err(Error::Pattern { pattern: "sort", reason });
        if self.keys.is_empty() || self.keys.len() > types.len() {
            return bad(format!(
                "{} keys, and `{}` gives {} values",
                self.keys.len(),
                self.source.function().name(),
                types.len()
            ));
        }
        if let Some(ty) = types[..self.keys.len()].iter().find(|ty| !ty.is_scalar()) {
            return bad(format!("a key of type `{ty}`"));
        }
        self.sink.check("sort", 1, &types)?;
        let index = Domain::LINE.check("sort", &[&self.source], &self.sink)?;
        // If no bits count, one round with a constant digit moves everything.
        let is_cpu = Costs::of(machine).in_vectors();
        let mut rounds = self.rounds(&types, |bits| if is_cpu { parts::digit_bits(bits) } else { GPU_BITS })?;
        if rounds.is_empty() {
            rounds.push(Round { key: 0, shift: 0, bits: 1 });
        }
        let n = Count::size(0);
        let mut draft = Draft::new("sort", 1);
        let inlet = draft.source(&self.source);
        let outlet = draft.sink(&self.sink, &types, &n);
        if index == Type::U32 {
            draft.limit(n.clone());
        }
        if is_cpu {
            parts::PartsEmitter::new(&mut draft, self, inlet, outlet, index, &rounds, machine)?.all(&mut draft, &rounds)?;
        } else {
            sweep::SweepPass::new(&mut draft, self, inlet, outlet, index, &rounds, machine)?.all(&mut draft, &rounds)?;
        }
        Ok(draft.finish())
    }
}
