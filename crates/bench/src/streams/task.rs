//! Stream programs with their inputs and judges, and their compilation.

use crate::error::Failure;
use crate::job::{Job, Verdict, Work};
use broadloom::device::Device;
use broadloom::stream::Program;
use broadloom::stream::compiled::{Compiled, Options, Precision, Resident};
use broadloom::stream::eval::{Limits, Memory};
use std::time::{Duration, Instant};

/// Compares the words of an output with the reference.
pub(super) type WordsJudge = Box<dyn Fn(&[u32]) -> Result<Verdict, Failure>>;

/// A stream program with its inputs and its judge.
pub(super) struct Task {
    /// The text of the program.
    pub(super) text: &'static str,
    /// The measured stream.
    pub(super) stream: String,
    /// Number of steady states in a repetition.
    pub(super) states: u64,
    /// Returns the input word with a number: a float, an int or half of a complex number, as its bits.
    pub(super) input: fn(u32) -> u32,
    /// The accuracy of its floats. Peers are compiled with fast arithmetic, so most programs use it too.
    pub(super) precision: Precision,
    /// The work of a repetition.
    pub(super) work: Work,
    /// Compares the output with the reference.
    pub(super) judge: WordsJudge,
}

/// Job of a compiled stream program.
pub(super) struct CompiledTask {
    pub(super) job: Job,
    /// Number of launches in a repetition.
    pub(super) launches: u64,
    /// Time from the text to loaded kernels.
    pub(super) compile: Duration,
}

impl Task {
    /// Compiles the program, restructured or straight, and uploads its input.
    pub(super) fn compile(self, device: &Device, straight: bool, prefetch: Option<bool>) -> Result<CompiledTask, Failure> {
        let failed = |failure: broadloom::stream::Failure| Failure::Outside(failure.to_string());
        let start = Instant::now();
        let files = [("benchmark.str", self.text)];
        // A histogram is one steady state, regardless of the number of words.
        let limits = Limits { schedule: 1 << 30, ..Limits::default() };
        let program = Program::compile_stream(&files, &self.stream, &mut Memory::default(), &limits);
        // A job owns what it runs, and compiled programs borrow theirs. Therefore they are leaked and live as
        // long as the process.
        let program: &'static Program = Box::leak(Box::new(program.map_err(failed)?));
        let options = Options { straight, prefetch, precision: self.precision, ..Options::default() };
        let compiled = Compiled::with(program, device, options).map_err(failed)?;
        let compiled: &'static Compiled<'static> = Box::leak(Box::new(compiled));
        let compile = start.elapsed();
        let resident = std::rc::Rc::new(Resident::new(compiled).map_err(failed)?);
        let words = resident.input_bytes(self.states) / 4;
        let input = device.upload(&(0..words as u32).map(self.input).collect::<Vec<u32>>())?;
        let output = device.zeros::<u32>((resident.output_bytes(self.states) / 4) as usize)?;
        let (again, result, states) = (resident.clone(), output.clone(), self.states);
        let judge = move |_| {
            again.check().map_err(failed)?;
            (self.judge)(&result.read()?)
        };
        let launches = resident.launches() as u64;
        let run = move || resident.run(&input, &output, states).map_err(failed);
        Ok(CompiledTask { job: Job::new(self.work, judge).expression(run), launches, compile })
    }
}

/// Returns the floats that words represent.
pub(super) fn floats(words: &[u32]) -> Vec<f32> {
    words.iter().map(|&word| f32::from_bits(word)).collect()
}

/// Includes the text of an example program.
macro_rules! program {
    ($name:literal) => {
        include_str!(concat!("../../../../examples/stream/", $name, ".str"))
    };
}
pub(super) use program;
