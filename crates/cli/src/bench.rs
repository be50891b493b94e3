//! `broadloom bench`: speed of kernels on this machine. The result is a table, or the figures as JSON with
//! `--json -`.

use crate::failure::{Exit, Failure, codes};
use crate::launching::failure;
use crate::options::Bench;
use crate::terminal::{Style, Terminal, write_json};
use broadloom::diag::{Diagnostic, Sources};
use broadloom::ptx::select::nearest;
use broadloom_bench::{Error, Event, Report, Row};

/// Runs benchmarks and prints the results row by row.
pub fn run(options: &Bench, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let settings = broadloom_bench::Options {
        names: options.names.clone(),
        device: options.device.clone(),
        quick: options.quick,
        no_peers: options.no_peers,
        python: options.python.clone(),
        size: options.size.map(|size| size as usize),
        prefetch: options.prefetch.wish(),
        trace: options.trace.clone(),
        peer_folder: None,
        command: if options.in_process { None } else { std::env::current_exe().ok() },
    };
    let to_stdout = options.json.as_ref().is_some_and(|path| path.as_os_str() == "-");
    let mut group = "";
    let report = broadloom_bench::run(&settings, &mut |event| show(&event, &mut group, to_stdout, terminal));
    let report = report.map_err(describe)?;
    if let Some(path) = &options.json {
        write_json(path, &report.to_json(), terminal)?;
    }
    if !to_stdout {
        summary(&report, terminal);
    }
    Ok(if report.failures.is_empty() { Exit::Done } else { Exit::Failed })
}

fn show(event: &Event<'_>, group: &mut &'static str, to_stdout: bool, terminal: &mut Terminal) {
    match event {
        Event::Row(_) | Event::Figure(_) if to_stdout => {}
        Event::Row(row) => {
            if *group != row.group {
                let title = terminal.styled(Style::Bold, Row::HEADER);
                terminal.write(&format!("{}{title}\n", if group.is_empty() { "" } else { "\n" }));
                *group = row.group;
            }
            terminal.write(&format!("{}\n", row.line()));
            terminal.flush();
        }
        Event::Figure(figure) => terminal.write(&format!("{}\n", figure.text)),
        Event::Remark(text) => terminal.remark(text),
        Event::Failed(name, reason) => terminal.remark(&format!("{name}: FAILED: {reason}")),
    }
}

fn summary(report: &Report, terminal: &mut Terminal) {
    if let Some(table) = report.side_by_side() {
        terminal.write(&format!("\n{table}\n\n"));
    }
    if let Some((mean, worst)) = report.against_peers() {
        let ratio = worst.peer_ratio().unwrap_or_default();
        terminal.write(&format!("geometric mean of the ratios {mean:.2}, worst {ratio:.2} ({})\n", worst.name));
    }
    if let Some((mean, count)) = report.against_straight() {
        terminal
            .write(&format!("straight translations of {count} stream programs take {mean:.2} times as long, geometric mean\n"));
    }
}

fn describe(error: Error) -> Failure {
    match error {
        Error::UnknownName { ref name, ref available } => {
            let diagnostic = Diagnostic::error(codes::WHICH_BENCHMARK, error.to_string());
            let meant = nearest(name, available.iter().map(String::as_str));
            let diagnostic = match meant {
                Some(meant) => diagnostic.help(format!("there is `{meant}`")),
                None => diagnostic,
            };
            Failure::usage(diagnostic.help(format!("there are {}", available.join(", "))))
        }
        Error::UnknownDevice(unknown) => Failure::new(Exit::Machine, Diagnostic::error(codes::NO_DEVICE, unknown.to_string())),
        Error::Device(error) => failure(error, Sources::new()),
    }
}
