//! The command line.

use crate::terminal::Color;
use broadloom::cpu::compile::Stage;
use broadloom::device::CacheFolder;
use broadloom::effect::plan::Options as Techniques;
use broadloom::launch::parse_extent;
use broadloom::transform::pipeline::{BACK, STAGES};
use clap::builder::styling::{AnsiColor, Styles};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Kernels for a grid of threads, run, checked and explained without a GPU.
#[derive(Debug, Parser)]
#[command(name = "broadloom", version, styles = STYLES, max_term_width = 110, after_help = EXAMPLES)]
pub struct Options {
    /// Use colours: `auto` is on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN", display_order = 100)]
    pub color: Color,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  broadloom run examples/saxpy.ptx --grid 2 --block 4 --arg f32:10 --arg f32[6]:iota --arg f32[6]:iota= --arg u32:6
  broadloom check examples/race.ptx --block 64 --arg f32[64]:iota --arg f32[1]:zero --arg i32:64
  broadloom explain examples/saxpy.ptx

Exit codes: 0 done; 1 the program failed or a check found something; 2 the call was wrong; 3 the machine could not.
`broadloom help COMMAND` says more.";

const ARGUMENTS: &str = "\
Forms of an argument:
  i32:7  f32:0.5  b64:0xFF        a number; types are i8 … i64, u8 … u64, b8 … b64, f16, bf16, f32, f64
  f32[1024]:zero                  a buffer of zeros; also :iota (0, 1, 2, …), :random, :random(SEED), :uninit
  u32[4]:1,2,3,4  f32[8]:0*4,1*4  a buffer with these values
  @in.npy                         a buffer with the contents of a file
  f32[32,32]:zero=                … and `=` behind a buffer shows it afterwards
  f32[32,32]:zero=out.npy         … and `=FILE` writes it to a file
  '{i32:1; f32[4]:zero}'          a struct: numbers and addresses of buffers, laid out as C does
Some shells take brackets for patterns: quote such words, 'f32[1024]:zero'.";

const RUN_EXAMPLES: &str = "\
Examples:
  broadloom run examples/saxpy.ptx --grid 2 --block 4 --arg f32:10 --arg f32[6]:iota --arg f32[6]:iota= --arg u32:6
  broadloom run examples/reduce.ptx --grid 16 --block 256 --arg f32[4000]:iota --arg f32[1]:zero= --arg i32:4000 --stats
  broadloom run examples/mandelbrot.ptx --block 100 --arg i32:36 --arg i32:200
  broadloom run examples/nesl/quicksort.nesl
  broadloom explain examples/nesl/quicksort.nesl --emit vcode > quicksort.vcode
  broadloom run quicksort.vcode
  broadloom run examples/streamit/low_pass.str -i 10";

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

Exit code 1 when something is found, or a program fails; 0 when not.";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a kernel, or a NESL or StreamIt program
    Run(Run),
    /// Type NESL and see the answers: an interactive session, or a script on standard input
    Repl(Repl),
    /// Run a kernel and report what it does wrong: races, stray accesses, uninitialised reads, misused barriers, leaks
    Check(Check),
    /// Run a compiled CUDA program, unchanged, without a GPU
    Exec(Exec),
    /// Say what is in a module: kernels, parameters, memory, instructions
    Explain(Explain),
    /// Stand in for NVIDIA's assembler: check PTX and copy it, for programs that call `ptxas` on their way to a module
    #[command(disable_help_flag = true)]
    Ptxas(Ptxas),
    /// Apply effects to images: blur, sharpen, degrain, resize and others
    Effect(Effect),
    /// Measure how fast kernels run here, against the same jobs in C++
    Bench(Bench),
    /// List the devices that are here, and what they can do
    Devices(Devices),
    /// Look at, or empty, the folder in which compiled kernels are kept between runs
    Cache(Cache),
}

