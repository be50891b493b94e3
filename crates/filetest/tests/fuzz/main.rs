//! Random texts derived from real ones go through parser, verifier, printer and interpreter.
//!
//! For any text there is no panic, no hang, a diagnostic if it is rejected, a module in proportion to the
//! text if it is accepted, and a print that means the same module. For any verified module, the interpreter
//! loads and runs it, or reports why not. The test runs for a few seconds; `BROADLOOM_FUZZ_SECONDS=600` for
//! longer. Text number n is always the same: a failure names it, and `BROADLOOM_FUZZ_FROM=n` starts there.

mod mutate;

use broadloom_device::{Argument, Device, Launch};
use broadloom_diag::Sources;
use broadloom_filetest::{PTX, TestFile, find_files, root};
use broadloom_interp::{Interp, Options};
use broadloom_ptx::{Module, parse, print, verify};
use broadloom_random::Random;
use mutate::{mutate, nudge};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Time after which a text counts as hanging.
const HANG: Duration = Duration::from_secs(60);
/// Maximum bytes of the texts to start from.
const SEED: usize = 12 << 10;

fn seeds() -> Vec<String> {
    let mut seeds = vec![];
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/ptx");
    for (_, path) in find_files(&corpus).unwrap_or_default() {
        seeds.extend(fs::read_to_string(&path));
    }
    for (_, path) in find_files(&root()).unwrap_or_default().into_iter().filter(|(name, _)| name.ends_with(".ptx")) {
        let Ok(file) = TestFile::parse(&fs::read_to_string(&path).unwrap_or_default(), &PTX) else { continue };
        seeds.extend(file.cases.into_iter().map(|case| case.text));
    }
    seeds.retain(|text| text.len() <= SEED);
    seeds
}

/// Returns text number `number`.
fn text_of(seeds: &[String], number: u64) -> String {
    let mut random = Random::new(number);
    // Every sixteenth is random bytes, the rest is derived from real texts.
    if number.is_multiple_of(16) {
        let length = random.below(400);
        let bytes: Vec<u8> = (0..length).map(|_| random.bits() as u8).collect();
        return String::from_utf8_lossy(&bytes).into_owned();
    }
    let mut text = seeds[random.below(seeds.len())].clone();
    // Half of them get changes that often keep them valid: accepted texts go further.
    let gentle = random.below(2) == 0;
    for _ in 0..1 + random.below(4) {
        let other = &seeds[random.below(seeds.len())];
        text = if gentle { nudge(&text, &mut random) } else { mutate(&text, other, &mut random) };
    }
    text
}

/// What happened to a text: refused, not verified, or accepted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TextOutcome {
    Refused,
    Unverified,
    Accepted,
}

fn judge(text: &str) -> Result<TextOutcome, String> {
    let mut sources = Sources::new();
    let id = sources.add("fuzz.ptx", text);
    let module = match parse(&sources, id) {
        Ok(module) => module,
        Err(diagnostics) if diagnostics.has_errors() => {
            let told: String = diagnostics.iter().take(4).map(|diagnostic| sources.render(diagnostic)).collect();
            return if told.is_empty() { Err("refused without a word".to_owned()) } else { Ok(TextOutcome::Refused) };
        }
        Err(_) => return Err("refused without an error".to_owned()),
    };
    let size = size(&module);
    if size > text.len() + 64 {
        return Err(format!("a module of {size} parts from {} bytes", text.len()));
    }
    let printed = print(&module);
    if printed.len() > 64 * text.len() + 4096 {
        return Err(format!("a print of {} bytes from {}", printed.len(), text.len()));
    }
    let again = sources.add("print.ptx", printed.as_str());
    let again = parse(&sources, again)
        .map_err(|diagnostics| format!("the print does not parse:\n{}\n{printed}", sources.render_all(&diagnostics)))?;
    if print(&again) != printed {
        return Err(format!("the print is not a fixed point:\n{printed}"));
    }
    if without_spans(again) != without_spans(module.clone()) {
        return Err(format!("the print means another module:\n{printed}"));
    }
    match verify(module) {
        Ok(_) => Ok(TextOutcome::Accepted),
        Err(diagnostics) if diagnostics.has_errors() => {
            diagnostics.iter().take(4).for_each(|diagnostic| drop(sources.render(diagnostic)));
            Ok(TextOutcome::Unverified)
        }
        Err(_) => Err("not verified, but without an error".to_owned()),
    }
}

fn without_spans(mut module: Module) -> Module {
    module.strip_spans();
    module
}

/// Returns the number of items of a module.
fn size(module: &Module) -> usize {
    let functions = module.functions.values().map(|function| {
        let operands: usize = function.insts.values().map(|inst| inst.operands.len()).sum();
        let targets: usize = function.targets.values().map(|list| list.blocks.len()).sum();
        let tables = function.regs.len() + function.variables.len() + function.blocks.len() + function.insts.len();
        operands + targets + tables + function.protos.len() + function.locs.len()
    });
    module.variables.len() + module.items.len() + functions.sum::<usize>()
}

fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is `{text}`, and it takes a number")))
}

