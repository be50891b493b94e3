//! Reading, computing and writing of frames, all three concurrently.
//!
//! One thread reads ahead, one writes, and effects run between them. At most [`AHEAD`] frames wait on either
//! side. The first failure ends all three. Frames that were already written are kept. A signal that ends the command
//! removes the file that is being written.

use super::failure::{failure, failure_with, usage};
use super::frames::Pattern;
use crate::failure::{Exit, Failure, codes};
use crate::options::{Depth, Effect, Effort, Space};
use crate::terminal::Terminal;
use crate::watch::before_end;
use broadloom::Context;
use broadloom::cpu::signals;
use broadloom::diag::Diagnostic;
use broadloom::effect::catalogue::{Chain, Engine, Inputs, Reference, Step};
use broadloom::effect::effects::OnDevice;
use broadloom::effect::file::{self, Compression, FileError, Format, Limits, Problem, RowReader, WriteOptions};
use broadloom::effect::image::{SpaceError, TargetSpace};
use broadloom::effect::plan::{Options, Switch};
use broadloom::effect::{ColorSpace, EffectError, Image, Plane, Rect, SampleType};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of frames that wait between two stages.
const AHEAD: usize = 2;

/// Input file: a single one, or one per frame.
enum Input {
    One(PathBuf),
    Frames(Pattern),
}

/// Images of a frame on their way to the effects.
struct Frame {
    output: PathBuf,
    inputs: Vec<Image>,
    further: Vec<Image>,
}

/// Times of the stages.
#[derive(Default)]
pub(super) struct Times {
    pub(super) read: Duration,
    pub(super) effects: Duration,
    /// Plan of the first frame.
    pub(super) plan: String,
    /// Lines about kernels and optimisations.
    pub(super) lines: Vec<String>,
    pub(super) write: Duration,
    pub(super) pixels: u64,
}

/// Error of a stage.
pub(super) struct Failed {
    pub(super) error: EffectError,
    /// File whose image could not be computed.
    pub(super) output: Option<Box<Path>>,
}

impl From<EffectError> for Failed {
    fn from(error: EffectError) -> Failed {
        Failed { error, output: None }
    }
}

/// Runs a chain on files.
pub fn run(
    options: &Effect,
    steps: &[Step],
    inputs: &[PathBuf],
    output: &Path,
    terminal: &mut Terminal,
) -> Result<Exit, Failure> {
    let work = Work::new(options, steps, inputs, output, terminal)?;
    if let Some(remark) = missing(&work.frames[work.computed.clone()]).filter(|_| !broadloom::device::settings::is_quiet()) {
        terminal.remark(&remark);
    }
    let (mut engine, device) = engine(options)?;
    let started = Instant::now();
    let shows = std::io::stderr().is_terminal() && !broadloom::device::settings::is_quiet();
    remove_unfinished_on_signals();
    before_end(|_, _| {
        // No thread begins or finishes a file any more.
        std::mem::forget(file::discard_unfinished());
    });
    let outcome = match &mut engine {
        Machine::Device(engine) => match work.run_banded(engine, shows) {
            Ok(Some(times)) => Ok(times),
            Ok(None) => work.run(engine, shows),
            Err(failed) => Err(failed),
        },
        Machine::References(engine) => work.run(engine, shows),
    };
    if shows {
        // Clears the progress line. A closed standard error is ignored.
        let _ = write!(std::io::stderr(), "\r\x1b[K");
    }
    let times = outcome.map_err(|Failed { error, output }| {
        // The message must name the frame of a sequence.
        let place = output.filter(|_| work.written.is_some()).map(|path| format!("while computing {}", path.display()));
        failure_with(error, place)
    })?;
    terminal.write(&times.plan);
    if options.stats || options.compare {
        report(&work, &times, &device, started.elapsed(), terminal);
    }
    match work.skipped.load(Ordering::Relaxed) {
        0 => Ok(Exit::Done),
        count => {
            terminal.remark(&format!("{count} of {} frames were skipped", work.computed.len()));
            Ok(Exit::Failed)
        }
    }
}