/// A launch: which kernel of which file, over which grid, with which arguments.
#[derive(Debug, Args)]
pub struct LaunchOptions {
    /// A file of PTX, `-` for standard input; `run` takes a `.nesl`, `.vcode`, `.str` or `.graph` file too
    #[arg(required = true)]
    pub file: Option<PathBuf>,
    /// The kernel; not needed when there is only one
    #[arg(long, short, value_name = "NAME")]
    pub kernel: Option<String>,
    /// Blocks of the grid [default: 1]
    #[arg(long, short, value_name = "X[,Y,Z]", value_parser = parse_extent)]
    pub grid: Option<[u32; 3]>,
    /// Threads of a block [default: what the kernel requires, or 1]
    #[arg(long, short, value_name = "X[,Y,Z]", value_parser = parse_extent)]
    pub block: Option<[u32; 3]>,
    /// Blocks of a cluster, for a kernel that does not say so itself
    #[arg(long, value_name = "X[,Y,Z]", value_parser = parse_extent)]
    pub cluster: Option<[u32; 3]>,
    /// An argument, once for each parameter; see below
    #[arg(long = "arg", short, value_name = "ARG")]
    pub arguments: Vec<String>,
    /// Dynamic shared memory of a block, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub shared: u32,
    /// All blocks at the same time, for grid-wide barriers
    #[arg(long)]
    pub cooperative: bool,
    /// Give up after so many seconds, compilation included; for a program, the time of each launch
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub time_limit: Option<Duration>,
    /// The device; `broadloom devices` lists them, the default first
    #[arg(long, short, value_name = "NAME")]
    pub device: Option<String>,
}

/// Options of `run`.
#[derive(Debug, Args)]
#[command(after_help = format!("{ARGUMENTS}\n\n{RUN_EXAMPLES}"))]
pub struct Run {
    /// The launch
    #[command(flatten)]
    pub launch: LaunchOptions,
    /// Further files of a StreamIt program
    #[arg(value_name = "MORE")]
    pub more: Vec<PathBuf>,
    /// Iterations of a StreamIt program, after its initial schedule [default: without end]
    #[arg(long, short, value_name = "N")]
    pub iterations: Option<u64>,
    /// Most iterations of a StreamIt program that a launch on a device takes together [default: what suits the device]
    #[arg(long, value_name = "N")]
    pub latency: Option<u64>,
    /// Bits of the ints of a NESL or VCODE program [default: 32]
    #[arg(long, value_name = "BITS", value_parser = PossibleValuesParser::new(["32", "64"]))]
    pub int: Option<String>,
    /// Bits of the floats of a NESL or VCODE program [default: 64]
    #[arg(long, value_name = "BITS", value_parser = PossibleValuesParser::new(["32", "64"]))]
    pub float: Option<String>,
    /// Elementary functions, divisions and square roots of 32-bit floats of a NESL or VCODE program on a device [default: accurate]
    #[arg(long, value_name = "PRECISION", value_parser = PossibleValuesParser::new(["accurate", "fast"]))]
    pub math: Option<String>,
    /// Say what was compiled and executed, how, and how long it took
    #[arg(long)]
    pub stats: bool,
    /// Write what happened when to this file, for Perfetto (ui.perfetto.dev) or Chrome (about:tracing)
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}

/// Options of `repl`.
#[derive(Debug, Args)]
#[command(after_help = REPL_HELP)]
pub struct Repl {
    /// Files to load first, silently
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The device for large vectors; `broadloom devices` lists them [default: cpu]
    #[arg(long, short, value_name = "NAME")]
    pub device: Option<String>,
    /// Bits of ints [default: 32]
    #[arg(long, value_name = "BITS", value_parser = PossibleValuesParser::new(["32", "64"]))]
    pub int: Option<String>,
    /// Bits of floats [default: 64]
    #[arg(long, value_name = "BITS", value_parser = PossibleValuesParser::new(["32", "64"]))]
    pub float: Option<String>,
    /// Elementary functions, divisions and square roots of 32-bit floats on a device [default: accurate]
    #[arg(long, value_name = "PRECISION", value_parser = PossibleValuesParser::new(["accurate", "fast"]))]
    pub math: Option<String>,
    /// Keep no history of lines
    #[arg(long)]
    pub no_history: bool,
}

const REPL_HELP: &str = "\
A form ends with `;` and may have several lines. `help;` lists the commands of a session, `help sum;` describes a
function. Tab completes names, Ctrl-C stops an evaluation or drops the line, Ctrl-D ends the session.

The last 1000 forms are kept in `broadloom/nesl_history` in $XDG_STATE_HOME or ~/.local/state. Forms that begin with a
blank are not kept.

Examples:
  broadloom repl
  broadloom repl examples/nesl/quicksort.nesl
  echo '{x * x : x in [0:5]};' | broadloom repl";

