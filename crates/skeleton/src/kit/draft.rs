//! Programs under construction: one place that numbers inputs, outputs, scalars and temporaries.

use super::{Inlet, Outlet, Writer};
use crate::program::{Argument, Output, Program, Step, Temporary};
use crate::{Count, Error, PlainProduct, Result, Sink, Source};
use broadloom_scalar::{AccessorKind, Type};

/// A [`Program`] under construction.
#[derive(Debug)]
pub struct Draft {
    program: Program,
}

/// The arguments of a program that becomes part of another one.
#[derive(Clone, Copy, Debug)]
pub struct IncludedArguments<'a> {
    /// The inputs of the included program.
    pub inputs: &'a [Argument],
    /// The outputs of the included program.
    pub outputs: &'a [Argument],
    /// The scalars of the included program.
    pub scalars: &'a [Argument],
    /// The sizes of the included program, computed from the sizes of the including one.
    pub sizes: &'a [Count],
}

impl Draft {
    /// Starts a program whose calls have this number of sizes.
    pub fn new(name: &str, sizes: usize) -> Draft {
        Draft {
            program: Program {
                name: name.to_owned(),
                kernels: vec![],
                inputs: vec![],
                outputs: vec![],
                scalars: vec![],
                sizes,
                limits: vec![],
                least: vec![],
                temporaries: vec![],
                steps: vec![],
                contract: true,
                product: None,
            },
        }
    }

    /// Appends the inputs and scalars of a source to those of the program.
    pub fn source(&mut self, source: &Source) -> Inlet {
        let inlet =
            Inlet { source: source.clone(), first_input: self.program.inputs.len(), first_scalar: self.program.scalars.len() };
        self.program.inputs.extend(source.inputs());
        self.program.scalars.extend(source.scalars());
        inlet
    }

    /// Appends an input and returns its number.
    pub fn input(&mut self, ty: Type) -> usize {
        self.program.inputs.push(ty);
        self.program.inputs.len() - 1
    }

    /// Appends the inputs, outputs and scalars of a sink for `count` positions with values of these types.
    pub fn sink(&mut self, sink: &Sink, values: &[Type], count: &Count) -> Outlet {
        let written = sink.written().cloned();
        let stored = written.as_ref().map_or_else(|| values.to_vec(), |written| written.function.result_types());
        let outlet = Outlet {
            first_output: self.program.outputs.len(),
            first_input: self.program.inputs.len(),
            first_scalar: self.program.scalars.len(),
            stored: stored.clone(),
            written,
        };
        self.program.outputs.extend(stored.into_iter().map(|ty| Output { ty, count: count.clone() }));
        if let Some(written) = &outlet.written {
            for accessor in written.function.accessors() {
                if accessor.kind == AccessorKind::Output {
                    self.program.outputs.push(Output { ty: accessor.ty, count: Count::Constant(0) });
                } else {
                    self.program.inputs.push(accessor.ty);
                }
            }
            let scalars = &written.function.parameters()[written.axes + written.values..];
            self.program.scalars.extend(scalars.iter().map(|parameter| parameter.ty));
        }
        outlet
    }

    /// Appends an output and returns its number.
    pub fn output(&mut self, output: Output) -> usize {
        self.program.outputs.push(output);
        self.program.outputs.len() - 1
    }

    /// Requires that a count is less than 2³¹, so that 32-bit indices suffice.
    pub fn limit(&mut self, count: Count) {
        self.program.limits.push(count);
    }

    /// Requires that a count is at least `least`.
    pub fn least(&mut self, count: Count, least: u64) {
        self.program.least.push((count, least));
    }

    /// Prevents contraction of float products and sums: results equal those of the written operations, bit
    /// for bit.
    pub fn keep_products(&mut self) {
        self.program.contract = false;
    }

    /// Appends a scalar and returns its number.
    pub fn scalar(&mut self, ty: Type) -> usize {
        self.program.scalars.push(ty);
        self.program.scalars.len() - 1
    }

    /// Marks the program as the plain product of two sources, stored unchanged.
    pub(crate) fn plain_product(&mut self, left: &Inlet, right: &Inlet) {
        let side = |inlet: &Inlet| (inlet.source.clone(), inlet.first_input, inlet.first_scalar);
        let (left, right) = (side(left), side(right));
        self.program.product = PlainProduct::of((&left.0, left.1, left.2), (&right.0, right.1, right.2));
    }

    /// Appends temporary memory of a run and returns its number.
    pub fn temporary(&mut self, bytes: Count, zeroed: bool) -> usize {
        self.program.temporaries.push(Temporary { bytes, zeroed });
        self.program.temporaries.len() - 1
    }

    /// Appends a copy of a step, with its arguments changed by `change`.
    pub fn repeat(&mut self, step: usize, change: impl Fn(&Argument) -> Argument) -> Result<()> {
        let given = self.program.steps.len();
        let known = self.program.steps.get(step).cloned();
        let mut step = known.ok_or_else(|| self.fewer("steps", step, given))?;
        step.arguments.iter_mut().for_each(|argument| *argument = change(argument));
        self.program.steps.push(step);
        Ok(())
    }

    fn fewer(&self, what: &'static str, index: usize, given: usize) -> Error {
        Error::Number { program: self.program.name.clone(), what, wanted: index + 1, given }
    }

    /// Appends all steps of another program, with arguments of this one. The temporaries of the other program
    /// are appended too.
    pub fn include(&mut self, other: Program, given: &IncludedArguments<'_>) -> Result<()> {
        let (kernels, temporaries) = (self.program.kernels.len(), self.program.temporaries.len());
        let sized = |count: &Count| count.with(given.sizes);
        self.program.limits.extend(other.limits.iter().map(sized));
        self.program.least.extend(other.least.iter().map(|(count, least)| (sized(count), *least)));
        let own = other.temporaries.iter().map(|own| Temporary { bytes: sized(&own.bytes), zeroed: own.zeroed });
        self.program.temporaries.extend(own);
        for step in &other.steps {
            let of = |what: &'static str, list: &[Argument], index: usize| {
                list.get(index).cloned().ok_or_else(|| self.fewer(what, index, list.len()))
            };
            let argument = |argument: &Argument| {
                Ok(match argument {
                    Argument::Input(index) => of("inputs", given.inputs, *index)?,
                    Argument::Output(index) => of("outputs", given.outputs, *index)?,
                    Argument::Scalar(index) => of("scalars", given.scalars, *index)?,
                    Argument::Temporary(index) => Argument::Temporary(temporaries + index),
                    Argument::Count(count, ty) => Argument::Count(sized(count), *ty),
                })
            };
            let arguments = step.arguments.iter().map(argument).collect::<Result<_>>()?;
            self.program.steps.push(Step {
                kernel: kernels + step.kernel,
                grid: [0, 1, 2].map(|axis: usize| sized(&step.grid[axis])),
                block: step.block,
                shared_bytes: sized(&step.shared_bytes),
                arguments,
            });
        }
        self.program.kernels.extend(other.kernels);
        Ok(())
    }

    /// Appends a kernel and its launch. Returns the number of the step.
    pub fn launch(&mut self, kernel: Writer, grid: [Count; 3], block: [u32; 3]) -> Result<usize> {
        let (kernel, arguments, shared_bytes) = kernel.finish()?;
        self.program.kernels.push(kernel);
        self.program.steps.push(Step { kernel: self.program.kernels.len() - 1, grid, block, shared_bytes, arguments });
        Ok(self.program.steps.len() - 1)
    }

    /// Returns the program.
    pub fn finish(self) -> Program {
        self.program
    }
}
