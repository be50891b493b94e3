//! StreamIt: `.str` files.

use crate::devices::PrintedText;
use crate::failure::Failure;
use crate::language::{Command, Devices, Language, Request};
use broadloom_stream::Program;
use broadloom_stream::compiled::Compiled;
use broadloom_stream::eval::{Limits, Memory, Settings};

/// Registration of StreamIt.
pub(crate) const LANGUAGE: Language = Language { extension: "str", comment: ("//", ""), commands: COMMANDS };

const COMMANDS: &[Command] = &[
    // Runs a number of steady states, compiled; outputs the printed text, which the evaluator must print too.
    Command {
        name: "run",
        launches: false,
        devices: Devices::Some(&RUN_ON),
        argument: Some(|count| iterations(count).map(|_| ())),
        perform: run,
    },
    // Outputs the placement of nodes and the shapes of kernels, for the interpreter.
    Command { name: "explain", launches: false, devices: Devices::One, argument: None, perform: explain },
];

/// Devices that programs run on.
const RUN_ON: [&str; 3] = ["interp", "cpu-avx2", "cuda"];

fn iterations(count: &str) -> Result<u64, Failure> {
    count.trim().parse().map_err(|_| format!("`run` needs a number of steady states behind it, not `{count}`").into())
}

fn compile(request: &Request<'_>, limits: &Limits) -> Result<Program, Failure> {
    let mut host = Memory::default();
    Ok(Program::compile(request.name, request.text, &mut host, limits)?)
}

/// Returns limits under which no test hangs.
fn limits() -> Limits {
    Limits { steps: 50_000_000, ..Limits::default() }
}

fn run(request: &Request<'_>) -> Result<String, Failure> {
    let limits = limits();
    let settings = Settings { iterations: Some(iterations(request.argument)?), limits: limits.clone(), style: None };
    let program = match compile(request, &limits) {
        Ok(program) => program,
        Err(failure) => return Ok(failure.0),
    };
    let device = request.device.open(&PrintedText::default())?;
    let mut host = Memory::default();
    let ended = program.run(&mut host, &settings).map_err(|failure| failure.to_string());
    let wanted = host.output + &ended.map_or_else(|message| message, |_| String::new());
    let compiled = Compiled::new(&program, &device)?;
    let mut host = Memory::default();
    let ended = compiled.run(&mut host, &settings).map_err(|failure| failure.to_string());
    let found = host.output + &ended.map_or_else(|message| message, |_| String::new());
    if found == wanted { Ok(found) } else { Err(format!("compiled:\n{found}\nthe evaluator:\n{wanted}").into()) }
}

fn explain(request: &Request<'_>) -> Result<String, Failure> {
    let program = compile(request, &limits())?;
    let device = request.device.open(&PrintedText::default())?;
    let compiled = Compiled::new(&program, &device)?;
    Ok(compiled.explain())
}