/// Options of `check`.
#[derive(Debug, Args)]
#[command(after_help = format!("{ARGUMENTS}\n\n{CHECK_EXAMPLES}"), override_usage = CHECK_USAGE)]
pub struct Check {
    /// The launch
    #[command(flatten)]
    pub launch: LaunchOptions,
    /// A compiled CUDA program and what it is given, instead of a file of PTX
    #[arg(last = true, value_name = "PROGRAM", conflicts_with_all = LAUNCH)]
    pub program: Vec<OsString>,
    /// Of a StreamIt program, run so many steady states [default: 10]
    #[arg(long, short, value_name = "COUNT")]
    pub iterations: Option<u64>,
    /// Write the findings to this file, as JSON; `-` is standard output
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

The program has to be linked with the shared runtime and to carry PTX:
  nvcc -cudart shared -gencode arch=compute_75,code=compute_75 program.cu -o program

The exit code is the program's.")]
pub struct Exec {
    /// The device: `cpu`, `interp`, or `cuda` for a GPU with NVIDIA's own libraries [default: $BROADLOOM_DEVICE, or cpu]
    #[arg(long, short, value_name = "NAME")]
    pub device: Option<String>,
    /// Write what happened when to this file, calls and kernels, for Perfetto (ui.perfetto.dev) or Chrome (about:tracing)
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Say how often kernels ran and functions were called, and how long that took
    #[arg(long)]
    pub stats: bool,
    /// Give up on a launch after so many seconds, compilation included
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub time_limit: Option<Duration>,
    /// The program
    #[arg(required = true)]
    pub program: OsString,
    /// What it is given
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}

/// Options of `ptxas`: those of NVIDIA's assembler.
#[derive(Debug, Args)]
pub struct Ptxas {
    /// A file of PTX, `-o` and another one; options about machine code are passed over
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
    pub words: Vec<OsString>,
}

/// Options of `devices`.
#[derive(Debug, Args)]
#[command(after_help = "Bandwidth and launch cost are measured, which takes up to a second for each device.")]
pub struct Devices {
    /// Write it as JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `cache`.
#[derive(Debug, Args)]
#[command(
    after_help = "The folder is $BROADLOOM_CACHE, or `broadloom` in $XDG_CACHE_HOME or ~/.cache. With BROADLOOM_CACHE=off nothing is kept."
)]
pub struct Cache {
    /// What to do with it
    #[arg(value_enum, default_value_t = CacheAction::Stats)]
    pub action: CacheAction,
    /// Only what is kept for this device
    #[arg(long, short, value_name = "NAME", value_parser = PossibleValuesParser::new(CacheFolder::devices()))]
    pub device: Option<String>,
}

/// What to do with the folder of compiled kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CacheAction {
    /// Say where it is, how much is in it, how often something was found there and why not
    Stats,
    /// Remove what is in it
    Clear,
}

/// Options of `explain`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  broadloom explain examples/reduce.ptx               what is in it
  broadloom explain examples/reduce.ptx --emit ptx    the module, printed back
  broadloom explain examples/reduce.ptx --emit ssa    its functions when they have become SSA form
  broadloom explain examples/reduce.ptx --emit asm --block 256    machine code of a kernel for blocks of 256 threads

`linearised`, `llvm`, `llvm-opt` and `asm` show what the CPU runs: one kernel, for one shape of block.")]
pub struct Explain {
    /// A file of PTX, `-` for standard input; a `.graph` file; or a `.nesl` file, which is executed: its types, its VCODE, its kernels
    pub file: PathBuf,
    /// The device for which a graph or a NESL program is planned
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Print the module in this form instead: as PTX, or as the passes leave it at a stage of their work
    #[arg(long, value_parser = forms(), value_name = "FORM")]
    pub emit: Option<Emit>,
    /// The kernel, where a form shows one; not needed when there is only one
    #[arg(long, short, value_name = "NAME", requires = "emit")]
    pub kernel: Option<String>,
    /// Threads of a block, which the passes may rely on
    #[arg(long, value_name = "X[,Y[,Z]]", requires = "emit", value_parser = parse_block)]
    pub block: Option<[u32; 3]>,
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
    ("linearised", Stage::Linearised, "a kernel whose branches are all uniform, as the CPU takes it"),
    ("llvm", Stage::Llvm, "its vector code, as it is given to LLVM"),
    ("llvm-opt", Stage::Optimised, "the same behind LLVM's passes"),
    ("asm", Stage::Assembly, "the machine code of this host, or of the CPU that BROADLOOM_CPU names"),
];

