//! Graphs in textual form: `broadloom explain x.graph` plans one, `broadloom run x.graph` computes it, and
//! `broadloom check x.graph` computes it with its kernels checked.

use crate::failure::{Exit, Failure, codes};
use crate::findings::FindingsReport;
use crate::input::Input;
use crate::launching::open;
use crate::options::{Check, Emit, Explain, Run};
use crate::terminal::Terminal;
use broadloom::device::Device;
use broadloom::diag::Diagnostic;
use broadloom::graph::text::{Graph, Results, Vocabulary, parse};
use broadloom::graph::{Context, Error, HostArray, Node, shown_time};
use broadloom::interp::Interp;
use broadloom::launch::{Element, HostArray as Shown};
use std::path::Path;

/// Reason for refusing the options of a launch.
const REFUSED: &str = "a graph says itself what it computes, and of what";

/// Writes the plan of a graph for a device, or the PTX of its kernels.
pub fn explain(options: &Explain, terminal: &mut Terminal) -> Result<Exit, Failure> {
    if !matches!(options.emit, None | Some(Emit::Ptx)) {
        let message = "this form is not for graphs: they have `ptx`";
        return Err(Failure::usage(Diagnostic::error(codes::BAD_LAUNCH, message).help("use --emit ptx, or leave --emit out")));
    }
    let (context, graph) = read(&options.file, &open(options.device.as_deref(), false, terminal)?.device())?;
    let plan = context.explain(&nodes(&graph)).map_err(failed)?;
    if options.emit.is_some() {
        terminal.write(&plan.ptx().map_err(failed)?);
        return Ok(Exit::Done);
    }
    terminal.write(&plan.text_on(context.device()));
    Ok(Exit::Done)
}

/// Computes and writes the results of a graph.
pub fn run(options: &Run, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let launch = &options.launch;
    launch.refuse(REFUSED)?;
    let file = launch.file.as_deref().unwrap_or(Path::new("-"));
    let (context, graph) = read(file, &open(launch.device.as_deref(), false, terminal)?.device())?;
    let results = graph.results().map_err(failed)?;
    match options.stats {
        true => write_statistics(&context, &results.nodes(), terminal)?,
        false => context.evaluate(&results.nodes()).map_err(failed)?,
    }
    write_results(&results, terminal)?;
    Ok(Exit::Done)
}

fn write_results(results: &Results, terminal: &mut Terminal) -> Result<(), Failure> {
    for result in results.read(Node::read).map_err(failed)? {
        terminal.write(&format!("{}: {}\n", result.title(), shown(&result.array)));
    }
    Ok(())
}

/// Computes the results of a graph on the checking interpreter, and reports the errors of its kernels.
pub fn check(options: &Check, interp: &Interp, terminal: &mut Terminal) -> Result<Exit, Failure> {
    options.launch.refuse(REFUSED)?;
    let file = options.launch.file.as_deref().unwrap_or(Path::new("-"));
    let (context, graph) = read(file, &Device::new(interp.clone()))?;
    let report = FindingsReport::new(file, options, interp);
    let outcome = graph.results().and_then(|results| context.evaluate(&results.nodes()).map(|()| results));
    let outcome = outcome.map_err(failed).and_then(|results| write_results(&results, terminal));
    let summary = |what: &str| format!("kernels of `{}`: {what}", file.display());
    report.end(outcome.map(|()| Exit::Done), None, summary, terminal)
}

/// Computes nodes and prints the time of each kernel with the estimate on standard error.
fn write_statistics(context: &Context, nodes: &[Node], terminal: &mut Terminal) -> Result<(), Failure> {
    let (plan, times) = context.measure(nodes).map_err(failed)?;
    let machine = context.device().measured_machine();
    let text = plan.text_with(|kernel| {
        let measured = format!("took {}", shown_time(times.get(kernel).copied().unwrap_or_default()));
        let estimate = plan.kernels[kernel].estimate(&machine);
        Some(estimate.map_or(measured.clone(), |estimate| format!("{estimate}, {measured}")))
    });
    text.lines().for_each(|line| terminal.remark(line));
    Ok(())
}

/// Reads a graph for a device.
fn read(file: &Path, device: &Device) -> Result<(Context, Graph), Failure> {
    let input = Input::read(file)?;
    let context = Context::new(device);
    match parse(&input.sources, input.id, &context, &Vocabulary::default()) {
        Ok(graph) => Ok((context, graph)),
        Err(diagnostics) => Err(Failure { exit: Exit::Usage, diagnostics, sources: input.sources }),
    }
}

fn nodes(graph: &Graph) -> Vec<Node> {
    graph.outputs.iter().map(|(_, node)| node.clone()).collect()
}

/// Converts an error of planning or computing a graph.
fn failed(error: Error) -> Failure {
    let (exit, code) = match &error {
        Error::Device(_) | Error::Host { .. } => (Exit::Machine, codes::DEVICE),
        Error::Plan { .. } => (Exit::Failed, codes::INTERNAL),
        _ => (Exit::Failed, codes::BAD_LAUNCH),
    };
    Failure::new(exit, Diagnostic::error(code, error.to_string()))
}

/// Converts an array for display. Truth values are bytes. Lanes of vectors are the last axis.
fn shown(array: &HostArray) -> Shown {
    let element = Element::from_name(array.ty.element().name()).unwrap_or(Element::U8);
    let mut shape: Vec<u64> = array.shape.extents().iter().map(|extent| *extent as u64).collect();
    if !array.ty.is_scalar() {
        shape.push(array.ty.lanes() as u64);
    }
    Shown { element, shape, bytes: array.to_bytes() }
}
