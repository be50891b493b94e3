//! The command line.

use crate::failure::{Failure, codes};
use crate::terminal::Color;
use broadloom::Precision;
use broadloom::cpu::compile::Stage;
use broadloom::device::CacheFolder;
use broadloom::diag::Diagnostic;
use broadloom::effect::Rect;
use broadloom::effect::file::Format;
use broadloom::effect::plan::Options as Techniques;
use broadloom::launch::parse_extent;
use broadloom::transform::pipeline::{BACK, STAGES};
use clap::builder::styling::{AnsiColor, Styles};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Runs data-parallel programs on GPUs and CPUs: NESL, StreamIt, image effects, CUDA programs and PTX kernels.
#[derive(Debug, Parser)]
#[command(name = "broadloom", version, styles = STYLES, max_term_width = 110, after_help = EXAMPLES)]
pub struct Options {
    /// Use colours: `auto` is on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN", display_order = 100)]
    pub color: Color,
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  broadloom run examples/nesl/quicksort.nesl
  broadloom run program.nesl -- 100 in.txt        the program reads them from its variable `arguments`
  broadloom run examples/stream/low_pass.str -i 10
  broadloom effect degrain examples/effects/grainy.png clean.png
  broadloom exec -- ./vectorAdd                a compiled CUDA program, without a GPU
  broadloom check examples/race.ptx --block 64 --arg f32[64]:iota --arg f32[1]:zero --arg i32:64
  broadloom explain examples/saxpy.ptx

Exit codes: 0 success; 1 the program failed or a check has findings; 2 wrong command line; 3 the machine lacks something.
`broadloom help COMMAND` describes a command.";

const ARGUMENTS: &str = "\
Forms of an argument:
  i32:7  f32:0.5  b64:0xFF        a number; types are i8 … i64, u8 … u64, b8 … b64, f16, bf16, f32, f64
  f32[1024]:zero                  a buffer of zeros; also :iota (0, 1, 2, …), :random, :random(SEED), :uninit
  u32[4]:1,2,3,4  f32[8]:0*4,1*4  a buffer with the listed values
  @in.npy                         a buffer with the contents of a file
  f32[32,32]:zero=                `=` after a buffer prints it after the launch
  f32[32,32]:zero=out.npy         `=FILE` after a buffer writes it to a file
  '{i32:1; f32[4]:zero}'          a struct: numbers and addresses of buffers, with the layout of C
Quote words with brackets where the shell expands them: 'f32[1024]:zero'.";

const RUN_EXAMPLES: &str = "\
Examples:
  broadloom run examples/saxpy.ptx --grid 2 --block 4 --arg f32:10 --arg f32[6]:iota --arg f32[6]:iota= --arg u32:6
  broadloom run examples/reduce.ptx --grid 16 --block 256 --arg f32[4000]:iota --arg f32[1]:zero= --arg i32:4000 --stats
  broadloom run examples/mandelbrot.ptx --block 100 --arg i32:36 --arg i32:200
  broadloom run examples/nesl/quicksort.nesl
  broadloom explain examples/nesl/quicksort.nesl --emit vcode > quicksort.vcode
  broadloom run quicksort.vcode
  broadloom run examples/stream/low_pass.str -i 10
  broadloom run examples/stream/low_pass.str --stream 'Fir(48000, 1000, 64)' --input in.wav --output out.wav";

/// Options that describe the launch of one kernel.
const LAUNCH: [&str; 9] = ["file", "kernel", "grid", "block", "cluster", "arguments", "shared", "cooperative", "device"];

const CHECK_USAGE: &str = "\
broadloom check [OPTIONS] <FILE>
       broadloom check [--json <FILE>] [--time-limit <SECONDS>] -- <PROGRAM> [ARGUMENTS]…";

const CHECK_EXAMPLES: &str = "\
Examples:
  broadloom check examples/race.ptx --block 64 --arg f32[64]:iota --arg f32[1]:zero --arg i32:64
  broadloom check examples/off_by_one.ptx --block 32 --arg i32[32]:iota --arg i32[32]:zero --arg i32:32 --json findings.json
  broadloom check -- ./program its arguments      a compiled CUDA program, as `broadloom exec` runs it

Exit code: 0 without findings; 1 with findings, or when the program fails.";

/// The subcommands of `broadloom`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a kernel, or a NESL or StreamIt program
    Run(Run),
    /// Start an interactive NESL session, or run a script from standard input
    Repl(Repl),
    /// Run a kernel or program and report races, out-of-bounds accesses, uninitialised reads, barrier errors and leaks
    Check(Check),
    /// Run a compiled CUDA program, unchanged, without a GPU
    Exec(Exec),
    /// Show the contents of a module, or the plan of a program: types, kernels, memory, instructions
    Explain(Explain),
    /// Replace NVIDIA's assembler for programs that call `ptxas`: check PTX and copy it
    #[command(disable_help_flag = true)]
    Ptxas(Ptxas),
    /// Apply effects to images: blur, sharpen, degrain, resize and others
    Effect(Effect),
    /// Run benchmarks and compare with C++ programs of the same job
    Bench(Bench),
    /// List the devices of this machine and their properties
    Devices(Devices),
    /// Show or clear the cache of compiled kernels
    Cache(Cache),
}

