//! Graphs: `.graph` files, the textual form of `broadloom_graph`.

use crate::devices::PrintedText;
use crate::failure::Failure;
use crate::language::{Command, Devices, Language, Request};
use broadloom_device::{Device, Machine, MachineKind};
use broadloom_diag::Sources;
use broadloom_graph::text::{Graph, Vocabulary, parse, print_with_elements};
use broadloom_graph::{Context, HostArray, Node, naive};
use broadloom_interp::{Interp, Options};
use broadloom_launch::{Element, HostArray as Shown};
use broadloom_scalar::{Element as ScalarElement, Literal};
use std::fmt::Write as _;

/// Textual form of graphs.
pub(crate) const LANGUAGE: Language = Language { extension: "graph", comment: ("//", ""), commands: COMMANDS };

const COMMANDS: &[Command] = &[
    // Parses and prints; the print must be a fixed point.
    Command { name: "print", launches: false, devices: Devices::One, argument: None, perform: perform_print },
    // Parses; outputs the diagnostics, or `ok`.
    Command { name: "verify", launches: false, devices: Devices::One, argument: None, perform: perform_verify },
    // Plans for described machines; outputs kernels, cuts with their reasons, bytes, launches. Nothing is
    // run.
    Command {
        name: "plan",
        launches: false,
        devices: Devices::One,
        argument: Some(|list| machines(list).map(|_| ())),
        perform: perform_plan,
    },
    // Evaluates; outputs the elements of the results, which the naive evaluator must give too.
    Command { name: "run", launches: false, devices: Devices::Some(&RUN_ON), argument: None, perform: perform_run },
];

/// Devices for results. Kernels of all vector widths are tested with PTX.
const RUN_ON: [&str; 3] = ["interp", "cpu-avx2", "cuda"];

/// Function from the description of the interpreter to that of another machine.
type Describe = fn(Machine) -> Machine;

/// Machines for which plans are tested, by name. The interpreter gets these descriptions, so that no plan
/// depends on the host.
const MACHINES: [(&str, Describe); 2] = [
    ("cpu", |machine| Machine { kind: MachineKind::Cpu, multiprocessors: 8, cache_bytes: Some(32 << 20), ..machine }),
    ("gpu", |machine| Machine { kind: MachineKind::Cuda, multiprocessors: 132, cache_bytes: Some(50 << 20), ..machine }),
];

/// Returns the machines that a list such as `cpu, gpu` names.
fn machines(list: &str) -> Result<Vec<(&'static str, Machine)>, Failure> {
    let words: Vec<&str> = list.split([',', ' ']).filter(|word| !word.is_empty()).collect();
    let names = MACHINES.map(|(name, _)| name).join(", ");
    if words.is_empty() {
        return Err(format!("`plan` needs machines behind it: some of {names}").into());
    }
    let plain = Device::new(Interp::new(Options::default())).machine().clone();
    let machine = |word: &str| {
        let found = MACHINES.iter().find(|(name, _)| *name == word);
        found
            .map(|(name, describe)| (*name, describe(plain.clone())))
            .ok_or_else(|| format!("`{word}` is not a machine; there are {names}").into())
    };
    words.into_iter().map(machine).collect()
}

/// Parses the text of a request for a device.
fn read(request: &Request<'_>, device: &Device) -> Result<Graph, Failure> {
    let mut sources = Sources::new();
    let id = sources.add(request.name, request.text);
    let context = Context::new(device);
    parse(&sources, id, &context, &Vocabulary::default()).map_err(|wrong| sources.render_all(&wrong).into())
}

fn nodes(graph: &Graph) -> Vec<broadloom_graph::Node> {
    graph.outputs.iter().map(|(_, node)| node.clone()).collect()
}

fn interp() -> Device {
    Device::new(Interp::new(Options::default()))
}

fn perform_verify(request: &Request<'_>) -> Result<String, Failure> {
    Ok(read(request, &interp()).map_or_else(|wrong| wrong.0, |_| "ok\n".to_owned()))
}

fn perform_print(request: &Request<'_>) -> Result<String, Failure> {
    const ELEMENTS: usize = 16;
    let graph = read(request, &interp())?;
    let printed = print_with_elements(&nodes(&graph), ELEMENTS)?;
    let mut sources = Sources::new();
    let id = sources.add("the print", printed.as_str());
    let again = parse(&sources, id, &Context::new(&interp()), &Vocabulary::default())
        .map_err(|wrong| format!("the print does not parse:\n{}\n{printed}", sources.render_all(&wrong)))?;
    let again = print_with_elements(&nodes(&again), ELEMENTS)?;
    match again == printed {
        true => Ok(printed),
        false => Err(format!("the print is not a fixed point: it prints again as\n{again}\nafter\n{printed}").into()),
    }
}

fn perform_plan(request: &Request<'_>) -> Result<String, Failure> {
    let machines = machines(request.argument)?;
    let mut text = String::new();
    for (name, machine) in &machines {
        let device = Device::new(Interp::new(Options { machine: Some(machine.clone()), ..Options::default() }));
        let graph = read(request, &device)?;
        let nodes = nodes(&graph);
        let [first, ..] = &nodes[..] else { return Err("there are no results".into()) };
        let plan = first.context().explain(&nodes)?;
        if machines.len() > 1 {
            let _ = writeln!(text, "# {name}");
        }
        text.push_str(&plan.text());
    }
    Ok(text)
}

fn perform_run(request: &Request<'_>) -> Result<String, Failure> {
    let device = request.device.open(&PrintedText::default())?;
    let graph = read(request, &device)?;
    let results = graph.results()?;
    let nodes = results.nodes();
    let [first, ..] = &nodes[..] else { return Err("there are no results".into()) };
    let expected = results.read(naive::evaluate)?;
    first.context().evaluate(&nodes)?;
    let mut text = String::new();
    for (found, expected) in results.read(Node::read)?.iter().zip(&expected) {
        if !is_near(&found.array, &expected.array) {
            let (name, found, expected) = (&found.name, shown(&found.array), shown(&expected.array));
            return Err(format!("`{name}` is\n{found}and the naive evaluator gives\n{expected}").into());
        }
        let _ = write!(text, "{}: {}", found.title(), shown(&found.array));
    }
    Ok(text)
}

/// Returns whether two arrays agree well enough. The naive evaluator rounds after every operation and sums in
/// another order, so floats must agree in half of their digits. The expectation of the file has all digits.
fn is_near(found: &HostArray, expected: &HostArray) -> bool {
    let bits = match found.ty.element() {
        ScalarElement::F16 => 6,
        ScalarElement::F32 => 14,
        _ => 30,
    };
    let same = |(a, b): (&Literal, &Literal)| match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) if a.is_nan() || b.is_nan() => a.is_nan() && b.is_nan(),
        (Some(a), Some(b)) => a == b || (a - b).abs() <= a.abs().max(b.abs()) * 2f64.powi(-bits),
        _ => a == b,
    };
    found.shape == expected.shape
        && found.lanes.len() == expected.lanes.len()
        && found.lanes.iter().zip(&expected.lanes).all(same)
}

/// Returns an array as text. Truth values are bytes, and lanes of vectors are a last axis.
fn shown(array: &HostArray) -> String {
    let element = Element::from_name(array.ty.element().name()).unwrap_or(Element::U8);
    let mut shape: Vec<u64> = array.shape.extents().iter().map(|extent| *extent as u64).collect();
    if !array.ty.is_scalar() {
        shape.push(array.ty.lanes() as u64);
    }
    format!("{}\n", Shown { element, shape, bytes: array.to_bytes() })
}
