//! One image that is read, computed and written band by band.
//!
//! A thread for each input file reads ahead, one writes, and bands are computed between them. Memory is needed for a few
//! bands and the rows around them. An image whose rows are needed in another order, or by several stages of the chain,
//! stays in memory with its own sample type. Images are taken as a whole where an effect reads them anywhere, where a
//! format must turn or count pixels, and where they are small.

use super::pipeline::{Failed, Times, Work, is_stream, read_stream};
use broadloom::effect::catalogue::Chain;
use broadloom::effect::effects::{Band, BandedChain, OnDevice, ReadOrder};
use broadloom::effect::file::{self, FileError, Limits, RowQueue, RowReader, WriteOptions};
use broadloom::effect::{EffectError, Image, Orientation, Rect, SampleType};
use std::collections::VecDeque;
use std::io::Write;
use std::path::Path;
use std::sync::PoisonError;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Images with at least this many samples are computed band by band.
const LARGE: u64 = 8 << 20;

/// Number of bands of an input file that are read ahead.
const AHEAD: usize = 1;

/// Bytes of an image that stays in memory if several stages read it. Files of larger images are read again.
const MOST_HELD: u64 = 160 << 20;

/// What is computed and written.
struct Plan<'a> {
    chain: BandedChain,
    /// Placeholder of the first input file.
    source: &'a Image,
    samples: Option<SampleType>,
    /// Placeholder of the result as it is written.
    header: Image,
}

/// An input file between the stages of a chain.
struct Input<'a> {
    path: &'a Path,
    /// The open file, before its rows are read.
    reader: Option<RowReader>,
    /// True if its rows stay in memory when they were read.
    is_held: bool,
    /// All rows, if they are in memory.
    bands: Vec<Image>,
}

/// Rows of an input file, as they are read.
struct Window {
    bands: VecDeque<Image>,
    /// Rows that are still to come; `None` if there are none.
    receiver: Option<Receiver<Result<Image, FileError>>>,
    /// True if rows stay when they were used.
    is_held: bool,
}

impl Window {
    /// Waits until rows are read, and drops those above unless they stay.
    fn rows(&mut self, needed: Rect) -> Result<Image, EffectError> {
        let is_above = |band: &Image| band.bounds().bottom() <= i64::from(needed.y);
        while !self.is_held && self.bands.front().is_some_and(is_above) {
            self.bands.pop_front();
        }
        while self.bands.back().is_none_or(|band| band.bounds().bottom() < needed.bottom()) {
            let Some(Ok(band)) = self.receiver.as_ref().map(Receiver::recv) else { break };
            let band = band?;
            if self.is_held || !is_above(&band) {
                self.bands.push_back(band);
            }
        }
        let whole = match self.bands.front() {
            // Columns are not copied apart while bands are dropped as a whole.
            Some(band) if !self.is_held => Rect { y: needed.y, height: needed.height, ..band.bounds() },
            _ => needed,
        };
        Ok(Image::of_bands(whole, self.bands.make_contiguous())?)
    }

    /// Reads the rest of the file, which tells whether it is broken.
    fn finish(&mut self) -> Result<(), FileError> {
        for band in self.receiver.take().into_iter().flatten() {
            let band = band?;
            if self.is_held {
                self.bands.push_back(band);
            }
        }
        Ok(())
    }
}