impl Command {
    /// Returns the time limit of the whole command and the subject of its message. The other commands watch
    /// over the program or the forms that they run.
    pub fn limit(&self) -> Option<(Duration, String)> {
        let named = |verb: &str, file: Option<&Path>| format!("{verb}`{}`", file.unwrap_or(Path::new("-")).display());
        match self {
            Command::Run(run) => Some((run.launch.time_limit?, named("", run.launch.file.as_deref()))),
            Command::Explain(explain) => Some((explain.limit.time_limit?, named("the explanation of ", Some(&explain.file)))),
            Command::Effect(effect) => Some((effect.limit.time_limit?, format!("`{}`", effect.name))),
            Command::Bench(bench) => Some((bench.limit.time_limit?, "`bench`".to_owned())),
            Command::Repl(_) | Command::Check(_) | Command::Exec(_) => None,
            Command::Ptxas(_) | Command::Devices(_) | Command::Cache(_) => None,
        }
    }
}

/// A launch: which kernel of which file, over which grid, with which arguments.
#[derive(Debug, Args)]
pub struct LaunchOptions {
    /// A file of PTX, `-` for standard input; `run` takes a `.nesl`, `.vcode`, `.str` or `.graph` file too
    #[arg(required = true)]
    pub file: Option<PathBuf>,
    /// Name of the kernel; optional if the module has one
    #[arg(long, short, value_name = "NAME")]
    pub kernel: Option<String>,
    /// Number of blocks in the grid [default: 1]
    #[arg(long, short, value_name = "X[,Y,Z]", value_parser = parse_extent)]
    pub grid: Option<[u32; 3]>,
    /// Number of threads in a block [default: the kernel's requirement, or 1]
    #[arg(long, short, value_name = "X[,Y,Z]", value_parser = parse_extent)]
    pub block: Option<[u32; 3]>,
    /// Number of blocks in a cluster, for kernels without a cluster size of their own
    #[arg(long, value_name = "X[,Y,Z]", value_parser = parse_extent)]
    pub cluster: Option<[u32; 3]>,
    /// Argument of the kernel; repeat for each parameter (forms below)
    #[arg(long = "arg", short, value_name = "ARG")]
    pub arguments: Vec<String>,
    /// Dynamic shared memory per block, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub shared: u32,
    /// Run all blocks at the same time (cooperative launch), for grid-wide barriers
    #[arg(long)]
    pub cooperative: bool,
    /// Time limit in seconds for the whole command, planning and compilation included
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub time_limit: Option<Duration>,
    /// Device; `broadloom devices` lists them, the default first. `cpu:strict` checks every access of a kernel
    #[arg(long, short, value_name = "NAME")]
    pub device: Option<String>,
}

/// The time limit of a command.
#[derive(Debug, Args)]
pub struct Limit {
    /// Time limit in seconds for the whole command, planning and compilation included
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub time_limit: Option<Duration>,
}

/// Prefetch in kernels of StreamIt programs.
#[derive(Debug, Args)]
pub struct Prefetch {
    /// Prefetch in kernels of StreamIt programs, where they can [default: the cost model decides]
    #[arg(long, value_name = "WHEN", value_parser = PossibleValuesParser::new(["on", "off"]))]
    prefetch: Option<String>,
}

impl Prefetch {
    /// Returns the setting of the command line; `None` if there is none.
    pub fn wish(&self) -> Option<bool> {
        self.prefetch.as_deref().map(|when| when == "on")
    }

    /// Refuses the option in a command that accepts it only for StreamIt programs.
    pub fn refuse(&self) -> Result<(), Failure> {
        if self.prefetch.is_none() {
            return Ok(());
        }
        let message = "--prefetch is for StreamIt programs, whose files end in `.str`";
        Err(Failure::usage(Diagnostic::error(codes::BAD_LAUNCH, message).help("leave it out")))
    }
}