/// Removes files that are being written before a signal ends the command.
fn remove_unfinished_on_signals() {
    let Some(mut signals) = signals::catch() else { return };
    std::thread::spawn(move || {
        if let Some(received) = signals.wait() {
            let _discarded = file::discard_unfinished();
            signals::end_by(received.signal);
        }
    });
}

/// Where effects run.
enum Machine {
    References(Reference),
    Device(OnDevice),
}

/// Returns the reference implementation or the effects on a device, with a name.
fn engine(options: &Effect) -> Result<(Machine, String), Failure> {
    if options.reference {
        return Ok((Machine::References(Reference), "the references".to_owned()));
    }
    let name = options.device.as_deref().unwrap_or("auto");
    let device = broadloom::open(name)
        .map_err(|error| Failure::new(Exit::Machine, Diagnostic::error(codes::NO_DEVICE, error.to_string())))?;
    let is_all = options.without.iter().any(|name| name == "all");
    let mut choices = if is_all { Options::straight() } else { Options::default() };
    choices.memory = options.memory;
    for name in &options.without {
        if let Some(switch) = choices.switch(name) {
            *switch = Switch::Off;
        }
    }
    let engine = OnDevice::new(&Context::new(&device), choices);
    Ok((Machine::Device(engine), device.machine().id.clone()))
}

/// Files and frames of a call.
pub(super) struct Work<'a> {
    pub(super) options: &'a Effect,
    pub(super) steps: &'a [Step],
    inputs: Vec<Input>,
    pub(super) output: PathBuf,
    /// Choices of the written files, without the type of their samples.
    pub(super) write_options: WriteOptions,
    /// Format of the written files.
    pub(super) format: Format,
    /// Numbers of the frames that are read; a single `None` if there is no sequence.
    frames: Vec<Option<u64>>,
    /// Indices of the frames that are computed. The other frames are their neighbours.
    computed: Range<usize>,
    written: Option<Pattern>,
    /// Number of frames before the current one that the first effect takes; as many are taken after it.
    pub(super) around: usize,
    terminal: Terminal,
    /// Warnings that were printed, without the names of the files.
    warned: Mutex<BTreeSet<String>>,
    /// Number of frames that were skipped.
    skipped: AtomicUsize,
    /// Input files that are open, by their places, if they are no sequences.
    pub(super) open: Mutex<BTreeMap<usize, RowReader>>,
}

