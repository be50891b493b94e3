//! Random graphs on the interpreter, as itself and as a GPU, on the CPU, and on a GPU if there is one,
//! against the naive evaluator.
//!
//! Without a GPU its trial is ignored, with the reason. `BROADLOOM_FUZZ_GRAPHS=n` runs `n` graphs, beginning
//! with the seed `BROADLOOM_FUZZ_SEED`.

mod support;

use broadloom_cpu::{CacheFolder, Cpu};
use broadloom_cuda::Cuda;
use broadloom_device::Device;
use broadloom_diag::Sources;
use broadloom_graph::text::{Vocabulary, parse, print};
use broadloom_graph::{Context, Node, State, naive};
use broadloom_interp::Interp;
use libtest_mimic::{Arguments, Completion, Trial};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use support::gpu::interp_as_gpu;
use support::{Generator, Known, difference};

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is `{text}`, and it takes a number")))
}

fn cpu() -> Context {
    // Speed does not matter here, and compilation is most of the work.
    let mut options = broadloom_cpu::Options {
        threads: 2,
        memory_bytes: 1 << 30,
        cache: CacheFolder::Nowhere,
        ..broadloom_cpu::Options::default()
    };
    options.compile.optimise = false;
    Context::new(&Device::new(Cpu::new(options).unwrap_or_else(|error| panic!("{error}"))))
}

fn interp() -> Context {
    Context::new(&Device::new(Interp::new(broadloom_interp::Options::default())))
}

fn told(error: broadloom_graph::Error) -> String {
    error.to_string()
}

/// Returns the results of a program.
fn drawn(seed: u64, context: &Context) -> Result<Vec<Known>, String> {
    let mut generator = Generator::new(seed, context);
    for _ in 0..2 + generator.random.below(3) {
        generator.leaf().map_err(told)?;
    }
    let steps = if generator.random.one_in(8) { 120 } else { 4 + generator.random.below(30) };
    for _ in 0..steps {
        generator.step().map_err(told)?;
    }
    for _ in 0..generator.random.below(8usize).saturating_sub(5) {
        generator.neighbours().map_err(told)?;
    }
    if generator.random.one_in(8) {
        generator.matched().map_err(told)?;
    }
    let last = generator.pool.len() - 1;
    let mut outputs: Vec<Known> = vec![generator.pool[last].clone()];
    // Nodes of the counted kinds are always computed.
    let counted: Vec<Known> = generator.pool.iter().filter(|known| !known.kind.is_empty()).cloned().collect();
    if !counted.is_empty() {
        outputs.push(generator.random.pick(&counted).clone());
    }
    for _ in 0..generator.random.below(4) {
        let chosen = generator.random.below(last + 1);
        outputs.push(generator.pool[chosen].clone());
    }
    Ok(outputs)
}

/// For each kind of results: the number of programs with a compared result of the kind, and the types of
/// these results.
type Kinds = BTreeMap<&'static str, (u64, BTreeSet<String>)>;

/// Makes one program, computes it both ways and compares the results. Returns whether a kernel is a stencil,
/// and counts kinds of results; `Err` describes the failure.
fn check(seed: u64, context: &Context, kinds: &mut Kinds) -> Result<bool, String> {
    let outputs = drawn(seed, context)?;
    let expected: Vec<_> = outputs.iter().map(|known| naive::evaluate(&known.node)).collect::<Result<_, _>>().map_err(told)?;
    let nodes: Vec<Node> = outputs.iter().map(|known| known.node.clone()).collect();
    let plan = context.explain(&nodes).map_err(told)?;
    context.evaluate(&nodes).map_err(|error| format!("{error}\n{}", plan.text()))?;
    let mut own = BTreeSet::new();
    for (known, expected) in outputs.iter().zip(&expected) {
        let found = known.node.read().map_err(|error| format!("{error}\n{}", plan.text()))?;
        if let Some(difference) = difference(&found, expected, known.tolerance()) {
            return Err(format!("{difference}\n{}", plan.text()));
        }
        let (programs, types) = kinds.entry(known.kind).or_default();
        *programs += u64::from(own.insert(known.kind));
        types.insert(known.node.ty().to_string());
    }
    Ok(plan.kernels.iter().any(|kernel| kernel.name == "stencil"))
}

/// Returns whether a node depends on a length that only the device knows. Texts cannot express such lengths.
fn has_length(node: &Node, seen: &mut Vec<Node>) -> bool {
    if seen.iter().any(|known| known.is_same(node)) {
        return false;
    }
    seen.push(node.clone());
    let inputs = match node.state() {
        State::Pending(expression) => expression.inputs.clone(),
        State::Ready(_) | State::Symbolic(_) => Default::default(),
    };
    node.length().is_some() || inputs.iter().any(|input| has_length(input, seen))
}