/// The accuracy of 32-bit floats on a device.
#[derive(Debug, Args)]
pub struct Math {
    /// Elementary functions, divisions and square roots of 32-bit floats of a program on a device [default: accurate]
    #[arg(long, value_name = "PRECISION", value_parser = PossibleValuesParser::new(["accurate", "fast"]))]
    math: Option<String>,
}

impl Math {
    /// Tests if the command line has the option.
    pub fn is_given(&self) -> bool {
        self.math.is_some()
    }

    /// Returns the precision of a run.
    pub fn precision(&self) -> Precision {
        if self.math.as_deref() == Some("fast") { Precision::Fast } else { Precision::Accurate }
    }

    /// Refuses the option in a command that accepts it only for StreamIt programs.
    pub fn refuse(&self) -> Result<(), Failure> {
        if !self.is_given() {
            return Ok(());
        }
        let message = "--math is for StreamIt programs, whose files end in `.str`";
        Err(Failure::usage(Diagnostic::error(codes::BAD_LAUNCH, message)))
    }
}

/// Options of `run`.
#[derive(Debug, Args)]
#[command(after_help = format!("{ARGUMENTS}\n\n{RUN_EXAMPLES}"))]
pub struct Run {
    #[command(flatten)]
    pub launch: LaunchOptions,
    /// More files of a StreamIt program, and after `--` its values (`taps=64`); or the arguments of a NESL program
    #[arg(value_name = "MORE")]
    pub more: Vec<PathBuf>,
    /// Iterations of a StreamIt program after its initial schedule [default: endless]
    #[arg(long, short, value_name = "N")]
    pub iterations: Option<u64>,
    /// Most that a launch of a StreamIt program takes together: `8` iterations, `256items` or `20ms` of its input
    #[arg(long, value_name = "N")]
    pub latency: Option<Latency>,
    /// The files of a StreamIt program
    #[command(flatten)]
    pub files: StreamFiles,
    /// Bits of the ints of a NESL or VCODE program [default: 32]
    #[arg(long, value_name = "BITS", value_parser = PossibleValuesParser::new(["32", "64"]))]
    pub int: Option<String>,
    /// Bits of the floats of a NESL or VCODE program [default: 64]
    #[arg(long, value_name = "BITS", value_parser = PossibleValuesParser::new(["32", "64"]))]
    pub float: Option<String>,
    /// The accuracy of floats
    #[command(flatten)]
    pub math: Math,
    /// Print statistics: kernels compiled and launched, with times
    #[arg(long)]
    pub stats: bool,
    /// Write a trace to this file, for Perfetto (ui.perfetto.dev) or Chrome (about:tracing)
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}

/// Files and values that a StreamIt program takes from the command line.
#[derive(Debug, Args)]
pub struct StreamFiles {
    /// File that a StreamIt program reads in place of its own, `-` for standard input; `NAME=FILE` if it reads several
    #[arg(long, value_name = "FILE")]
    pub input: Vec<String>,
    /// File that a StreamIt program writes in place of its own, `-` for standard output; `NAME=FILE` if it writes several
    #[arg(long, value_name = "FILE")]
    pub output: Vec<String>,
    /// Format of `--input`, and of `--output`: `s16`, `cu8`, `f32`, `wav rate=44100`, … [default: by the file and the program]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<String>,
    /// Format of `--output` [default: `--format`]
    #[arg(long, value_name = "FORMAT")]
    pub output_format: Option<String>,
    /// Items of a StreamIt program's input in a second [default: that of a WAV file]
    #[arg(long, value_name = "ITEMS")]
    pub rate: Option<f64>,
    /// Stream of a StreamIt program to run between `--input` and `--output`: `Fir(64)` [default: the top-level stream]
    #[arg(long, value_name = "STREAM")]
    pub stream: Option<String>,
}

impl StreamFiles {
    /// Returns the first option that the command line has.
    pub fn first(&self) -> Option<&'static str> {
        let given = [
            ("--input", !self.input.is_empty()),
            ("--output", !self.output.is_empty()),
            ("--format", self.format.is_some()),
            ("--output-format", self.output_format.is_some()),
            ("--rate", self.rate.is_some()),
            ("--stream", self.stream.is_some()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option)
    }
}

/// The most that a launch of a StreamIt program takes together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Latency {
    /// Steady states.
    States(u64),
    /// Items of the input.
    Items(u64),
    /// Seconds of the input.
    Seconds(f64),
}

/// A text that is no latency.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no latency; write `8` for iterations, `256items`, `20ms` or `0.5s`")]
pub struct InvalidLatency(String);

impl FromStr for Latency {
    type Err = InvalidLatency;

