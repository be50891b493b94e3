//! The command line.

use crate::terminal::Color;
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Kernels for a grid of threads, run, checked and explained without a GPU.
#[derive(Debug, Parser)]
#[command(name = "broadloom", version, styles = STYLES, max_term_width = 110, after_help = EXAMPLES)]
pub struct Options {
    /// When to use colours
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, hide_possible_values = false, value_name = "WHEN")]
    pub color: Color,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  broadloom explain examples/reduce.ptx

Exit codes: 0 done; 1 the program failed or a check found something; 2 the call was wrong; 3 the machine could not.
`broadloom help COMMAND` says more.";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say what is in a module: kernels, parameters, memory, instructions
    Explain(Explain),
}

/// Options of `explain`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  broadloom explain examples/reduce.ptx               what is in it
  broadloom explain examples/reduce.ptx --emit ptx    the module, printed back")]
pub struct Explain {
    /// A file of PTX; `-` is standard input
    pub file: PathBuf,
    /// Print the module in this form instead
    #[arg(long, value_enum, value_name = "FORM")]
    pub emit: Option<Emit>,
}

/// A form to print a module in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Emit {
    /// PTX, as NVIDIA's tools take it
    Ptx,
}
