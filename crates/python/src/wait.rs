//! Computing nodes, and waiting for the device.
//!
//! Other threads of Python run meanwhile. Ctrl-C ends the wait with `KeyboardInterrupt`. The device completes
//! what was launched: the arrays stay valid.

use crate::call::{Answer, Arguments, Entry};
use crate::error::{failed, internal, of_graph};
use broadloom::device::{Buffer, Device};
use broadloom::evaluate_all;
use broadloom::graph::Node;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Functions of the module.
pub(crate) const FUNCTIONS: &[Entry] = &[
    (c"evaluate", c"evaluate(nodes): starts to compute them in one plan.", evaluate),
    (c"synchronise", c"synchronise(node): computes it and waits for it.", synchronise),
    (c"forked", c"forked(): refuses to compute from now on: a child has no threads of the device.", forked),
];

/// Polling without sleeping: most results of small arrays come in this time.
const SPIN: Duration = Duration::from_micros(200);
/// Maximum time between two looks at the device and at the signals.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);

/// True in a child process that was forked after a device was opened.
static FORKED: AtomicBool = AtomicBool::new(false);

fn forked(arguments: &Arguments<'_, '_>) -> Answer {
    FORKED.store(true, Ordering::Relaxed);
    arguments.answer(())
}

/// Refuses to use a device whose threads stayed in the parent process.
pub(crate) fn check_process() -> PyResult<()> {
    match FORKED.load(Ordering::Relaxed) {
        true => Err(failed(
            "this process was forked after a device was opened, and has no threads of the device: \
             use the start method `spawn` or `forkserver` of multiprocessing",
        )),
        false => Ok(()),
    }
}

fn evaluate(arguments: &Arguments<'_, '_>) -> Answer {
    check_process()?;
    let nodes = arguments.handles::<Node>(0)?;
    let done = arguments.py().detach(|| evaluate_all(&nodes.iter().collect::<Vec<&Node>>()));
    done.map_err(of_graph)?;
    arguments.answer(())
}

fn synchronise(arguments: &Arguments<'_, '_>) -> Answer {
    wait_for(arguments.py(), &arguments.handle::<Node>(0)?)?;
    arguments.answer(())
}

/// Computes a node and waits until its elements are in memory.
pub(crate) fn wait_for(py: Python<'_>, node: &Node) -> PyResult<Buffer<u8>> {
    check_process()?;
    let (node, buffer) = py
        .detach(|| {
            let node = node.hosted()?;
            let buffer = node.evaluate()?;
            Ok((node, buffer))
        })
        .map_err(of_graph)?;
    until_idle(py, node.context().device())?;
    py.detach(|| node.context().confirm()).map_err(of_graph)?;
    Ok(buffer)
}

/// Waits for the work submitted to a device so far.
pub(crate) fn until_idle(py: Python<'_>, device: &Device) -> PyResult<()> {
    let failed = |error: broadloom::device::Error| of_graph(error.into());
    let event = device.event().map_err(failed)?;
    event.record(Default::default()).map_err(failed)?;
    let start = Instant::now();
    let mut sleep = Duration::from_micros(50);
    loop {
        let happened = py.detach(|| {
            while start.elapsed() < SPIN {
                if event.has_happened()? {
                    return Ok(true);
                }
                std::thread::yield_now();
            }
            event.has_happened()
        });
        if happened.map_err(failed)? {
            // A failed launch is reported here.
            return event.synchronise().map_err(failed);
        }
        py.check_signals()?;
        py.detach(|| std::thread::sleep(sleep));
        sleep = (sleep * 2).min(LONGEST_SLEEP);
    }
}

/// Runs work of the host in another thread. After Ctrl-C calls `stop`, which must make the work end soon.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send,
    stop: impl Fn() + Send + Sync,
) -> PyResult<T> {
    let run = || {
        std::thread::scope(|scope| {
            let (sender, result) = channel();
            // Nobody receives the result of stopped work.
            scope.spawn(move || drop(sender.send(work())));
            loop {
                match result.recv_timeout(LONGEST_SLEEP) {
                    Ok(result) => return Ok(result),
                    Err(RecvTimeoutError::Disconnected) => return Err(internal("a thread ended")),
                    Err(RecvTimeoutError::Timeout) => {
                        if let Err(interrupt) = Python::attach(|py| py.check_signals()) {
                            stop();
                            return Err(interrupt);
                        }
                    }
                }
            }
        })
    };
    py.detach(run)
}