impl Work<'_> {
    /// Runs the effects on the bands of an image. Returns `None` if the image must be taken as a whole; its files are open
    /// then.
    pub(super) fn run_banded(&self, engine: &OnDevice, shows: bool) -> Result<Option<Times>, Failed> {
        let options = self.options;
        let is_shown = options.explain || options.compare || options.emit.is_some();
        let (Some(paths), false) = (self.single_files(), is_shown || options.rows == Some(0) || is_stream(&self.output)) else {
            return Ok(None);
        };
        let mut readers = vec![];
        for path in &paths {
            readers.push(self.opened(path)?);
        }
        let headers: Vec<Image> = readers.iter().map(|reader| reader.header().clone()).collect();
        let plan = self.plan(engine, &paths, &headers)?;
        let Some(plan) = plan else {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.extend(readers.into_iter().enumerate());
            return Ok(None);
        };
        self.run_plan(&plan, &paths, readers, shows).map(Some)
    }

    /// Plans the bands of a chain; `None` if the images must be taken as a whole.
    fn plan<'a>(&self, engine: &OnDevice, paths: &[&Path], headers: &'a [Image]) -> Result<Option<Plan<'a>>, EffectError> {
        let is_large = |image: &Image| image.bounds().area() * image.planes().len() as u64 >= LARGE;
        let source = &headers[0];
        if self.around > 0 || self.options.rows.is_none() && !headers.iter().any(is_large) {
            return Ok(None);
        }
        let lit = |header: &Image| header.changed_placeholder(|row| Ok::<Image, EffectError>(self.in_light(row)));
        let lit = headers.iter().map(lit).collect::<Result<Vec<Image>, EffectError>>()?;
        let (inputs, further) = lit.split_at(self.inputs_of_first().min(lit.len()));
        let (planes, region) = (&self.options.planes, self.options.region);
        let chain = Chain { steps: self.steps, inputs, further, planes, region };
        let Some(chain) = engine.banded(&chain, self.options.rows)? else { return Ok(None) };
        let header = chain.header()?;
        if !file::takes_bands(self.format, &header) {
            return Ok(None);
        }
        paths.iter().zip(headers).try_for_each(|(path, header)| self.check_input(path, header))?;
        let samples = self.samples(source);
        let row = source.changed_placeholder(Ok::<Image, EffectError>)?;
        let mut header = header.changed_placeholder(|image| self.finished(image, &row, samples, &self.output))?;
        if let Some(display) = self.display(header.bounds(), source) {
            header = header.with_display(display)?;
        }
        Ok(Some(Plan { chain, source, samples, header }))
    }

    fn run_plan(&self, plan: &Plan<'_>, paths: &[&Path], readers: Vec<RowReader>, shows: bool) -> Result<Times, Failed> {
        let mut times = Times { pixels: plan.header.bounds().area(), ..Times::default() };
        let mut inputs: Vec<Input<'_>> = vec![];
        for (number, (path, reader)) in paths.iter().zip(readers).enumerate() {
            let orders: Vec<ReadOrder> = (0..plan.chain.stages()).filter_map(|stage| plan.chain.reads(stage)[number]).collect();
            let header = reader.header();
            let samples = header.bounds().area() * header.planes().len() as u64;
            let bytes = if self.options.linear { 4 * samples } else { header.bytes() };
            let is_again = orders.len() > 1 && (is_stream(path) || bytes <= MOST_HELD);
            let is_held = is_again || orders.contains(&ReadOrder::Any);
            inputs.push(Input { path, reader: Some(reader), is_held, bands: vec![] });
        }
        let last = plan.chain.stages() - 1;
        for stage in 0..last {
            self.run_stage(plan, stage, &mut inputs, &mut times, shows)?;
        }
        let queue = RowQueue::new(self.format, plan.header.bounds());
        let options = WriteOptions { samples: plan.samples, ..self.write_options };
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let started = Instant::now();
                file::write_rows(&self.output, &plan.header, &queue, &options).map(|()| started.elapsed())
            });
            let computed = self.run_last(plan, &mut inputs, &queue, &mut times, shows);
            if computed.is_err() {
                queue.stop();
            }
            let written = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            // A stopped writer fails too. The failure before it is the reason.
            computed?;
            times.write = written.map_err(EffectError::from)?;
            Ok::<(), Failed>(())
        })?;
        let (rows, count) = (plan.chain.rows(last), plan.chain.bands(last).len());
        times.lines.push(format!("in {count} bands of {rows} rows, which are read, computed and written at the same time"));
        if last > 0 {
            let what = if last == 1 { "one pass".to_owned() } else { format!("{last} passes") };
            times.lines.push(format!("after {what} over the rows of the image"));
        }
        let losses = file::losses_in(self.format, &plan.header, plan.samples);
        losses.iter().for_each(|loss| self.warn(&self.output, loss));
        Ok(times)
    }

    /// Runs a stage before the last.
    fn run_stage(
        &self,
        plan: &Plan<'_>,
        stage: usize,
        inputs: &mut [Input<'_>],
        times: &mut Times,
        shows: bool,
    ) -> Result<(), Failed> {
        let mut pass = plan.chain.begin(stage)?;
        let mut spent = Duration::ZERO;
        self.with_windows(plan, stage, inputs, times, |windows| {
            let bands = plan.chain.bands(stage);
            for (number, region) in bands.iter().enumerate() {
                let band = plan.chain.band(stage, *region)?;
                let images = rows_of(&band, windows)?;
                let started = Instant::now();
                plan.chain.take(stage, &mut pass, band, &images)?;
                spent += started.elapsed();
                self.show(shows, &format!("band {} of {} of pass {}", number + 1, bands.len(), stage + 1));
            }
            windows.iter_mut().try_for_each(Window::finish).map_err(EffectError::from)?;
            Ok(())
        })?;
        let started = Instant::now();
        plan.chain.end(pass)?;
        times.effects += spent + started.elapsed();
        Ok(())
    }

    /// Computes all bands of the result, until the writer fails.
    fn run_last(
        &self,
        plan: &Plan<'_>,
        inputs: &mut [Input<'_>],
        queue: &RowQueue,
        times: &mut Times,
        shows: bool,
    ) -> Result<(), Failed> {
        let stage = plan.chain.stages() - 1;
        let mut spent = Duration::ZERO;
        self.with_windows(plan, stage, inputs, times, |windows| {
            let bands = plan.chain.bands(stage);
            for (number, region) in bands.iter().enumerate() {
                let band = plan.chain.band(stage, *region)?;
                let images = rows_of(&band, windows)?;
                if number + 1 == bands.len() {
                    // Before the last rows are written, so that no complete file comes of a broken one.
                    windows.iter_mut().try_for_each(Window::finish).map_err(EffectError::from)?;
                }
                let failed = |error| Failed { error, output: Some(self.output.as_path().into()) };
                // Colours that are converted later must not be rounded before.
                let samples = plan.samples.filter(|_| !self.options.linear && self.options.to.is_none());
                let started = Instant::now();
                let image = plan.chain.compute(band, &images, samples).map_err(failed)?;
                spent += started.elapsed();
                let image = self.finished(image, plan.source, plan.samples, &self.output)?;
                if !queue.push(image).map_err(EffectError::from)? {
                    break;
                }
                self.show(shows, &format!("band {} of {}", number + 1, bands.len()));
            }
            Ok(())
        })?;
        times.effects += spent;
        Ok(())
    }

    /// Calls a function while the input files of a stage are read.
    fn with_windows(
        &self,
        plan: &Plan<'_>,
        stage: usize,
        inputs: &mut [Input<'_>],
        times: &mut Times,
        run: impl FnOnce(&mut [Window]) -> Result<(), Failed>,
    ) -> Result<(), Failed> {
        std::thread::scope(|scope| {
            let (mut windows, mut threads) = (vec![], vec![]);
            // Files that no stage reads are read to their ends by the last one, which tells whether they are broken.
            let is_last = stage + 1 == plan.chain.stages();
            for (input, order) in inputs.iter_mut().zip(plan.chain.reads(stage)) {
                let is_unread = is_last && input.reader.is_some();
                let mut window =
                    Window { bands: std::mem::take(&mut input.bands).into(), receiver: None, is_held: input.is_held };
                if window.bands.is_empty() && (order.is_some() || is_unread) {
                    let reader = match input.reader.take() {
                        Some(reader) => reader,
                        None => self.opened(input.path)?,
                    };
                    let (sender, receiver) = sync_channel(AHEAD);
                    window.receiver = Some(receiver);
                    threads.push(scope.spawn(move || self.read_bands(reader, plan.chain.rows(stage), &sender)));
                }
                windows.push(window);
            }
            let outcome = run(&mut windows);
            for (input, window) in inputs.iter_mut().zip(windows) {
                if input.is_held {
                    input.bands = window.bands.into();
                }
            }
            for thread in threads {
                times.read += thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            }
            outcome
        })
    }

    /// Opens an input file. Its pixels are upright if that is asked for.
    fn opened(&self, path: &Path) -> Result<RowReader, EffectError> {
        let reader = if is_stream(path) { read_stream() } else { file::open_rows(path, Limits::default()) }?;
        let is_turned = self.options.auto_orient && reader.header().orientation() != Orientation::Upright;
        Ok(if is_turned { reader.upright()? } else { reader })
    }

    /// Shows how far the work is.
    fn show(&self, shows: bool, place: &str) {
        if shows {
            let _ = write!(std::io::stderr(), "\r\x1b[K{}: {place}", self.options.name);
            let _ = std::io::stderr().flush();
        }
    }

    /// Reads the bands of a file until the receiver closes the channel. Returns the time of reading alone.
    fn read_bands(&self, mut reader: RowReader, rows: u32, out: &SyncSender<Result<Image, FileError>>) -> Duration {
        let mut spent = Duration::ZERO;
        loop {
            let started = Instant::now();
            let band = reader.read(rows).map(|band| band.map(|band| self.in_light(band))).transpose();
            spent += started.elapsed();
            let Some(band) = band else { return spent };
            let is_last = band.is_err();
            if out.send(band).is_err() || is_last {
                return spent;
            }
        }
    }
}

/// Returns the rows that a band needs.
fn rows_of(band: &Band, windows: &mut [Window]) -> Result<Vec<Option<Image>>, EffectError> {
    let rows = band.needs().iter().zip(windows);
    rows.map(|(needed, window)| needed.map(|needed| window.rows(needed)).transpose()).collect()
}