/// Judges texts until the time is over. Returns the number of each outcome.
fn drive(
    limit: Duration,
    text_of: impl Fn(u64) -> String + Send + Sync + 'static,
    judge: fn(&str) -> Result<TextOutcome, String>,
) -> [u64; 3] {
    let first = number_from("BROADLOOM_FUZZ_FROM").unwrap_or(1);
    let keep = |number: u64, text: &str| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{number}.ptx"));
        let _ = fs::write(&path, text);
        path
    };
    let text_of = Arc::new(text_of);
    let texts = text_of.clone();
    let (sender, receiver) = channel();
    let worker = std::thread::spawn(move || {
        let started = Instant::now();
        let mut fates = [0u64; 3];
        for number in first.. {
            if started.elapsed() > limit {
                break;
            }
            let text = text_of(number);
            let _ = sender.send(number);
            let outcome = catch_unwind(AssertUnwindSafe(|| judge(&text)));
            let wrong = match outcome {
                Ok(Ok(fate)) => {
                    fates[fate as usize] += 1;
                    continue;
                }
                Ok(Err(message)) => message,
                Err(_) => "a panic".to_owned(),
            };
            return Err(format!("text {number} (kept in {}): {wrong}", keep(number, &text).display()));
        }
        Ok(fates)
    });
    let mut current = first;
    loop {
        match receiver.recv_timeout(HANG) {
            Ok(number) => current = number,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                let path = keep(current, &texts(current));
                panic!("text {current} (kept in {}) takes longer than {HANG:?}", path.display());
            }
        }
    }
    match worker.join() {
        Ok(Ok(fates)) => fates,
        Ok(Err(message)) => panic!("{message}"),
        Err(_) => panic!("the worker died at text {current}"),
    }
}

fn time_limit() -> Duration {
    Duration::from_secs(number_from("BROADLOOM_FUZZ_SECONDS").unwrap_or(3))
}

#[test]
fn texts_made_by_chance_are_read_safely() {
    let seeds = seeds();
    assert!(seeds.len() > 300, "only {} texts to start from", seeds.len());
    let [refused, unverified, accepted] = drive(time_limit(), move |number| text_of(&seeds, number), judge);
    // A run in which everything is rejected at once would test little.
    assert!(accepted > 0 && refused > 0, "refused {refused}, unverified {unverified}, accepted {accepted}");
}

/// Loads verified modules and launches their kernels, in checking mode or not.
fn execute(text: &str) -> Result<TextOutcome, String> {
    let mut sources = Sources::new();
    let id = sources.add("fuzz.ptx", text);
    let Ok(module) = parse(&sources, id) else { return Ok(TextOutcome::Refused) };
    let Ok(module) = verify(module) else { return Ok(TextOutcome::Unverified) };
    let module = Arc::new(module);
    let options =
        Options { check: text.len().is_multiple_of(2), memory_bytes: 64 << 20, heap_bytes: 1 << 20, ..Options::default() };
    let device = Device::new(Interp::new(options));
    let Ok(loaded) = device.load(&module) else { return Ok(TextOutcome::Accepted) };
    let buffer = device.zeros::<u8>(1 << 16).map_err(|error| error.to_string())?;
    for (_, function) in module.kernels().take(3) {
        let Ok(kernel) = loaded.kernel(&function.name) else { continue };
        let block =
            function.directive("reqntid").map_or([40, 1, 1], |sizes| std::array::from_fn(|axis| *sizes.get(axis).unwrap_or(&1)));
        let arguments = kernel.params().iter().map(|param| match param.bytes {
            8 => Argument::from(&buffer),
            bytes => Argument::Bytes(vec![1; bytes as usize]),
        });
        let launch = Launch::new([2, 1, 1], block).shared(4096).time_limit(Duration::from_millis(40));
        // A fault is a valid outcome.
        drop(kernel.launch(&launch, &arguments.collect::<Vec<_>>()));
    }
    Ok(TextOutcome::Accepted)
}

#[test]
fn verified_modules_never_make_the_interpreter_panic() {
    let is_verified = |text: &String| {
        let mut sources = Sources::new();
        let id = sources.add("seed.ptx", text.as_str());
        parse(&sources, id).and_then(verify).is_ok()
    };
    let seeds: Vec<String> = seeds().into_iter().filter(is_verified).collect();
    assert!(seeds.len() > 100, "only {} modules to start from", seeds.len());
    let [refused, unverified, accepted] = drive(
        time_limit(),
        move |number| {
            let mut random = Random::new(number);
            let text = &seeds[random.below(seeds.len())];
            nudge(text, &mut random)
        },
        execute,
    );
    assert!(accepted > 0, "refused {refused}, unverified {unverified}, accepted {accepted}");
}

/// Every prefix of a corpus file is rejected or accepted, without any other outcome.
#[test]
fn truncated_texts_are_read_safely() {
    let seeds = seeds();
    for (index, seed) in seeds.iter().enumerate().step_by(seeds.len() / 24 + 1) {
        let short = seed.char_indices().map(|(at, _)| at).take_while(|at| *at < 4000);
        for end in short.step_by(61) {
            if let Err(message) = judge(&seed[..end]) {
                panic!("text {index} cut at {end}: {message}");
            }
        }
    }
}
