//! The checking interpreter, and traces of what runs.

use crate::call::{Answer, Arguments, Entry};
use crate::error::failed;
use crate::handle::Handle;
use broadloom::Context;
use broadloom::device::Device;
use broadloom::device::trace::Trace;
use broadloom::interp::{Interp, Options};
use std::ffi::CStr;
use std::fs::File;
use std::io::BufWriter;
use std::sync::{Arc, Mutex, PoisonError};

/// Functions of the module.
pub(crate) const FUNCTIONS: &[Entry] = &[
    (c"checker", c"checker(): a context of a new interpreter that watches kernels, and the interpreter.", checker),
    (c"findings", c"findings(checker, known): kernel, kind and text of each finding after the first `known`.", findings),
    (c"start_trace", c"start_trace(): begins to record what runs; fails if a trace is active.", start_trace),
    (c"end_trace", c"end_trace(trace, path): writes the trace.", end_trace),
];

impl Handle for Interp {
    const NAME: &'static CStr = c"broadloom.checker";
}

fn checker(arguments: &Arguments<'_, '_>) -> Answer {
    let interp = Interp::new(Options { check: true, ..Options::default() });
    let context = Context::new(&Device::new(interp.clone()));
    arguments.answer((arguments.wrap(context)?, arguments.wrap(interp)?))
}

fn findings(arguments: &Arguments<'_, '_>) -> Answer {
    let (interp, known) = (arguments.handle::<Interp>(0)?, arguments.get::<usize>(1)?);
    let found = interp.findings_behind(known).into_iter();
    let found = found.map(|finding| (finding.kernel.clone(), format!("{:?}", finding.kind), finding.to_string()));
    arguments.answer(found.collect::<Vec<(String, String, String)>>())
}

/// A trace that Python ends.
#[derive(Clone)]
struct ActiveTrace(Arc<Mutex<Option<Trace>>>);

impl Handle for ActiveTrace {
    const NAME: &'static CStr = c"broadloom.trace";
}

fn start_trace(arguments: &Arguments<'_, '_>) -> Answer {
    let trace = Trace::start().ok_or_else(|| failed("a profile is active already"))?;
    arguments.wrap(ActiveTrace(Arc::new(Mutex::new(Some(trace)))))
}

fn end_trace(arguments: &Arguments<'_, '_>) -> Answer {
    let (trace, path) = (arguments.handle::<ActiveTrace>(0)?, arguments.get::<String>(1)?);
    let trace = trace.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(trace) = trace {
        let file = File::create(&path).map_err(|error| failed(format!("the profile `{path}` cannot be written: {error}")))?;
        trace.finish(&mut BufWriter::new(file)).map_err(failed)?;
    }
    arguments.answer(())
}
