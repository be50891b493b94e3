//! Linear forms: values as sums of inputs with constant factors.
//!
//! A tape holds the sums and products of inputs in the order in which they were computed. One walk over the
//! tape from its end computes the factors of a form: each step passes its factor to its operands. The walk
//! ends when no factor is left to pass on.

/// A value on the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form(u32);

#[derive(Clone, Copy, Debug)]
enum Step {
    Input(usize, i128),
    Scale(Form, f64),
    Add(Form, Form),
}

/// A value that a function writes: a constant plus a weighted sum of inputs. See
/// [`Function::linear_forms`](crate::Function::linear_forms).
#[derive(Clone, Debug, PartialEq)]
pub struct LinearForm {
    /// Number of the accessor that is written.
    pub accessor: usize,
    /// Position that is written.
    pub position: i128,
    /// The term without a variable.
    pub constant: f64,
    /// Accessors and positions that are read, with their factors. A position that is read several times has
    /// several entries.
    pub factors: Vec<(usize, i128, f64)>,
}

/// The sums and products of inputs, and the written values.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    steps: Vec<Step>,
    written: Vec<(usize, i128, f64, Option<Form>)>,
}

impl Tape {
    fn step(&mut self, step: Step) -> Form {
        self.steps.push(step);
        Form(self.steps.len() as u32 - 1)
    }

    pub(crate) fn input(&mut self, accessor: usize, position: i128) -> Form {
        self.step(Step::Input(accessor, position))
    }

    pub(crate) fn scale(&mut self, form: Form, factor: f64) -> Form {
        if factor == 1.0 { form } else { self.step(Step::Scale(form, factor)) }
    }

    pub(crate) fn add(&mut self, one: Form, other: Form) -> Form {
        self.step(Step::Add(one, other))
    }

    pub(crate) fn write(&mut self, accessor: usize, position: i128, constant: f64, form: Option<Form>) {
        self.written.push((accessor, position, constant, form));
    }

    /// Returns the forms of the written values.
    pub(crate) fn finish(self) -> Vec<LinearForm> {
        let mut waiting: Vec<Option<f64>> = vec![None; self.steps.len()];
        let form = |(accessor, position, constant, form): &(usize, i128, f64, Option<Form>)| {
            let (mut factors, mut left) = (vec![], 0usize);
            let hand = |waiting: &mut Vec<Option<f64>>, left: &mut usize, to: Form, factor: f64| {
                let slot = &mut waiting[to.0 as usize];
                *left += usize::from(slot.is_none());
                *slot = Some(slot.unwrap_or(0.0) + factor);
            };
            let mut at = form.map_or(0, |form| form.0 as usize + 1);
            if let Some(form) = form {
                hand(&mut waiting, &mut left, *form, 1.0);
            }
            while left > 0 && at > 0 {
                at -= 1;
                let Some(factor) = waiting[at].take() else { continue };
                left -= 1;
                match self.steps[at] {
                    Step::Input(accessor, position) => factors.push((accessor, position, factor)),
                    Step::Scale(of, by) => hand(&mut waiting, &mut left, of, factor * by),
                    Step::Add(one, other) => {
                        hand(&mut waiting, &mut left, one, factor);
                        hand(&mut waiting, &mut left, other, factor);
                    }
                }
            }
            LinearForm { accessor: *accessor, position: *position, constant: *constant, factors }
        };
        self.written.iter().map(form).collect()
    }
}