/// Returns the parser of output forms: PTX, then the stages of the passes in their order.
fn forms() -> impl TypedValueParser<Value = Emit> {
    let stages = || STAGES.iter().chain([&BACK]);
    let ptx = PossibleValue::new("ptx").help("PTX, as NVIDIA's tools take it");
    let values = stages().map(|stage| PossibleValue::new(stage.name).help(stage.summary));
    let compiled = CPU_STAGES.map(|(name, _, summary)| PossibleValue::new(name).help(summary));
    let others = [
        PossibleValue::new("flat").help("of a NESL program, its flattened code: vectors with names and index spaces"),
        PossibleValue::new("vcode").help("of a NESL program, its VCODE, which `run` takes"),
        PossibleValue::new("dot").help("of a StreamIt program, its graph in the DOT language"),
        PossibleValue::new("kernels").help("of a StreamIt program, the graph of its kernels in the DOT language"),
        PossibleValue::new("svg").help("of a StreamIt program, its graph as a picture"),
        PossibleValue::new("kernels-svg").help("of a StreamIt program, the graph of its kernels as a picture"),
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

fn parse_block(text: &str) -> Result<[u32; 3], String> {
    let wrong = || format!("`{text}` is not up to three numbers above 0");
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
    /// Effects with commas between them; or `list`, or `help`
    #[arg(value_name = "EFFECTS")]
    pub name: String,
    /// Images that are read, then the one that is written: .png, .tif, .exr, .pfm; `%04d` stands for the number of a frame
    #[arg(value_name = "FILES")]
    pub files: Vec<PathBuf>,
    /// Set a parameter; in a chain `EFFECT.name=value`, or `2.name=value` for the second effect
    #[arg(long = "set", short, value_name = "NAME=VALUE")]
    pub settings: Vec<String>,
    /// The device [default: a GPU where there is one, else cpu]
    #[arg(long, short, value_name = "NAME", conflicts_with = "reference")]
    pub device: Option<String>,
    /// Compute by the naive references, on the host
    #[arg(long)]
    pub reference: bool,
    /// Change these planes only; the others stay
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub planes: Vec<String>,
    /// Convert sRGB to linear light before the effects, and back for a file of integers
    #[arg(long)]
    pub linear: bool,
    /// Samples of the result [default: those of the first image]
    #[arg(long, value_enum, value_name = "TYPE")]
    pub depth: Option<Depth>,
    /// Frames of a sequence [default: those that exist]
    #[arg(long, value_name = "FIRST-LAST", value_parser = parse_frames)]
    pub frames: Option<(u64, u64)>,
    /// Memory of the device that may be used, as in 512M; larger images are computed in tiles [default: most of it]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, conflicts_with = "reference")]
    pub memory: Option<u64>,
    /// Switch techniques of the optimiser off: fuse, contract, carry, stage, transpose, cancel, split, realign, several, shape, order; or all
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = parse_technique, conflicts_with = "reference")]
    pub without: Vec<String>,
    /// Show the decisions of the optimiser and the kernels of the first frame
    #[arg(long, conflicts_with = "reference")]
    pub explain: bool,
    /// Say how long reading, effects, each kernel and writing took, and what each optimisation gains
    #[arg(long)]
    pub stats: bool,
    /// Write the list, or the help of one effect, as JSON
    #[arg(long)]
    pub json: bool,
}

/// The samples of a file that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Depth {
    /// Integers of 8 bits
    #[value(name = "8")]
    Eight,
    /// Integers of 16 bits
    #[value(name = "16")]
    Sixteen,
    /// Floating point of 16 bits
    Half,
    /// Floating point of 32 bits
    Float,
}

const EFFECT_USAGE: &str = "\
broadloom effect <EFFECTS> <IMAGE>… <RESULT> [--set NAME=VALUE]… [OPTIONS]
       broadloom effect list [--json]
       broadloom effect help <EFFECT>";

const EFFECT_EXAMPLES: &str = "\
Examples:
  broadloom effect gaussian in.exr out.exr --set sigma=12
  broadloom effect median,unsharp in.png out.png --set radius=1 --set amount=0.5
  broadloom effect gaussian,unsharp in.png out.png --set gaussian.sigma=1 --set unsharp.sigma=4
  broadloom effect temporal_degrain in.%04d.exr out.%04d.exr --frames 1-100 --stats