/// Prints one program, reads it, and prints it again: text and plan must be equal.
fn check_text(seed: u64) -> Result<(), String> {
    let (context, other) = (interp(), interp());
    let nodes = drawn(seed, &context)?.into_iter().map(|known| known.node);
    let nodes: Vec<Node> = nodes.filter(|node| !has_length(node, &mut vec![])).collect();
    if nodes.is_empty() {
        return Ok(());
    }
    let text = print(&nodes).map_err(told)?;
    let mut sources = Sources::new();
    let id = sources.add("random.graph", text.as_str());
    let graph =
        parse(&sources, id, &other, &Vocabulary::default()).map_err(|wrong| format!("{}\n{text}", sources.render_all(&wrong)))?;
    let again: Vec<Node> = graph.outputs.into_iter().map(|(_, node)| node).collect();
    let second = print(&again).map_err(told)?;
    if second != text {
        return Err(format!("the text\n{text}\nprints again as\n{second}"));
    }
    let outline = |context: &Context, nodes: &[Node]| -> Result<Vec<(String, usize, u64, u64)>, String> {
        let plan = context.explain(nodes).map_err(told)?;
        Ok(plan.kernels.into_iter().map(|k| (k.name, k.launches, k.bytes_read, k.bytes_written)).collect())
    };
    let (first, second) = (outline(&context, &nodes)?, outline(&other, &again)?);
    if first == second { Ok(()) } else { Err(format!("{first:?} becomes {second:?}:\n{text}")) }
}

/// Returns the number of programs, unless the environment overrides it.
fn count(programs: u64) -> u64 {
    setting("BROADLOOM_FUZZ_GRAPHS", programs)
}

/// Checks seeds on several threads, each with its own state, until a few have failed. Returns the states and
/// the failures.
fn on_threads<S: Send>(
    programs: u64,
    state: impl Fn() -> S + Sync,
    check: impl Fn(u64, &mut S) -> Result<(), String> + Sync,
) -> (Vec<S>, Vec<String>) {
    let from = setting("BROADLOOM_FUZZ_SEED", SEED);
    let (next, wrong) = (AtomicU64::new(from), Mutex::new(vec![]));
    let list = || wrong.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || {
        let mut state = state();
        while let seed = next.fetch_add(1, Ordering::Relaxed)
            && seed < from + programs
            && list().len() <= 3
        {
            if let Err(problem) = check(seed, &mut state) {
                list().push(format!("seed {seed}: {problem}"));
            }
        }
        state
    };
    // A few programs do not justify another device.
    let threads = (programs / 100).clamp(1, std::thread::available_parallelism().map_or(1, |count| count.get() as u64));
    let states = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        // A panic of a check fails the test.
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    (states, wrong.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Kinds of results that programs must contain.
const KINDS: [&str; 7] = ["length", "window", "queue", "place", "sweep", "layout", "line"];

/// Each kind is drawn for at least one program in `KIND`.
const KIND: f64 = 60.0;

/// Stencils are planned for at least one program in `STENCIL`: for about one in fifteen, and fewer if they
/// pay less.
const STENCIL: f64 = 100.0;

/// First seed, unless the environment overrides it.
const SEED: u64 = 1;

/// Returns the minimum number of programs with a property that one program in `one_in` has. By Chernoff's
/// bound, fewer have it with a probability below 1e-9: exp(-6.5² / 2).
fn least(programs: u64, one_in: f64) -> u64 {
    let expected = programs as f64 / one_in;
    (expected - 6.5 * expected.sqrt()).max(0.0) as u64
}

fn campaign(context: impl Fn() -> Context + Sync, programs: u64) {
    // The programs of `make test` never change, so each kind is certain.
    let is_fixed = setting("BROADLOOM_FUZZ_SEED", SEED) == SEED && count(programs) >= programs;
    let programs = count(programs);
    let (states, wrong) = on_threads(
        programs,
        || (context(), 0, Kinds::new()),
        |seed, (context, stencils, kinds)| {
            *stencils += u64::from(check(seed, context, kinds)?);
            Ok(())
        },
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let (mut stencils, mut kinds) = (0, Kinds::new());
    for (_, own, of_kind) in states {
        stencils += own;
        for (kind, (count, types)) in of_kind {
            let known: &mut (u64, BTreeSet<String>) = kinds.entry(kind).or_default();
            known.0 += count;
            known.1.extend(types);
        }
    }
    let least = |one_in: f64| least(programs, one_in).max(u64::from(is_fixed));
    assert!(stencils >= least(STENCIL), "{stencils} programs with stencils");
    // All kinds are drawn, of several types.
    let wanted = least(KIND);
    for kind in KINDS {
        let (count, types) = kinds.get(kind).map_or((0, 0), |(count, types)| (*count, types.len()));
        assert!(count >= wanted && (types >= 2 || wanted == 0), "{count} of `{kind}`, not {wanted}, of {types} types: {kinds:?}");
    }
}

fn main() {
    let arguments = Arguments::from_args();
    let on = |name: &str, context: fn() -> Context| {
        let run = move || {
            campaign(context, 50);
            Ok(())
        };
        Trial::test(format!("{name}_agrees_with_the_naive_evaluator"), run)
    };
    let gpu = Trial::ignorable_test("a_gpu_agrees_with_the_naive_evaluator", || {
        match Cuda::new(broadloom_cuda::Options::default()) {
            Ok(gpu) => {
                let device = Device::new(gpu);
                campaign(|| Context::new(&device), 60);
            }
            Err(error) => return Ok(Completion::ignored_with(format!("skipped: {error}"))),
        }
        Ok(Completion::Completed)
    });
    let texts = Trial::test("graphs_read_back_as_they_print", || {
        let (_, wrong) = on_threads(count(50), || (), |seed, ()| check_text(seed));
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
    });
    let trials = vec![
        texts,
        on("the_interpreter", interp),
        on("what_is_planned_for_a_gpu", || Context::new(&interp_as_gpu())),
        on("the_cpu", cpu),
        gpu,
    ];
    libtest_mimic::run(&arguments, trials).exit();
}