    fn from_str(text: &str) -> Result<Latency, InvalidLatency> {
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').trim_start();
        let number = text[..text.len() - unit.len()].trim_end();
        let seconds = |scale: f64| number.parse::<f64>().ok().map(|number| Latency::Seconds(number * scale));
        let latency = match unit {
            "" => number.parse().ok().map(Latency::States),
            "item" | "items" => number.parse().ok().map(Latency::Items),
            "s" => seconds(1.0),
            "ms" => seconds(1e-3),
            "us" | "µs" => seconds(1e-6),
            _ => None,
        };
        latency.ok_or_else(|| InvalidLatency(text.to_owned()))
    }
}

/// Options of `repl`.
#[derive(Debug, Args)]
#[command(after_help = REPL_HELP)]
pub struct Repl {
    /// Files to load at the start, without output
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Device for large vectors; `broadloom devices` lists them, and `cpu:strict` checks every access [default: cpu]
    #[arg(long, short, value_name = "NAME")]
    pub device: Option<String>,
    /// Bits of ints [default: 32]
    #[arg(long, value_name = "BITS", value_parser = PossibleValuesParser::new(["32", "64"]))]
    pub int: Option<String>,
    /// Bits of floats [default: 64]
    #[arg(long, value_name = "BITS", value_parser = PossibleValuesParser::new(["32", "64"]))]
    pub float: Option<String>,
    /// The accuracy of floats
    #[command(flatten)]
    pub math: Math,
    /// Do not save the history of lines
    #[arg(long)]
    pub no_history: bool,
    /// Time limit in seconds for each form, planning and compilation included
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub time_limit: Option<Duration>,
}

const REPL_HELP: &str = "\
A form ends with `;` and may span several lines. `help;` lists the commands of a session, `help sum;` describes a
function. Tab completes names, Ctrl-C interrupts an evaluation or clears the line, Ctrl-D ends the session.

The history of the last 1000 forms is in `broadloom/nesl_history` in $XDG_STATE_HOME or ~/.local/state. Forms that
begin with a blank are not saved.

Examples:
  broadloom repl
  broadloom repl examples/nesl/quicksort.nesl
  echo '{x * x : x in [0:5]};' | broadloom repl";

/// Options of `check`.
#[derive(Debug, Args)]
#[command(after_help = format!("{ARGUMENTS}\n\n{CHECK_EXAMPLES}"), override_usage = CHECK_USAGE)]
pub struct Check {
    #[command(flatten)]
    pub launch: LaunchOptions,
    /// Compiled CUDA program with its arguments, instead of a PTX file
    #[arg(last = true, value_name = "PROGRAM", conflicts_with_all = LAUNCH)]
    pub program: Vec<OsString>,
    /// Steady states of a StreamIt program to run [default: 10]
    #[arg(long, short, value_name = "COUNT")]
    pub iterations: Option<u64>,
    /// The accuracy of floats
    #[command(flatten)]
    pub math: Math,
    /// Report threads that end before a barrier of their block. GPUs before Volta (2017) hang there; later ones go on
    #[arg(long)]
    pub strict_barriers: bool,
    /// Write the findings as JSON to this file; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Options of `exec`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  broadloom exec -- ./vectorAdd
  broadloom exec --device interp -- ./program its arguments
  broadloom exec --stats --trace out.json -- ./program

The program must use the shared CUDA runtime and contain PTX:
  nvcc -cudart shared -gencode arch=compute_75,code=compute_75 program.cu -o program

The exit code is the program's.")]
pub struct Exec {
    /// Device: `cpu`, `cpu:strict` (every access of a kernel is checked), `interp`, or `cuda` for a GPU with NVIDIA's libraries [default: $BROADLOOM_DEVICE, or cpu]
    #[arg(long, short, value_name = "NAME")]
    pub device: Option<String>,
    /// Write a trace of calls and kernels to this file, for Perfetto (ui.perfetto.dev) or Chrome (about:tracing)
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Print the number and time of kernel launches and API calls
    #[arg(long)]
    pub stats: bool,
    /// Time limit in seconds for the program, and for each of its launches
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub time_limit: Option<Duration>,
    /// Program to run
    #[arg(required = true)]
    pub program: OsString,
    /// Arguments of the program
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}

/// Options of `ptxas`: those of NVIDIA's assembler.
#[derive(Debug, Args)]
pub struct Ptxas {
    /// PTX file, `-o` and the output file; options for machine code are ignored
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
    pub words: Vec<OsString>,
}

/// Options of `devices`.
#[derive(Debug, Args)]
#[command(after_help = "Bandwidth and launch cost are measured; this takes up to a second per device.")]
pub struct Devices {
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `cache`.
#[derive(Debug, Args)]
#[command(
    after_help = "The cache folder is $BROADLOOM_CACHE, or `broadloom` in $XDG_CACHE_HOME or ~/.cache. BROADLOOM_CACHE=off disables it."
)]
pub struct Cache {
    /// What to do with the entries
    #[arg(value_enum, default_value_t = CacheAction::Stats)]
    pub action: CacheAction,
    /// Restrict to the entries of this device
    #[arg(long, short, value_name = "NAME", value_parser = PossibleValuesParser::new(CacheFolder::devices()))]
    pub device: Option<String>,
}