docs/EFFECTS.md has every effect with its formula.";

/// Maximum number of frames of a call.
const MAX_FRAMES: u64 = 1_000_000;

fn parse_frames(text: &str) -> Result<(u64, u64), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let ends = first.trim().parse().ok().zip(last.trim().parse().ok());
    let is_sound = |(first, last): &(u64, u64)| first <= last && last - first < MAX_FRAMES;
    ends.filter(is_sound).ok_or_else(|| format!("`{text}` is not FIRST-LAST, such as 1-100, with at most {MAX_FRAMES} frames"))
}

fn parse_technique(text: &str) -> Result<String, String> {
    match text == "all" || Techniques::NAMES.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(format!("the techniques are {}, and all", Techniques::NAMES.join(", "))),
    }
}

fn parse_bytes(text: &str) -> Result<u64, String> {
    let units = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
    let unit = units.iter().find(|(letter, _)| text.ends_with(*letter));
    let digits = unit.map_or(text, |_| &text[..text.len() - 1]);
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << unit.map_or(0, |(_, shift)| *shift)));
    bytes.ok_or_else(|| format!("`{text}` is no number of bytes, such as 512M"))
}

/// Options of `bench`.
#[derive(Debug, Args)]
#[command(after_help = format!("{}\n{BENCH_EXAMPLES}", benchmarks()))]
pub struct Bench {
    /// Groups or benchmarks, all when there are none; `GROUP/BENCHMARK` where two groups have the name
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// The device [default: the first that `broadloom devices` lists]
    #[arg(long, short, value_name = "NAME")]
    pub device: Option<String>,
    /// Tiny sizes, once each: whether it works, not how fast
    #[arg(long)]
    pub quick: bool,
    /// Without the C++ programs to compare with
    #[arg(long)]
    pub no_peers: bool,
    /// Compare arrays with NumPy, Numba, JAX, PyTorch and Halide too, ragged lists with Awkward Array, as far as this Python has them
    #[arg(long, value_name = "INTERPRETER")]
    pub python: Option<PathBuf>,
    /// The size of kernels and arrays, instead of their own: elements, or points of a side
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub size: Option<u32>,
    /// Write the figures to this file, as JSON; `-` is standard output, without the table
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write `NAME.json` for each of them into this folder, behind its figures: a trace of five repetitions, for Perfetto or Chrome
    #[arg(long, value_name = "FOLDER")]
    pub trace: Option<PathBuf>,
    /// Start no processes of this command, and leave out what needs one
    #[arg(long, hide = true)]
    pub in_process: bool,
}

const BENCH_EXAMPLES: &str = "\
Examples:
  broadloom bench kernels                    kernels from CUDA C++ against C++ with OpenMP
  broadloom bench nbody mandelbrot --json figures.json
  broadloom bench nesl --python python3      NESL against C++ with OpenMP, and against Awkward Array
  broadloom bench --quick --device interp kernels

Exit code 1 when a result was wrong.";

/// Lists the groups and their benchmarks, for the help.
fn benchmarks() -> String {
    let mut text = "Benchmarks:\n".to_owned();
    for (group, names) in broadloom_bench::groups() {
        let mut line = format!("  {group:<9}");
        for name in names {
            if line.len() + name.len() > 100 {
                text += line.trim_end();
                text.push('\n');
                line = " ".repeat(11);
            }
            line += name;
            line.push(' ');
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.strip_suffix('s').unwrap_or(text).parse().ok();
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| format!("`{text}` is not a number of seconds"))
}

/// Returns the words of the call. Called by the name of NVIDIA's assembler, the command acts as that.
pub fn called_as(words: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    let mut words = words.peekable();
    let name = words.peek().and_then(|word| Path::new(word).file_name());
    let assembler = name == Some(OsStr::new(crate::ptxas::NAME));
    let inserted = assembler.then(|| [crate::ptxas::NAME.into(), "--".into()]);
    words.next().into_iter().chain(inserted.into_iter().flatten()).chain(words)
}

/// Returns the words of the call, with `--arg BUFFER =FILE` as two arguments: `=FILE` belongs to the buffer
/// before it.
pub fn joined(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = vec![];
    let mut ours = true;
    for word in words {
        // Words after it belong to another program.
        ours &= word != "--";
        if ours && word.as_encoded_bytes().starts_with(b"=") {
            joined.push("--arg".into());
        }
        joined.push(word);
    }
    joined
}
