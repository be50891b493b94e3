//! One image that is read, computed and written band by band.
//!
//! A thread for each input file reads ahead, one writes, and bands are computed between them. Memory is needed for a few
//! bands and the rows around them. Images are taken as a whole where an effect reads them anywhere, where a format must
//! turn or count pixels, and where they are small.

use super::pipeline::{Failed, Times, Work, is_stream, read_stream};
use broadloom::effect::catalogue::Chain;
use broadloom::effect::effects::{BandedChain, OnDevice};
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

/// What is computed and written.
struct Plan<'a> {
    chain: BandedChain,
    /// Placeholder of the first input file.
    source: &'a Image,
    samples: Option<SampleType>,
    /// Placeholder of the result as it is written.
    header: Image,
}

/// Rows of an input file, as they are read.
struct Window {
    bands: VecDeque<Image>,
    receiver: Receiver<Result<Image, FileError>>,
}

impl Window {
    /// Waits until rows are read, and drops those above.
    fn rows(&mut self, needed: Rect) -> Result<Image, EffectError> {
        while self.bands.front().is_some_and(|band| band.bounds().bottom() <= i64::from(needed.y)) {
            self.bands.pop_front();
        }
        while self.bands.back().is_none_or(|band| band.bounds().bottom() < needed.bottom()) {
            let Ok(band) = self.receiver.recv() else { break };
            let band = band?;
            if band.bounds().bottom() > i64::from(needed.y) {
                self.bands.push_back(band);
            }
        }
        let whole = self.bands.front().map_or(needed, |band| Rect { y: needed.y, height: needed.height, ..band.bounds() });
        Ok(Image::of_bands(whole, self.bands.make_contiguous())?)
    }

    /// Reads the rest of the file, which tells whether it is broken.
    fn finish(&mut self) -> Result<(), FileError> {
        self.receiver.iter().try_for_each(|band| band.map(drop))
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
            let reader = if is_stream(path) { read_stream() } else { file::open_rows(path, Limits::default()) };
            readers.push(reader.map_err(EffectError::from)?);
        }
        let headers: Vec<Image> = readers.iter().map(|reader| reader.header().clone()).collect();
        let plan = self.plan(engine, &paths, &headers)?;
        let Some(plan) = plan else {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.extend(readers.into_iter().enumerate());
            return Ok(None);
        };
        self.run_plan(&plan, readers, shows).map(Some)
    }

    /// Plans the bands of a chain; `None` if the images must be taken as a whole.
    fn plan<'a>(&self, engine: &OnDevice, paths: &[&Path], headers: &'a [Image]) -> Result<Option<Plan<'a>>, EffectError> {
        let is_large = |image: &Image| image.bounds().area() * image.planes().len() as u64 >= LARGE;
        let is_turned = |image: &Image| self.options.auto_orient && image.orientation() != Orientation::Upright;
        let source = &headers[0];
        if self.around > 0 || self.options.rows.is_none() && !headers.iter().any(is_large) || headers.iter().any(is_turned) {
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

    fn run_plan(&self, plan: &Plan<'_>, readers: Vec<RowReader>, shows: bool) -> Result<Times, Failed> {
        let options = WriteOptions { samples: plan.samples, ..self.write_options };
        let queue = RowQueue::new(self.format, plan.header.bounds());
        let mut times = Times { pixels: plan.header.bounds().area(), ..Times::default() };
        std::thread::scope(|scope| {
            let (mut windows, mut threads) = (vec![], vec![]);
            for reader in readers {
                let (sender, receiver) = sync_channel(AHEAD);
                windows.push(Window { bands: VecDeque::new(), receiver });
                threads.push(scope.spawn(move || self.read_bands(reader, plan.chain.rows(), &sender)));
            }
            let writer = scope.spawn(|| {
                let started = Instant::now();
                file::write_rows(&self.output, &plan.header, &queue, &options).map(|()| started.elapsed())
            });
            let computed = self.compute_bands(plan, windows, &queue, shows);
            if computed.is_err() {
                queue.stop();
            }
            let written = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            for thread in threads {
                times.read += thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            }
            // A stopped writer fails too. The failure before it is the reason.
            times.effects = computed?;
            times.write = written.map_err(EffectError::from)?;
            Ok::<(), Failed>(())
        })?;
        let (rows, count) = (plan.chain.rows(), plan.chain.bands().count());
        times.lines.push(format!("in {count} bands of {rows} rows, which are read, computed and written at the same time"));
        let losses = file::losses_in(self.format, &plan.header, plan.samples);
        losses.iter().for_each(|loss| self.warn(&self.output, loss));
        Ok(times)
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

    /// Computes all bands, until the writer fails. Returns the time of the effects alone.
    fn compute_bands(
        &self,
        plan: &Plan<'_>,
        mut windows: Vec<Window>,
        queue: &RowQueue,
        shows: bool,
    ) -> Result<Duration, Failed> {
        let mut spent = Duration::ZERO;
        let count = plan.chain.bands().count();
        for (number, region) in plan.chain.bands().enumerate() {
            let band = plan.chain.band(region)?;
            let mut images = vec![];
            for (needed, window) in band.needs().iter().zip(&mut windows) {
                images.push(needed.map(|needed| window.rows(needed)).transpose()?);
            }
            if number + 1 == count {
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
            if shows {
                let _ = write!(std::io::stderr(), "\r\x1b[K{}: band {} of {count}", self.options.name, number + 1);
                let _ = std::io::stderr().flush();
            }
        }
        Ok(spent)
    }
}