/// Actions on the cache of compiled kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CacheAction {
    /// Show its folder, size, hits and misses with reasons
    Stats,
    /// Remove all entries
    Clear,
}

/// Options of `explain`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  broadloom explain examples/reduce.ptx               its kernels and memory
  broadloom explain examples/reduce.ptx --emit ptx    the module, printed back
  broadloom explain examples/reduce.ptx --emit ssa    its functions in SSA form
  broadloom explain examples/reduce.ptx --emit asm --block 256    machine code for blocks of 256 threads
  broadloom explain examples/blur.graph --emit ptx    the kernels of a graph, of a NESL or of a StreamIt program

`linearised`, `llvm`, `llvm-opt` and `asm` show the code for the CPU: one kernel for one block shape.")]
pub struct Explain {
    /// PTX file, `-` for standard input; or a `.graph`, `.str` or `.nesl` file (a NESL program is executed to show its kernels)
    pub file: PathBuf,
    /// Device for which a program or graph is planned
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// The accuracy of floats
    #[command(flatten)]
    pub math: Math,
    #[command(flatten)]
    pub prefetch: Prefetch,
    /// Print the module in this form, at one stage of compilation
    #[arg(long, value_parser = forms(), value_name = "FORM")]
    pub emit: Option<Emit>,
    /// Name of the kernel, for forms that show one; optional if the module has one
    #[arg(long, short, value_name = "NAME", requires = "emit")]
    pub kernel: Option<String>,
    /// Number of threads in a block that the passes may assume
    #[arg(long, value_name = "X[,Y[,Z]]", requires = "emit", value_parser = parse_block)]
    pub block: Option<[u32; 3]>,
    #[command(flatten)]
    pub limit: Limit,
}

/// Output form of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit {
    /// PTX, as NVIDIA's tools accept it.
    Ptx,
    /// Output of the passes after this many stages.
    Stage(usize),
    /// Code for the CPU.
    Cpu(Stage),
    /// VCODE of a NESL program.
    Vcode,
    /// Flattened code of a NESL program.
    Flat,
    /// The graph of a StreamIt program.
    Dot,
    /// The restructured graph of a StreamIt program.
    Kernels,
    /// The graph of a StreamIt program as a picture.
    Svg,
    /// The restructured graph of a StreamIt program as a picture.
    KernelsSvg,
}

/// Stages of compilation for the CPU, by name.
const CPU_STAGES: [(&str, Stage, &str); 4] = [
    ("linearised", Stage::Linearised, "a kernel with uniform branches only, the input of the CPU back end"),
    ("llvm", Stage::Llvm, "its vector code in LLVM's form, before LLVM's passes"),
    ("llvm-opt", Stage::Optimised, "its vector code after LLVM's passes"),
    ("asm", Stage::Assembly, "the machine code of this host, or of the CPU that BROADLOOM_CPU names"),
];

/// Returns the parser of output forms: PTX, then the stages of the passes in their order.
fn forms() -> impl TypedValueParser<Value = Emit> {
    let stages = || STAGES.iter().chain([&BACK]);
    let ptx = PossibleValue::new("ptx").help("PTX, as accepted by NVIDIA's tools");
    let values = stages().map(|stage| PossibleValue::new(stage.name).help(stage.summary));
    let compiled = CPU_STAGES.map(|(name, _, summary)| PossibleValue::new(name).help(summary));
    let others = [
        PossibleValue::new("flat").help("NESL: flattened code, with vectors by name and index space"),
        PossibleValue::new("vcode").help("NESL: VCODE, which `run` accepts"),
        PossibleValue::new("dot").help("StreamIt: stream graph in the DOT language"),
        PossibleValue::new("kernels").help("StreamIt: graph of kernels in the DOT language"),
        PossibleValue::new("svg").help("StreamIt: stream graph as an SVG picture"),
        PossibleValue::new("kernels-svg").help("StreamIt: graph of kernels as an SVG picture"),
    ];
    let parser = PossibleValuesParser::new([ptx].into_iter().chain(values).chain(compiled).chain(others));
    parser.map(move |name| {
        let compiled = CPU_STAGES.iter().find(|(stage, _, _)| *stage == name);
        match (stages().position(|stage| stage.name == name), compiled) {
            (Some(index), _) => Emit::Stage(index),
            (None, Some((_, stage, _))) => Emit::Cpu(*stage),
            (None, None) if name == "vcode" => Emit::Vcode,
            (None, None) if name == "flat" => Emit::Flat,
            (None, None) if name == "dot" => Emit::Dot,
            (None, None) if name == "kernels" => Emit::Kernels,
            (None, None) if name == "svg" => Emit::Svg,
            (None, None) if name == "kernels-svg" => Emit::KernelsSvg,
            (None, None) => Emit::Ptx,
        }
    })
}

