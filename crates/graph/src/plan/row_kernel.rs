//! Kernels of rows: reductions along the last axis, and functions that use their results.

use crate::emit::code::Code;
use crate::emit::fused::FusedTraces;
use crate::expr::error::Result;
use crate::expr::operation::Variants;
use crate::plan::group::Group;
use crate::plan::kernel::{Kernel, Planner, too_large};
use crate::plan::pattern::{KernelProgram, combination};
use crate::plan::rows::{RowReduction, stages};
use crate::tape::entries::Id;
use broadloom_device::Machine;
use broadloom_scalar::Type;
use broadloom_skeleton::{Pattern, RowAction, RowForm, RowStage, RowTail, RowValue, Rows, Source};

/// Returns the kernel of a group.
pub(crate) fn kernel(planner: &Planner<'_>, group: &Group) -> Result<Kernel> {
    let tape = planner.tape;
    let axes = usize::from(tape.shapes[group.domain as usize].rank);
    let (mut codes, mut patterns, mut cost) = (vec![], vec![], 0);
    for stage in stages(tape, &planner.cut.kept, &group.links, group.domain, false).ok_or_else(too_large)? {
        let types = |given: &[(Id, RowValue)]| given.iter().map(|(id, _)| tape.entry(*id).ty).collect::<Vec<Type>>();
        let places = |given: &[(Id, RowValue)]| given.iter().map(|(_, value)| *value).collect::<Vec<RowValue>>();
        let mut source = |fused: FusedTraces<'_>, name: &str, types: &[Type]| {
            let code: Code = planner.code(fused, name, types)?;
            let source = Source::new(code.function.clone(), code.axes)?.with_given(types.len())?;
            cost += code.cost;
            codes.push(code);
            Ok::<Source, crate::expr::error::Error>(source)
        };
        let own = source(stage.fused, "row", &types(&stage.given))?;
        let action = match stage.reduction {
            None if stage.is_row => RowAction::Row,
            None => RowAction::Each,
            Some(RowReduction { group: reduction, tail, given }) => {
                let operator = combination(tape, &reduction, false)?.ok_or_else(too_large)?;
                let values = reduction.values(tape);
                let tail = match tail {
                    None => None,
                    Some(tail) => {
                        let source = source(tail, "tail", &[values, types(&given)].concat())?;
                        Some(RowTail { source, given: places(&given) })
                    }
                };
                RowAction::Reduce { operator, tail }
            }
        };
        let stored = stage.results.iter().map(|(_, stored)| *stored).collect();
        patterns.push(RowStage { source: own, given: places(&stage.given), action, stored });
    }
    let rows = Rows { axes, stages: patterns, form: RowForm { threads: 32, holds: false } };
    let ready = KernelProgram::several(Box::new(RowForms(rows)), planner.library);
    Ok(Kernel::new(group.clone(), codes, vec![], cost, ready))
}

/// Rows whose threads depend on the sizes.
#[derive(Debug)]
struct RowForms(Rows);

impl Variants for RowForms {
    fn best(&self, machine: &Machine, sizes: &[u64], _: bool) -> u64 {
        self.0.best(machine, sizes).number()
    }

    fn pattern(&self, variant: u64) -> Pattern {
        Rows { form: RowForm::from_number(variant), ..self.0.clone() }.into()
    }
}