impl<'a> Work<'a> {
    fn new(
        options: &'a Effect,
        steps: &'a [Step],
        inputs: &[PathBuf],
        output: &Path,
        terminal: &Terminal,
    ) -> Result<Work<'a>, Failure> {
        let of = |path: &PathBuf| Pattern::new(path).map_or_else(|| Input::One(path.clone()), Input::Frames);
        let inputs: Vec<Input> = inputs.iter().map(of).collect();
        let sequence = inputs.iter().find_map(|input| match input {
            Input::Frames(pattern) => Some(pattern),
            Input::One(_) => None,
        });
        let written = Pattern::new(output);
        let write_options = write_options(options, output);
        let format = file::format_of_target(output, &write_options)
            .map_err(|problem| failure(FileError { path: output.to_owned(), problem }.into()))?;
        check_streams(options, &inputs, output)?;
        let around = match steps[0].effect().inputs {
            Inputs::Frames(parameter) => steps[0].integer(parameter) as usize,
            Inputs::Images(_) => 0,
        };
        let (frames, computed): (Vec<Option<u64>>, Range<usize>) = match (sequence, options.frames) {
            (Some(pattern), range) => {
                let (numbers, computed) = numbers(pattern, range, around)?;
                (numbers.into_iter().map(Some).collect(), computed)
            }
            (None, None) => (vec![None], 0..1),
            (None, Some(_)) => return Err(usage("--frames is for sequences".to_owned(), "write in.%04d.exr for the files")),
        };
        match (sequence.is_some(), written.is_some()) {
            (true, false) => return Err(usage("the result is a sequence too".to_owned(), "write out.%04d.exr for the files")),
            (false, true) => return Err(usage("there is no sequence to read".to_owned(), "write in.%04d.exr for the files")),
            _ => {}
        }
        // Checked now, so that the error is reported before the computation.
        let first = match (&written, frames.get(computed.start)) {
            (Some(pattern), Some(Some(number))) => pattern.file(*number),
            _ => output.to_owned(),
        };
        if !is_stream(&first) {
            file::check_target(&first, &write_options).map_err(|error| failure(error.into()))?;
        }
        let (terminal, warned, skipped) = (terminal.clone(), Mutex::default(), AtomicUsize::default());
        let output = output.to_owned();
        Ok(Work {
            options,
            steps,
            inputs,
            output,
            write_options,
            format,
            frames,
            computed,
            written,
            around,
            terminal,
            warned,
            skipped,
            open: Mutex::default(),
        })
    }

    /// Returns the input files, unless frames of a sequence are processed.
    pub(super) fn single_files(&self) -> Option<Vec<&Path>> {
        let mut files = vec![];
        for input in &self.inputs {
            match input {
                Input::One(path) => files.push(path.as_path()),
                Input::Frames(_) => return None,
            }
        }
        Some(files).filter(|_| self.written.is_none())
    }

    /// Says that a frame is skipped, and why.
    fn skip(&self, output: &Path, error: &EffectError) {
        self.skipped.fetch_add(1, Ordering::Relaxed);
        self.terminal.clone().remark(&format!("skipped {}: {error}", output.display()));
    }

    /// Prints a warning about a file. For a sequence, it is printed for the first file alone.
    pub(super) fn warn(&self, path: &Path, text: &str) {
        let is_new = self.warned.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned());
        if is_new && !broadloom::device::settings::is_quiet() {
            self.terminal.clone().remark(&format!("warning: {}: {text}", path.display()));
        }
    }

    /// Runs all stages until the last frame is written.
    fn run(&self, engine: &mut dyn Engine, shows: bool) -> Result<Times, Failed> {
        std::thread::scope(|scope| {
            let (to_effects, from_reader) = sync_channel(AHEAD);
            let (to_writer, from_effects) = sync_channel(AHEAD);
            let reader = scope.spawn(move || self.read_all(&to_effects));
            let writer = scope.spawn(move || self.write_all(&from_effects));
            let computed = self.compute_all(engine, from_reader, to_writer, shows);
            // A stage that cannot continue closes its channel. The failed stage reports the reason.
            let written = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let read = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let mut times = computed?;
            times.read = read?;
            times.write = written?;
            Ok(times)
        })
    }

    /// Reads and sends frames until the receiver closes the channel.
    fn read_all(&self, out: &SyncSender<Frame>) -> Result<Duration, EffectError> {
        let mut spent = Duration::ZERO;
        // Images that are used again: images of single files, and frames around the current one.
        let mut kept: BTreeMap<(usize, usize), Image> = BTreeMap::new();
        let last = self.frames.len() - 1;
        for index in self.computed.clone() {
            let frame = self.frames[index];
            let started = Instant::now();
            let mut images = vec![];
            let output = match (&self.written, frame) {
                (Some(pattern), Some(number)) => pattern.file(number),
                _ => self.output.clone(),
            };
            let mut failure = None;
            for (place, input) in self.inputs.iter().enumerate() {
                let around = if place == 0 { self.around } else { 0 };
                let first = index.saturating_sub(around);
                kept.retain(|(of, at), _| *of != place || *at >= first || matches!(input, Input::One(_)));
                for offset in 0..=2 * around {
                    let at = (index + offset).saturating_sub(around).min(last);
                    let at = if matches!(input, Input::One(_)) { 0 } else { at };
                    let image = match kept.get(&(place, at)) {
                        Some(image) => image.clone(),
                        None => {
                            let image = match self.read(place, self.frames[at]) {
                                Ok(image) => image,
                                Err(error) if self.options.keep_going => {
                                    failure = Some(error);
                                    continue;
                                }
                                Err(error) => return Err(error),
                            };
                            kept.insert((place, at), image.clone());
                            image
                        }
                    };
                    images.push(image);
                }
            }
            spent += started.elapsed();
            if let Some(error) = failure {
                self.skip(&output, &error);
                continue;
            }
            let further = images.split_off(self.inputs_of_first());
            if out.send(Frame { output, inputs: images, further }).is_err() {
                break;
            }
        }
        Ok(spent)
    }

    fn read(&self, place: usize, frame: Option<u64>) -> Result<Image, EffectError> {
        let path = match (&self.inputs[place], frame) {
            (Input::Frames(pattern), Some(number)) => pattern.file(number),
            (Input::Frames(pattern), None) => pattern.file(0),
            (Input::One(path), _) => path.clone(),
        };
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&place);
        let image = match open {
            Some(reader) => reader.into_image()?,
            None if is_stream(&path) => read_stream()?.into_image()?,
            None => file::read(&path)?,
        };
        self.check_input(&path, &image)?;
        Ok(if self.options.auto_orient { image.upright()? } else { image })
    }

    /// Reports what is lost of an input file, and fails if its colours cannot be converted. `image` may be a placeholder.
    pub(super) fn check_input(&self, path: &Path, image: &Image) -> Result<(), EffectError> {
        image.metadata().losses.iter().for_each(|loss| self.warn(path, loss));
        if let Some(doubt) = image.encoding_doubt().filter(|_| self.options.linear) {
            let reason =
                format!("--linear converts sRGB, and {doubt}: leave out --linear, or convert the colours to sRGB before");
            return Err(FileError { path: path.to_owned(), problem: Problem::Unsupported(reason) }.into());
        }
        Ok(())
    }

    /// Runs the effects on frames as they come.
    fn compute_all(
        &self,
        engine: &mut dyn Engine,
        frames: Receiver<Frame>,
        out: SyncSender<(PathBuf, Image, Option<SampleType>)>,
        shows: bool,
    ) -> Result<Times, Failed> {
        let mut times = Times::default();
        for (index, frame) in frames.into_iter().enumerate() {
            let path = frame.output.clone();
            match self.compute(engine, index, frame, &mut times, shows) {
                Ok(result) => {
                    if out.send(result).is_err() {
                        break;
                    }
                }
                Err(failed) if self.options.keep_going => self.skip(&path, &failed.error),
                Err(failed) => return Err(failed),
            }
        }
        Ok(times)
    }

    /// Runs the effects on a frame. Returns the path, the image and the sample type of the output.
    fn compute(
        &self,
        engine: &mut dyn Engine,
        index: usize,
        frame: Frame,
        times: &mut Times,
        shows: bool,
    ) -> Result<(PathBuf, Image, Option<SampleType>), Failed> {
        let total = self.computed.len();
        let source = frame.inputs[frame.inputs.len() / 2 * usize::from(self.around > 0)].clone();
        let inputs: Vec<Image> = frame.inputs.into_iter().map(|image| self.in_light(image)).collect();
        let further: Vec<Image> = frame.further.into_iter().map(|image| self.in_light(image)).collect();
        if shows {
            let place = if total > 1 { format!("frame {} of {total}, ", index + 1) } else { String::new() };
            let names = &self.options.name;
            let _ = write!(std::io::stderr(), "\r\x1b[K{place}{names} of {}×{}", source.width(), source.height());
            let _ = std::io::stderr().flush();
        }
        let mut progress = |done: usize, tiles: usize| {
            if shows {
                let place = if total > 1 { format!("frame {} of {total}, ", index + 1) } else { String::new() };
                let names = &self.options.name;
                let _ = write!(std::io::stderr(), "\r\x1b[K{place}{names}: tile {done} of {tiles}");
                let _ = std::io::stderr().flush();
            }
        };
        let chain = Chain {
            steps: self.steps,
            inputs: &inputs,
            further: &further,
            planes: &self.options.planes,
            region: self.options.region,
        };
        if self.around > 0 && inputs.iter().any(|image| image.orientation() != source.orientation()) {
            let effect = self.steps[0].effect().name;
            let reason = "its frames must have the same orientation: --auto-orient turns them upright".to_owned();
            return Err(Failed { error: EffectError::Inputs { effect, reason }, output: Some(frame.output.into()) });
        }
        let started = Instant::now();
        let failed = |error| Failed { error, output: Some(frame.output.as_path().into()) };
        let mut image = engine.run_chain(&chain, &mut progress).map_err(failed)?;
        times.effects += started.elapsed();
        if self.options.explain && index == 0 {
            times.plan = engine.explain(&chain)?;
        }
        if self.options.emit.is_some() && index == 0 {
            times.plan = engine.ptx(&chain)?;
        }
        if self.options.stats && index == 0 {
            times.lines.extend(engine.statistics(&chain)?);
        }
        if self.options.compare && index == 0 {
            times.lines.extend(engine.comparison(&chain)?);
        }
        times.pixels += image.bounds().area();
        if let Some(display) = self.display(image.bounds(), &source) {
            image = image.with_display(display).map_err(EffectError::from)?;
        }
        let samples = self.samples(&source);
        let image = self.finished(image, &source, samples, &frame.output)?;
        Ok((frame.output, image, samples))
    }

    /// Returns the result of the effects with the colours and the sample types with which it is written. Every sample is
    /// converted by itself, so the images may be bands or placeholders of one row.
    pub(super) fn finished(
        &self,
        mut image: Image,
        source: &Image,
        samples: Option<SampleType>,
        path: &Path,
    ) -> Result<Image, EffectError> {
        if self.options.linear {
            image = self.encoded(image, source, samples, path)?;
        }
        if let Some(space) = self.options.to {
            image = self.in_space(image, space, path)?;
        }
        if samples.is_none() {
            image = like(&image, source)?;
        }
        Ok(image)
    }

    /// Returns the number of images of the first effect.
    pub(super) fn inputs_of_first(&self) -> usize {
        match self.steps[0].effect().inputs {
            Inputs::Images(roles) => roles.len(),
            Inputs::Frames(_) => 2 * self.around + 1,
        }
    }

    /// Returns an input image as the effects take it.
    pub(super) fn in_light(&self, image: Image) -> Image {
        if self.options.linear { image.to_linear() } else { image }
    }

    /// Returns an image in linear light as it is written: in the colours of the source where the file has integers.
    fn encoded(&self, image: Image, source: &Image, samples: Option<SampleType>, path: &Path) -> Result<Image, EffectError> {
        if matches!(samples, Some(SampleType::U8 | SampleType::U16)) {
            let mut image = image.to_srgb();
            if source.color() == ColorSpace::Srgb {
                image.metadata_mut().color = source.metadata().color.clone();
            }
            return Ok(image);
        }
        let profile = source.metadata().color.profile.as_ref();
        if source.color() == ColorSpace::Srgb && profile.is_some_and(|profile| !profile.is_srgb()) {
            let reason = "linear light of the colours of the ICC profile cannot be described: leave out --linear, write integers, or \
                          convert the colours to sRGB before";
            return Err(FileError { path: path.to_owned(), problem: Problem::Unsupported(reason.to_owned()) }.into());
        }
        Ok(image)
    }

    /// Returns an image with its colours in another space.
    fn in_space(&self, image: Image, space: Space, path: &Path) -> Result<Image, EffectError> {
        let space = match space {
            Space::Srgb => TargetSpace::Srgb,
            Space::Linear => TargetSpace::Linear,
            Space::P3 => TargetSpace::P3,
            Space::Rec709 => TargetSpace::Rec709,
            Space::Aces => TargetSpace::Aces,
        };
        let mut image = image.to_space(space).map_err(|error| match error {
            SpaceError::Unknown(reason) => {
                let reason = format!("the colours cannot be converted: {reason}; leave out --to, or convert them before");
                EffectError::File(FileError { path: path.to_owned(), problem: Problem::Unsupported(reason) })
            }
            SpaceError::Image(error) => error.into(),
        })?;
        if self.format == Format::Exr && image.color() == ColorSpace::Linear {
            // Chromaticities say all about linear light.
            image.metadata_mut().color.profile = None;
        }
        Ok(image)
    }

    /// Returns the displayed rectangle of a result, if it is that of the source.
    pub(super) fn display(&self, bounds: Rect, source: &Image) -> Option<Rect> {
        (self.options.region.is_none() && bounds == source.bounds()).then(|| source.display())
    }

    /// Returns the sample type of the output: the requested one, or that of the source. `None` if planes have
    /// different types.
    pub(super) fn samples(&self, source: &Image) -> Option<SampleType> {
        let types = self.format.sample_types();
        match (self.options.depth, self.format) {
            (Some(depth), _) => Some(depth.sample_type()),
            (None, Format::Exr) => None,
            (None, Format::Png | Format::Dpx) if source.sample_type() != SampleType::U8 => Some(SampleType::U16),
            (None, _) => Some(source.sample_type()).filter(|sample| types.contains(sample)).or(types.last().copied()),
        }
    }

    /// Writes images as they come.
    fn write_all(&self, images: &Receiver<(PathBuf, Image, Option<SampleType>)>) -> Result<Duration, EffectError> {
        let mut spent = Duration::ZERO;
        for (path, image, samples) in images {
            let started = Instant::now();
            let options = WriteOptions { samples, ..self.write_options };
            let written = match is_stream(&path) {
                true => write_stream(self.format, &image, &options),
                false => file::write_with(&path, &image, &options),
            };
            match written {
                Ok(()) => {}
                Err(error) if self.options.keep_going => {
                    self.skip(&path, &error.into());
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            file::losses_in(self.format, &image, samples).iter().for_each(|loss| self.warn(&path, loss));
            spent += started.elapsed();
        }
        Ok(spent)
    }
}

/// Returns the choices of the written files, without the type of their samples.
fn write_options(options: &Effect, output: &Path) -> WriteOptions {
    let compression = match options.compression {
        Effort::Fast => Compression::Fast,
        Effort::Balanced => Compression::Balanced,
        Effort::Best => Compression::Best,
    };
    let format = options.format.or_else(|| is_stream(output).then_some(Format::Png));
    let samples = options.depth.map(Depth::sample_type);
    let bits = options.depth.and_then(Depth::bits);
    WriteOptions { format, samples, bits, compression, quality: options.quality }
}

/// Returns whether a path means standard input or output.
pub(super) fn is_stream(path: &Path) -> bool {
    path == Path::new("-")
}

/// Fails if standard input or output is used twice, or if a terminal would show an image.
fn check_streams(options: &Effect, inputs: &[Input], output: &Path) -> Result<(), Failure> {
    let streams = inputs.iter().filter(|input| matches!(input, Input::One(path) if is_stream(path))).count();
    if streams > 1 {
        return Err(usage("standard input holds one image".to_owned(), "write `-` for one of the input files alone"));
    }
    if !is_stream(output) {
        return Ok(());
    }
    if options.explain || options.emit.is_some() {
        let message = "standard output cannot take the image and the text of --explain or --emit".to_owned();
        return Err(usage(message, "write the image to a file"));
    }
    match std::io::stdout().is_terminal() {
        true => Err(usage("the image would be shown as text by the terminal".to_owned(), "redirect it: > out.png")),
        false => Ok(()),
    }
}

/// Opens an image from standard input.
pub(super) fn read_stream() -> Result<RowReader, FileError> {
    let (name, mut bytes) = ("standard input", vec![]);
    let read = std::io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(|error| FileError { path: name.into(), problem: Problem::Read(error) })?;
    file::decode_rows(name, bytes, Limits::default())
}

/// Writes an image to standard output.
fn write_stream(format: Format, image: &Image, options: &WriteOptions) -> Result<(), FileError> {
    let fail = |problem| FileError { path: "standard output".into(), problem };
    let bytes = file::encode(format, image, options).map_err(fail)?;
    let mut out = std::io::stdout().lock();
    out.write_all(&bytes).and_then(|()| out.flush()).map_err(|error| fail(Problem::Write(error)))
}

/// Returns an image whose planes have half precision if the corresponding planes of the source do.
fn like(image: &Image, source: &Image) -> Result<Image, EffectError> {
    let typed = image.planes().iter().map(|plane| {
        let like = source.plane(plane.name()).map_or(source.sample_type(), Plane::sample_type);
        if like == SampleType::F16 { plane.converted(SampleType::F16) } else { plane.clone() }
    });
    Ok(image.with_planes(typed.collect())?)
}

/// Returns a message about missing frames between the first and the last one.
fn missing(frames: &[Option<u64>]) -> Option<String> {
    let numbers: Vec<u64> = frames.iter().copied().flatten().collect();
    let gaps = numbers.windows(2).map(|pair| (pair[0] + 1, pair[1] - pair[0] - 1)).filter(|(_, count)| *count > 0);
    let (first, count) = gaps.reduce(|(first, count), (_, more)| (first, count + more))?;
    Some(match count {
        1 => format!("frame {first} is missing; the others are processed"),
        _ => format!("{count} frames are missing, the first is {first}; the others are processed"),
    })
}

/// Returns the frame numbers of a sequence, and the indices of the frames that are computed: a range, or all
/// existing frames. Up to `around` existing frames before and after a range are also read.
fn numbers(pattern: &Pattern, range: Option<(u64, u64)>, around: usize) -> Result<(Vec<u64>, Range<usize>), Failure> {
    let shown = pattern.file(1);
    let folder = shown.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let existing = pattern.existing().map_err(|error| {
        let message = format!("{} cannot be read: {error}", folder.display());
        Failure::usage(Diagnostic::error(codes::CANNOT_READ, message))
    })?;
    if let Some((first, last)) = range {
        let at = |number: u64| existing.partition_point(|own| *own < number);
        let (from, to) = (at(first), at(last.saturating_add(1)));
        let unbroken = existing[from..to].iter().zip(first..=last).take_while(|(own, number)| *own == number).count() as u64;
        if unbroken <= last - first {
            let number = first + unbroken;
            let message = format!("frame {number} is missing: there is no file {}", pattern.file(number).display());
            return Err(Failure::usage(Diagnostic::error(codes::CANNOT_READ, message).help("choose other frames".to_owned())));
        }
        let before = from.saturating_sub(around);
        let behind = to.saturating_add(around).min(existing.len());
        return Ok((existing[before..behind].to_vec(), from - before..to - before));
    }
    match existing.is_empty() {
        false => {
            let all = 0..existing.len();
            Ok((existing, all))
        }
        true => {
            let message = format!("there is no frame: no file is named like {}", shown.display());
            Err(Failure::usage(Diagnostic::error(codes::CANNOT_READ, message)))
        }
    }
}

/// Writes the times to standard error.
fn report(work: &Work<'_>, times: &Times, device: &str, total: Duration, terminal: &mut Terminal) {
    let count = work.computed.len();
    let frames = if count == 1 { "1 frame".to_owned() } else { format!("{count} frames") };
    let megapixels = times.pixels as f64 / 1e6;
    let digits = if megapixels < 1.0 { 3 } else { 1 };
    terminal.remark(&format!("{frames} on {device}, {megapixels:.digits$} megapixels, in {:.3} s", total.as_secs_f64()));
    let mut line = |name: &str, time: Duration| terminal.remark(&format!("  {name:<18}{:>10.3} ms", time.as_secs_f64() * 1e3));
    line("read", times.read);
    line(&work.options.name, times.effects);
    line("write", times.write);
    for line in &times.lines {
        terminal.remark(&format!("  {line}"));
    }
}

impl Depth {
    /// Returns the number of bits of an integer.
    fn bits(self) -> Option<u8> {
        match self {
            Depth::Eight => Some(8),
            Depth::Ten => Some(10),
            Depth::Twelve => Some(12),
            Depth::Sixteen => Some(16),
            Depth::Half | Depth::Float => None,
        }
    }

    fn sample_type(self) -> SampleType {
        match self {
            Depth::Eight => SampleType::U8,
            Depth::Ten | Depth::Twelve | Depth::Sixteen => SampleType::U16,
            Depth::Half => SampleType::F16,
            Depth::Float => SampleType::F32,
        }
    }
}