fn parse_block(text: &str) -> Result<[u32; 3], InvalidValue> {
    let wrong = || InvalidValue::new(text, "up to three numbers above 0");
    let numbers = text.split(',').map(|word| word.trim().parse().ok().filter(|number| *number > 0));
    let numbers: Vec<u32> = numbers.collect::<Option<_>>().ok_or_else(wrong)?;
    match numbers[..] {
        [x] => Ok([x, 1, 1]),
        [x, y] => Ok([x, y, 1]),
        [x, y, z] => Ok([x, y, z]),
        _ => Err(wrong()),
    }
}

/// Options of `effect`.
#[derive(Debug, Args)]
#[command(after_help = EFFECT_EXAMPLES, override_usage = EFFECT_USAGE)]
pub struct Effect {
    /// Effects, separated by commas; or `list`, `help`, or `noise`, which estimates the noise of images
    #[arg(value_name = "EFFECTS")]
    pub name: String,
    /// Input images, then the output image: .png, .jpg, .tif, .exr, .webp, .hdr, .dpx, .pfm; `%04d` or `####` is the frame number, `-` standard input or output
    #[arg(value_name = "FILES")]
    pub files: Vec<PathBuf>,
    /// Parameter of an effect; in a chain `EFFECT.name=value`, or `2.name=value` for the second effect
    #[arg(long = "set", short, value_name = "NAME=VALUE")]
    pub settings: Vec<String>,
    /// Device [default: a GPU if there is one, else cpu]
    #[arg(long, short, value_name = "NAME", conflicts_with = "reference")]
    pub device: Option<String>,
    /// Compute with the naive reference implementation on the host
    #[arg(long)]
    pub reference: bool,
    /// Planes to change; others are copied
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub planes: Vec<String>,
    /// Part of the result to compute: its first column and row, from 0,0 at the top left (of an EXR in its own coordinates), and its size
    #[arg(long, value_name = "X,Y,WIDTH,HEIGHT", value_parser = parse_region, allow_hyphen_values = true)]
    pub region: Option<Rect>,
    /// Convert sRGB to linear light before the effects, and back for integer output files
    #[arg(long)]
    pub linear: bool,
    /// Convert the colours of the result to this space, as its file says
    #[arg(long, value_enum, value_name = "SPACE", conflicts_with = "linear")]
    pub to: Option<Space>,
    /// Turn the pixels of the input images upright, as their orientation says, before the effects
    #[arg(long)]
    pub auto_orient: bool,
    /// Sample type of the output [default: that of the first image]
    #[arg(long, value_enum, value_name = "TYPE")]
    pub depth: Option<Depth>,
    /// Effort of lossless compression
    #[arg(long, value_enum, value_name = "EFFORT", default_value = "fast")]
    pub compression: Effort,
    /// Quality of JPEG files, from 1 to 100
    #[arg(long, value_name = "QUALITY", default_value_t = 90, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub quality: u8,
    /// Format of the output [default: that of its name; PNG for `-`]
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
    pub format: Option<Format>,
    /// Skip frames that cannot be read, computed or written; the command then ends with 1
    #[arg(long)]
    pub keep_going: bool,
    /// Frames of a sequence to compute [default: all existing files]
    #[arg(long, value_name = "FIRST-LAST", value_parser = parse_frames)]
    pub frames: Option<(u64, u64)>,
    /// Device memory limit, such as 512M; larger images are computed in tiles [default: most of the memory]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, conflicts_with = "reference")]
    pub memory: Option<u64>,
    /// Read, compute and write this many rows at a time, where effects and formats allow it; 0 takes the whole image [default: large images in bands of a suitable size]
    #[arg(long, value_name = "ROWS", conflicts_with = "reference")]
    pub rows: Option<u32>,
    /// Switch techniques of the optimiser off: fuse, contract, chain, carry, stage, transpose, cancel, split, realign, several, shape, order; or all
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = parse_technique, conflicts_with = "reference")]
    pub without: Vec<String>,
    /// Show the decisions of the optimiser and the kernels of the first frame
    #[arg(long, conflicts_with = "reference")]
    pub explain: bool,
    /// Print the kernels of the first frame in this form
    #[arg(long, value_name = "FORM", value_parser = ["ptx"], conflicts_with_all = ["reference", "explain"])]
    pub emit: Option<String>,
    /// Print the times of reading, computing and writing, and of each kernel of a small image
    #[arg(long)]
    pub stats: bool,
    /// Measure what each technique of the optimiser gains: compiles and runs the first frame without each of them
    #[arg(long, conflicts_with = "reference")]
    pub compare: bool,
    /// Print the list, or the help of one effect, as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub limit: Limit,
}

