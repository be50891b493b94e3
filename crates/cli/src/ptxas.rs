//! `broadloom ptxas`: replacement for NVIDIA's assembler, for programs that call it to build a module.
//!
//! Triton compiles a kernel to PTX, calls `ptxas` and passes its output to `cuModuleLoadData`. Broadloom's
//! driver accepts PTX there, so the text is checked and copied. `broadloom exec` creates a link named `ptxas`
//! beside the replacement libraries and passes its path to Triton.

use crate::failure::{Exit, Failure, codes};
use crate::input::Input;
use crate::options::Ptxas;
use crate::terminal::Terminal;
use broadloom::diag::{Diagnostic, Diagnostics};
use broadloom::ptx::Module;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Reported release of NVIDIA's tools. Compilers select their PTX version by it.
const RELEASE: &str = "13.0";

/// Options whose value may be the next word, by their long and short names. All except the output concern
/// machine code, which is not generated here.
const WITH_VALUES: [&str; 33] = [
    "--output-file",
    "-o",
    "--gpu-name",
    "-arch",
    "--arch",
    "--machine",
    "-m",
    "--opt-level",
    "-O",
    "--maxrregcount",
    "-maxrregcount",
    "--minnctapersm",
    "--maxntid",
    "--entry",
    "-e",
    "--def-load-cache",
    "-dlcm",
    "--def-store-cache",
    "-dscm",
    "--force-load-cache",
    "-flcm",
    "--force-store-cache",
    "-fscm",
    "--fmad",
    "-fmad",
    "--input-as-string",
    "-ias",
    "--options-file",
    "-optf",
    "--split-compile",
    "-split-compile",
    "--override-directive-values",
    "-override-directive-values",
];

/// Command line of the assembler.
#[derive(Debug, Default, PartialEq, Eq)]
struct AssemblerCall {
    version: bool,
    help: bool,
    output: Option<PathBuf>,
    inputs: Vec<PathBuf>,
}

/// Parses the words like NVIDIA's assembler: `--name value`, `--name=value`, `-n value`. Options for machine
/// code are ignored.
fn parse(words: &[OsString]) -> AssemblerCall {
    let mut call = AssemblerCall::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        if !text.starts_with('-') || text == "-" {
            call.inputs.push(PathBuf::from(word));
            continue;
        }
        let (name, mut value) = match text.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(OsString::from(value))),
            None => (text.into_owned(), None),
        };
        if value.is_none() && WITH_VALUES.contains(&name.as_str()) {
            value = words.next().cloned();
        }
        match name.as_str() {
            "--version" | "-V" => call.version = true,
            "--help" | "-h" => call.help = true,
            "--output-file" | "-o" => call.output = value.map(PathBuf::from),
            _ => {}
        }
    }
    call
}

/// Checks a PTX file and copies it.
pub fn run(options: &Ptxas, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let call = parse(&options.words);
    if call.version {
        let version = env!("CARGO_PKG_VERSION");
        terminal.write(&format!("ptxas: Broadloom {version} in place of NVIDIA (R) Ptx optimizing assembler\n"));
        terminal.write(&format!("Cuda compilation tools, release {RELEASE}, V{RELEASE}.0\n"));
        return Ok(Exit::Done);
    }
    if call.help {
        terminal.write("ptxas FILE.ptx -o OUTPUT: checks PTX and copies it; Broadloom's driver loads it as a module.\n");
        return Ok(Exit::Done);
    }
    let [file] = call.inputs.as_slice() else {
        let message = format!("`ptxas` takes one file of PTX, and was given {}", call.inputs.len());
        return Err(Failure::usage(Diagnostic::error(codes::MISSING_ARGUMENTS, message).help("ptxas FILE.ptx -o OUTPUT")));
    };
    let (input, module) = Input::read(file)?.verify()?;
    let unknown = unknown_instructions(&module);
    if !unknown.is_empty() {
        return Err(Failure { exit: Exit::Usage, diagnostics: unknown, sources: input.sources });
    }
    let text = input.sources.get(input.id).map_or("", |source| source.text());
    write(call.output.as_deref().unwrap_or(Path::new("elf.o")), text)?;
    Ok(Exit::Done)
}

/// Returns errors for instructions that are not part of PTX. The driver would not load them.
fn unknown_instructions(module: &Module) -> Diagnostics {
    let mut unknown = Diagnostics::new();
    for inst in module.functions.values().flat_map(|function| function.instructions().map(|(_, inst)| inst)) {
        if inst.opcode().is_none() {
            let message = format!("`{}` is not an instruction of PTX", inst.mnemonic_text());
            unknown.push(Diagnostic::error(codes::UNKNOWN_INSTRUCTION, message).at(inst.span, "not a name of any"));
        }
    }
    unknown
}

/// Writes a text with the terminating zero that `cuModuleLoadData` expects.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let bytes = [text.trim_end_matches('\0').as_bytes(), &[0]].concat();
    std::fs::write(path, bytes).map_err(|error| Failure::cannot_write(path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> AssemblerCall {
        parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn words_are_read_as_the_assembler_reads_them() {
        let file = |output: &str, input: &str| AssemblerCall {
            output: Some(output.into()),
            inputs: vec![input.into()],
            ..AssemblerCall::default()
        };
        let triton = "-lineinfo --fmad=false -v --opt-level 0 --regAllocOptLevel=2 --gpu-name=sm_80 /tmp/a.ptx -o /tmp/a.ptx.o";
        assert_eq!(of(triton), file("/tmp/a.ptx.o", "/tmp/a.ptx"));
        assert_eq!(of("-arch sm_75 --output-file=b a"), file("b", "a"));
        assert_eq!(of("a -m 64 -O 3 --output-file b"), file("b", "a"));
        assert!(of("--version").version && of("-V").version && of("-h").help);
        assert_eq!(of("-o"), AssemblerCall::default());
    }
}
