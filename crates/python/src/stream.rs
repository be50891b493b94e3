//! StreamIt programs that are fed in pieces.
//!
//! A session borrows its program, so a thread of its own holds both and answers requests.

use crate::call::{Answer, Arguments, Entry};
use crate::error::{failed, refused};
use crate::handle::Handle;
use broadloom::Context;
use broadloom::device::{Device, Element};
use broadloom::stream::compiled::{Compiled, Ports, Session};
use broadloom::stream::eval::{Limits, Memory};
use broadloom::stream::{Failure, Program};
use std::ffi::CStr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Functions of the module.
pub(crate) const FUNCTIONS: &[Entry] = &[
    (c"stream", c"stream(context, text, name): a session of one stream of a program.", stream),
    (c"stream_types", c"stream_types(stream): the types of its input and its output.", types),
    (c"stream_latency", c"stream_latency(stream): items before the first output, items of a step, output of a step.", latency),
    (c"stream_feed", c"stream_feed(stream, bytes): the output that the input gives.", feed),
];

/// What a session says when it begins.
#[derive(Clone, Copy)]
struct Started {
    types: (&'static str, &'static str),
    latency: (u64, u64, u64),
}

/// Message of a session that could not begin or go on.
struct SessionFailure(String);

impl SessionFailure {
    fn of(failure: &Failure) -> SessionFailure {
        SessionFailure(failure.to_string())
    }
}

type Piece = Result<Vec<u8>, SessionFailure>;

struct Channels {
    requests: Sender<Vec<u8>>,
    replies: Receiver<Piece>,
}

/// A session in its thread, which ends with the last handle.
#[derive(Clone)]
struct RunningStream {
    started: Started,
    channels: Arc<Mutex<Channels>>,
}

impl Handle for RunningStream {
    const NAME: &'static CStr = c"broadloom.stream";
}

/// An item of a stream as bytes.
trait Item: Element {
    /// Name of NumPy.
    const NAME: &'static str;
    fn read(bytes: &[u8]) -> Vec<Self>;
    fn write(items: Vec<Self>) -> Vec<u8>;
}

macro_rules! items {
    ($($rust:ty, $name:literal;)*) => {
        $(impl Item for $rust {
            const NAME: &'static str = $name;
            fn read(bytes: &[u8]) -> Vec<Self> {
                let item = |chunk: &[u8]| chunk.try_into().map_or(Self::default(), Self::from_le_bytes);
                bytes.chunks_exact(size_of::<Self>()).map(item).collect()
            }
            fn write(items: Vec<Self>) -> Vec<u8> {
                items.into_iter().flat_map(Self::to_le_bytes).collect()
            }
        })*
    };
}

items! { i32, "int32"; f32, "float32"; f64, "float64"; }

type Feed = fn(&mut Session<'_>, &[u8]) -> Result<Vec<u8>, Failure>;

fn fed<I: Item, O: Item>(session: &mut Session<'_>, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
    session.feed::<I, O>(&I::read(bytes)).map(O::write)
}

/// Returns the function that feeds a session, and its types: the first that the session accepts.
fn feeding(session: &mut Session<'_>) -> Result<(Feed, (&'static str, &'static str)), Failure> {
    fn of<I: Item, O: Item>() -> (Feed, (&'static str, &'static str)) {
        (fed::<I, O>, (I::NAME, O::NAME))
    }
    let others = [
        of::<f32, i32>(),
        of::<f32, f64>(),
        of::<i32, i32>(),
        of::<i32, f32>(),
        of::<i32, f64>(),
        of::<f64, f64>(),
        of::<f64, f32>(),
        of::<f64, i32>(),
    ];
    let mut accepts = |(feed, types): (Feed, _)| feed(session, &[]).map(|_| (feed, types));
    let first = accepts(of::<f32, f32>());
    others.into_iter().fold(first, |found, next| found.or_else(|_| accepts(next)))
}

/// Serves a session until nobody asks any more. The first reply says whether it began.
fn serve(
    device: &Device,
    text: &str,
    name: &str,
    began: &Sender<Result<Started, SessionFailure>>,
    pieces: &Receiver<Vec<u8>>,
    out: &Sender<Piece>,
) {
    let run = || -> Result<(), Failure> {
        let program = Program::compile_stream(&[("stream.str", text)], name, &mut Memory::default(), &Limits::default())?;
        let compiled = Compiled::new(&program, device)?;
        let mut ports = Ports::default();
        let mut session = Session::new(&compiled, &mut ports)?;
        let (feed, types) = feeding(&mut session)?;
        let latency = session.latency();
        // Nobody waits for an answer if the caller was interrupted.
        drop(began.send(Ok(Started { types, latency: (latency.start, latency.step, latency.output) })));
        for piece in pieces {
            let fed = feed(&mut session, &piece).map_err(|failure| SessionFailure::of(&failure));
            if out.send(fed).is_err() {
                break;
            }
        }
        Ok(())
    };
    if let Err(failure) = run() {
        drop(began.send(Err(SessionFailure::of(&failure))));
    }
}

fn stream(arguments: &Arguments<'_, '_>) -> Answer {
    let (context, text) = (arguments.handle::<Context>(0)?, arguments.get::<String>(1)?);
    let (name, device) = (arguments.get::<String>(2)?, context.device().clone());
    let (requests, pieces) = channel();
    let (out, replies) = channel();
    let (began, beginning) = channel();
    let body = move || serve(&device, &text, &name, &began, &pieces, &out);
    // The compiler of streams recurs over the program.
    std::thread::Builder::new().name("stream".to_owned()).stack_size(64 << 20).spawn(body).map_err(failed)?;
    let started = arguments.py().detach(move || beginning.recv());
    let started =
        started.map_err(|_| crate::error::internal("the thread of a stream ended"))?.map_err(|failure| refused(failure.0))?;
    arguments.wrap(RunningStream { started, channels: Arc::new(Mutex::new(Channels { requests, replies })) })
}

fn types(arguments: &Arguments<'_, '_>) -> Answer {
    arguments.answer(arguments.handle::<RunningStream>(0)?.started.types)
}

fn latency(arguments: &Arguments<'_, '_>) -> Answer {
    arguments.answer(arguments.handle::<RunningStream>(0)?.started.latency)
}

fn feed(arguments: &Arguments<'_, '_>) -> Answer {
    let (stream, piece) = (arguments.handle::<RunningStream>(0)?, arguments.get::<Vec<u8>>(1)?);
    let fed = arguments.py().detach(move || {
        let channels = stream.channels.lock().unwrap_or_else(PoisonError::into_inner);
        channels.requests.send(piece).ok().and_then(|()| channels.replies.recv().ok())
    });
    let fed = fed.ok_or_else(|| crate::error::internal("the thread of a stream ended"))?.map_err(|failure| failed(failure.0))?;
    arguments.answer(pyo3::types::PyBytes::new(arguments.py(), &fed))
}