/// Spaces of colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Space {
    /// The primaries and the curve of sRGB
    Srgb,
    /// Linear light with the primaries of sRGB
    Linear,
    /// Display P3
    P3,
    /// Rec. 709, with the curve of cameras
    Rec709,
    /// ACES2065-1: linear light with the primaries AP0
    Aces,
}

/// Efforts of lossless compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Effort {
    /// Quick to write, somewhat larger
    Fast,
    /// The usual effort of the format
    Balanced,
    /// As small as possible
    Best,
}

/// Sample types of output files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Depth {
    /// 8-bit integers
    #[value(name = "8")]
    Eight,
    /// 10-bit integers, of a DPX
    #[value(name = "10")]
    Ten,
    /// 12-bit integers, of a DPX
    #[value(name = "12")]
    Twelve,
    /// 16-bit integers
    #[value(name = "16")]
    Sixteen,
    /// 16-bit floats
    Half,
    /// 32-bit floats
    Float,
}

const EFFECT_USAGE: &str = "\
broadloom effect <EFFECTS> <IMAGE>… <RESULT> [--set NAME=VALUE]… [OPTIONS]
       broadloom effect list [--json]
       broadloom effect help <EFFECT>
       broadloom effect noise <IMAGE>…";

const EFFECT_EXAMPLES: &str = "\
Examples:
  broadloom effect gaussian in.exr out.exr --set sigma=12
  broadloom effect median,unsharp in.png out.png --set radius=1 --set amount=0.5
  broadloom effect gaussian,unsharp in.png out.png --set gaussian.sigma=1 --set unsharp.sigma=4
  broadloom effect degrain in.exr part.exr --region 100,50,640,480
  broadloom effect resize,unsharp - - --set width=1920 --format jpg < in.png > out.jpg
  broadloom effect temporal_degrain in.%04d.exr out.%04d.exr --frames 1-100 --stats

docs/EFFECTS.md describes every effect with its formula.";

/// Value of an option that is not of its form.
#[derive(Clone, Debug, thiserror::Error)]
#[error("`{text}` is not {expected}")]
pub struct InvalidValue {
    text: String,
    expected: String,
}

impl InvalidValue {
    fn new(text: &str, expected: impl Into<String>) -> InvalidValue {
        InvalidValue { text: text.to_owned(), expected: expected.into() }
    }
}

fn parse_format(text: &str) -> Result<Format, InvalidValue> {
    Format::of_extension(text).ok_or_else(|| InvalidValue::new(text, "png, jpg, tif, exr, webp, hdr or pfm"))
}

/// Maximum number of frames of a call.
const MAX_FRAMES: u64 = 1_000_000;

fn parse_frames(text: &str) -> Result<(u64, u64), InvalidValue> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let ends = first.trim().parse().ok().zip(last.trim().parse().ok());
    let is_sound = |(first, last): &(u64, u64)| first <= last && last - first < MAX_FRAMES;
    let expected = || format!("FIRST-LAST, such as 1-100, with at most {MAX_FRAMES} frames");
    ends.filter(is_sound).ok_or_else(|| InvalidValue::new(text, expected()))
}

fn parse_region(text: &str) -> Result<Rect, InvalidValue> {
    let numbers: Option<Vec<i64>> = text.split(',').map(|word| word.trim().parse().ok()).collect();
    let region = match numbers.as_deref() {
        Some(&[x, y, width, height]) => i32::try_from(x).ok().zip(i32::try_from(y).ok()).and_then(|(x, y)| {
            let [width, height] = [width, height].map(|side| u32::try_from(side).ok().filter(|side| *side > 0));
            Rect::new(x, y, width?, height?).checked().ok()
        }),
        _ => None,
    };
    region.ok_or_else(|| InvalidValue::new(text, "X,Y,WIDTH,HEIGHT with sides of 1 or more, such as 100,50,640,480"))
}

fn parse_technique(text: &str) -> Result<String, InvalidValue> {
    match text == "all" || Techniques::NAMES.contains(&text) {
        true => Ok(text.to_owned()),
        false => {
            Err(InvalidValue::new(text, format!("a technique; the techniques are {}, and all", Techniques::NAMES.join(", "))))
        }
    }
}

fn parse_bytes(text: &str) -> Result<u64, InvalidValue> {
    let units = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
    let unit = units.iter().find(|(letter, _)| text.ends_with(*letter));
    let digits = unit.map_or(text, |_| &text[..text.len() - 1]);
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << unit.map_or(0, |(_, shift)| *shift)));
    bytes.ok_or_else(|| InvalidValue::new(text, "a number of bytes, such as 512M"))
}

/// Options of `bench`.
#[derive(Debug, Args)]
#[command(after_help = format!("{}\n{BENCH_EXAMPLES}", benchmarks()))]
pub struct Bench {
    /// Groups or benchmarks [default: all]; `GROUP/BENCHMARK` if two groups share the name
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Device [default: the first in `broadloom devices`]
    #[arg(long, short, value_name = "NAME")]
    pub device: Option<String>,
    /// Run each once at a tiny size, to test that it works
    #[arg(long)]
    pub quick: bool,
    /// Run without the C++ programs of comparison
    #[arg(long)]
    pub no_peers: bool,
    /// Python interpreter whose NumPy, Numba, JAX, PyTorch, Halide and Awkward Array are compared too, where installed
    #[arg(long, value_name = "INTERPRETER")]
    pub python: Option<PathBuf>,
    /// Problem size for kernels and arrays: elements, or points per side [default: that of each benchmark]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub size: Option<u32>,
    #[command(flatten)]
    pub prefetch: Prefetch,
    /// Write the figures as JSON to this file; `-` is standard output, without the table
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a trace of five repetitions of each benchmark to FOLDER/NAME.json, for Perfetto or Chrome
    #[arg(long, value_name = "FOLDER")]
    pub trace: Option<PathBuf>,
    /// Start no child processes; benchmarks that need one are left out
    #[arg(long, hide = true)]
    pub in_process: bool,
    #[command(flatten)]
    pub limit: Limit,
}

const BENCH_EXAMPLES: &str = "\
Examples:
  broadloom bench kernels                    kernels from CUDA C++ against C++ with OpenMP
  broadloom bench nbody mandelbrot --json figures.json
  broadloom bench nesl --python python3      NESL against C++ with OpenMP, and against Awkward Array
  broadloom bench --quick --device interp kernels

Exit code 1 if a result is wrong.";

/// Lists the groups and their benchmarks for the help.
fn benchmarks() -> String {
    let mut text = "Benchmarks:\n".to_owned();
    let groups = broadloom_bench::groups();
    let width = groups.iter().map(|(group, _)| group.len()).max().unwrap_or(0);
    for (group, names) in groups {
        let mut line = format!("  {group:<width$}  ");
        for name in names {
            if line.len() + name.len() > 100 {
                text += line.trim_end();
                text.push('\n');
                line = " ".repeat(width + 4);
            }
            line += name;
            line.push(' ');
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

fn parse_seconds(text: &str) -> Result<Duration, InvalidValue> {
    let seconds = text.strip_suffix('s').unwrap_or(text).parse().ok();
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| InvalidValue::new(text, "a number of seconds"))
}

/// Name under which the command acts as NVIDIA's assembler.
pub const ASSEMBLER: &str = "ptxas";

/// Returns the words of the call. If the command is called by the name of NVIDIA's assembler, inserts the
/// subcommand.
pub fn called_as(words: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    let mut words = words.peekable();
    let name = words.peek().and_then(|word| Path::new(word).file_name());
    let assembler = name == Some(OsStr::new(ASSEMBLER));
    let inserted = assembler.then(|| [ASSEMBLER.into(), "--".into()]);
    words.next().into_iter().chain(inserted.into_iter().flatten()).chain(words)
}

/// Returns the words of the call. Splits `--arg BUFFER =FILE` into two arguments: `=FILE` belongs to the
/// buffer before it.
pub fn split_output_arguments(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = vec![];
    let mut ours = true;
    for word in words {
        // Words after `--` belong to another program.
        ours &= word != "--";
        let before = |back: usize| joined.len().checked_sub(back).map(|index| joined[index].as_encoded_bytes());
        let is_behind_buffer = before(2) == Some(b"--arg") || before(1).is_some_and(|word| word.starts_with(b"--arg="));
        if ours && is_behind_buffer && word.as_encoded_bytes().starts_with(b"=") {
            joined.push("--arg".into());
        }
        joined.push(word);
    }
    joined
}
