//! Kernels of recurrences: three passes over the firings of a batch.
//!
//! A thread has a chunk of neighbouring firings, a block has a tile of chunks.
//!
//! 1. Each thread runs its chunk from the identity and keeps the result. The block combines the results of
//!    its threads.
//! 2. One block scans the results of the tiles and keeps the state at the start of each.
//! 3. Each block finds the states at the start of its chunks. Each thread runs its chunk again and pushes.
//!    The thread with the last firing stores the state.

use super::island::Island;
use crate::planner::recurrence::{Matrix, Recurrence};
use crate::planner::translate::{CLASSES, Reason, class_of};
use broadloom_scalar::{Axis, Builder, Element, Memory, Type, Unroll, Value};
use broadloom_skeleton::cost::dataflow;
use broadloom_skeleton::kit::{Draft, Writer};
use broadloom_skeleton::{Argument, Count, Output, Program as Kernels};

/// Writes the program of an island that is one recurrence. Its inputs, outputs, size and scalar are those of
/// [`super::sequential::program`].
pub(crate) fn program(island: &Island, recurrence: &Recurrence, name: &str) -> Result<Kernels, Reason> {
    let mut draft = Draft::new(name, 1);
    draft.keep_products();
    let number = draft.scalar(Type::I32);
    let line = |crossing: &super::island::BorderTape| Type::of(crossing.words.element);
    let input = island.inputs.first().map(|input| draft.input(line(input)));
    let output = |ty: Type| Output { ty, count: Count::Constant(0) };
    let sink = island.outputs.first().map(|crossing| draft.output(output(line(crossing))));
    let mut classes = [None; 3];
    for (class, words) in island.state_words.iter().enumerate() {
        if *words > 0 {
            classes[class] = Some(draft.output(output(Type::of(CLASSES[class]))));
        }
    }
    draft.output(output(Type::U32));
    let per_unit = island.firings[0] as u64;
    let firings = Count::size(0) * Count::Constant(per_unit);
    let chunks = firings.clone().div_ceil(Count::Constant(dataflow::SCAN_FIRINGS.into()));
    let tiles = chunks.clone().div_ceil(Count::Constant(dataflow::SCAN_THREADS.into()));
    let states = recurrence.elements.len() as u64;
    let words = |count: &Count| count.clone() * Count::Constant(4 * states);
    let of_chunks = draft.temporary(words(&(tiles.clone() * Count::Constant(dataflow::SCAN_THREADS.into()))), false);
    let of_tiles = draft.temporary(words(&tiles), false);
    let starts = draft.temporary(words(&tiles), false);
    let maker = ScanWriter { island, recurrence, number, input, sink, classes, firings, tiles, of_chunks, of_tiles, starts };
    let block = [dataflow::SCAN_THREADS, 1, 1];
    let grid = [maker.tiles.clone(), 1u32.into(), 1u32.into()];
    let k = Writer::new(&format!("{name}_chunks"), block);
    maker.chunks(&k)?;
    draft.launch(k, grid.clone(), block)?;
    let k = Writer::new(&format!("{name}_tiles"), block);
    maker.tiles(&k)?;
    draft.launch(k, [1u32.into(), 1u32.into(), 1u32.into()], block)?;
    let k = Writer::new(name, block);
    maker.firings(&k)?;
    draft.launch(k, grid, block)?;
    Ok(draft.finish())
}

struct ScanWriter<'m> {
    island: &'m Island,
    recurrence: &'m Recurrence,
    number: usize,
    input: Option<usize>,
    sink: Option<usize>,
    classes: [Option<usize>; 3],
    firings: Count,
    tiles: Count,
    of_chunks: usize,
    of_tiles: usize,
    starts: usize,
}

impl ScanWriter<'_> {
    fn elements(&self) -> &[Element] {
        &self.recurrence.elements
    }

    /// Returns the memory of a temporary. Its words are integers; floats are stored by their bits.
    fn temporary(&self, k: &Writer, temporary: usize) -> Memory {
        k.memory(Argument::Temporary(temporary), Element::I32)
    }

    fn get(&self, k: &Builder, memory: Memory, at: Value) -> Vec<Value> {
        let first = k.mul(at, self.elements().len() as i32);
        let each = self.elements().iter().enumerate();
        each.map(|(index, element)| {
            let word = k.load(memory, k.add(first, index as i32));
            if element.is_float() { k.bitcast(word, *element) } else { word }
        })
        .collect()
    }

    fn put(&self, k: &Builder, memory: Memory, at: Value, state: &[Value]) {
        let first = k.mul(at, self.elements().len() as i32);
        for (index, value) in state.iter().enumerate() {
            let word = if self.elements()[index].is_float() { k.bitcast(*value, Type::I32) } else { *value };
            k.store(memory, k.add(first, index as i32), word);
        }
    }

    /// Returns the memory and the index of a number of the state.
    fn place(&self, k: &Writer, index: usize) -> Result<(Memory, Value), Reason> {
        let stored = self.island.fields[index].leaves[0].stored;
        let number = self.classes[class_of(stored.element)].ok_or("its state has no memory")?;
        Ok((k.memory(Argument::Output(number), stored.element), k.literal(stored.start as i32)))
    }

    fn count(&self, k: &Writer, count: &Count) -> Value {
        k.assume(k.convert(k.count(count.clone(), Type::U32), Type::I32), 0, 1 << 30)
    }

    /// Runs the firings of a chunk from a state, and pushes if `pushes` is set. Returns the state after them.
    fn run(&self, k: &Writer, first: Value, end: Value, state: &[Value], pushes: bool) -> Vec<Value> {
        let recurrence = self.recurrence;
        let variables: Vec<_> = state.iter().map(|value| k.variable_with(*value)).collect();
        let seen = k.add(k.mul(k.scalar(self.number, Type::I32), self.island.firings[0] as i32), self.island.first[0] as i32);
        let words =
            |words: Option<crate::planner::translate::Words>, rate: u32| (words.map_or(0, |words| words.count) * rate) as i32;
        let (taken, given) = (words(recurrence.input, recurrence.window.pop), words(recurrence.output, recurrence.window.push));
        let source = self.input.zip(recurrence.input).map(|(number, words)| k.memory(Argument::Input(number), words.element));
        let sink = self.sink.zip(recurrence.output).map(|(number, words)| k.memory(Argument::Output(number), words.element));
        k.for_step(first, end, 1, Unroll::Never, |firing| {
            let load = |k: &Builder, at: Value| match source {
                Some(memory) => k.load(memory, k.add(k.mul(firing, taken), at)),
                None => k.fail("a tape that is not there is read"),
            };
            let store = |k: &Builder, at: Value, value: Value| {
                if let Some(memory) = sink.filter(|_| pushes) {
                    k.store(memory, k.add(k.mul(firing, given), at), value);
                }
            };
            let now: Vec<Value> = variables.iter().map(|variable| k.get(*variable)).collect();
            let next = recurrence.fire(k, k.add(seen, firing), &now, &load, &store);
            variables.iter().zip(next).for_each(|(variable, value)| k.set(*variable, value));
        });
        variables.iter().map(|variable| k.get(*variable)).collect()
    }

    /// Returns the first firing of the thread's chunk, and the end of the chunk.
    fn chunk(&self, k: &Writer) -> (Value, Value) {
        let first = k.mul(k.convert(k.global_thread(Axis::X), Type::I32), dataflow::SCAN_FIRINGS as i32);
        let end = k.min(k.add(first, dataflow::SCAN_FIRINGS as i32), self.count(k, &self.firings));
        (first, end)
    }

    fn chunks(&self, k: &Writer) -> Result<(), Reason> {
        let recurrence = self.recurrence;
        let (first, end) = self.chunk(k);
        let thread = k.convert(k.thread(Axis::X), Type::I32);
        let own = self.run(k, first, end, &recurrence.identity(k), false);
        let chunk = k.convert(k.global_thread(Axis::X), Type::I32);
        self.put(k, self.temporary(k, self.of_chunks), chunk, &own);
        // Neighbours are combined, then pairs of neighbours, and so on, until thread 0 has the result of the
        // tile.
        let shared = k.shared(Element::I32, dataflow::SCAN_THREADS * self.elements().len() as u32);
        self.put(k, shared, thread, &own);
        let mut distance = 1;
        while distance < dataflow::SCAN_THREADS {
            k.barrier();
            let power = recurrence.power(u64::from(dataflow::SCAN_FIRINGS) * u64::from(distance));
            let leads = k.eq(k.and(thread, (2 * distance - 1) as i32), 0);
            k.if_then(leads, || {
                let (left, right) = (self.get(k, shared, thread), self.get(k, shared, k.add(thread, distance as i32)));
                self.put(k, shared, thread, &recurrence.combine(k, &power, &left, &right));
            });
            distance *= 2;
        }
        let block = k.convert(k.block(Axis::X), Type::I32);
        k.if_then(k.eq(thread, 0), || {
            let whole = self.get(k, shared, k.literal(0i32));
            self.put(k, self.temporary(k, self.of_tiles), block, &whole);
        });
        Ok(())
    }

    fn tiles(&self, k: &Writer) -> Result<(), Reason> {
        let recurrence = self.recurrence;
        let n = self.elements().len();
        let thread = k.convert(k.thread(Axis::X), Type::I32);
        let tiles = self.count(k, &self.tiles);
        let share = k.div(k.add(tiles, dataflow::SCAN_THREADS as i32 - 1), dataflow::SCAN_THREADS as i32);
        let (first, end) = (k.mul(thread, share), k.min(k.mul(k.add(thread, 1), share), tiles));
        let power = recurrence.power(u64::from(dataflow::SCAN_FIRINGS) * u64::from(dataflow::SCAN_THREADS));
        let (of_tiles, starts) = (self.temporary(k, self.of_tiles), self.temporary(k, self.starts));
        let along = |state: &[Value], keeps: bool| -> Vec<Value> {
            let variables: Vec<_> = state.iter().map(|value| k.variable_with(*value)).collect();
            k.for_step(first, end, 1, Unroll::By(4), |tile| {
                let now: Vec<Value> = variables.iter().map(|variable| k.get(*variable)).collect();
                if keeps {
                    self.put(k, starts, tile, &now);
                }
                let next = recurrence.combine(k, &power, &now, &self.get(k, of_tiles, tile));
                variables.iter().zip(next).for_each(|(variable, value)| k.set(*variable, value));
            });
            variables.iter().map(|variable| k.get(*variable)).collect()
        };
        let own = along(&recurrence.identity(k), false);
        let shared = k.shared(Element::I32, dataflow::SCAN_THREADS * n as u32);
        self.put(k, shared, thread, &own);
        k.barrier();
        let mut places = vec![];
        for index in 0..n {
            places.push(self.place(k, index)?);
        }
        k.if_then(k.eq(thread, 0), || {
            // The power of the matrix for the number of tiles per thread.
            let matrix: Vec<Vec<_>> = (0..n)
                .map(|row| {
                    let one = |column: usize| recurrence.coefficient(k, &recurrence.power(0), row, column);
                    (0..n).map(|column| k.variable_with(one(column))).collect()
                })
                .collect();
            let entry = |power: &Matrix, row: usize, column: usize| recurrence.coefficient(k, power, row, column);
            k.for_step(0, share, 1, Unroll::Never, |_| {
                let old: Vec<Vec<Value>> = matrix.iter().map(|row| row.iter().map(|one| k.get(*one)).collect()).collect();
                for (row, variables) in matrix.iter().enumerate() {
                    for (column, variable) in variables.iter().enumerate() {
                        if self.elements()[row] != self.elements()[column] {
                            continue;
                        }
                        let terms = (0..n).filter(|index| self.elements()[*index] == self.elements()[row]);
                        let terms = terms.map(|index| k.mul(old[row][index], entry(&power, index, column)));
                        if let Some(sum) = terms.reduce(|a, b| k.add(a, b)) {
                            k.set(*variable, sum);
                        }
                    }
                }
            });
            let state: Vec<_> = places.iter().map(|(memory, at)| k.variable_with(k.load(*memory, *at))).collect();
            k.for_step(0, k.literal(dataflow::SCAN_THREADS as i32), 1, Unroll::Never, |other| {
                let now: Vec<Value> = state.iter().map(|variable| k.get(*variable)).collect();
                let came = self.get(k, shared, other);
                self.put(k, shared, other, &now);
                let next = recurrence.combine_with(k, &|row, column| Some(k.get(matrix[row][column])), &now, &came);
                state.iter().zip(next).for_each(|(variable, value)| k.set(*variable, value));
            });
        });
        k.barrier();
        let start = self.get(k, shared, thread);
        along(&start, true);
        Ok(())
    }

    fn firings(&self, k: &Writer) -> Result<(), Reason> {
        let recurrence = self.recurrence;
        let (first, end) = self.chunk(k);
        let thread = k.convert(k.thread(Axis::X), Type::I32);
        let block = k.convert(k.block(Axis::X), Type::I32);
        let chunk = k.convert(k.global_thread(Axis::X), Type::I32);
        let tile = self.get(k, self.temporary(k, self.starts), block);
        let own = self.get(k, self.temporary(k, self.of_chunks), chunk);
        // Thread 0 begins with the state of the tile, so the combined value up to a thread is the state after
        // it.
        let led = recurrence.combine(k, &recurrence.power(u64::from(dataflow::SCAN_FIRINGS)), &tile, &own);
        let is_first = k.eq(thread, 0);
        let state: Vec<_> = led.iter().zip(&own).map(|(led, own)| k.variable_with(k.select(is_first, *led, *own))).collect();
        let shared = k.shared(Element::I32, dataflow::SCAN_THREADS * self.elements().len() as u32);
        let now = || -> Vec<Value> { state.iter().map(|variable| k.get(*variable)).collect() };
        let mut distance = 1;
        while distance < dataflow::SCAN_THREADS {
            self.put(k, shared, thread, &now());
            k.barrier();
            let power = recurrence.power(u64::from(dataflow::SCAN_FIRINGS) * u64::from(distance));
            k.if_then(k.ge(thread, distance as i32), || {
                let left = self.get(k, shared, k.sub(thread, distance as i32));
                let next = recurrence.combine(k, &power, &left, &now());
                state.iter().zip(next).for_each(|(variable, value)| k.set(*variable, value));
            });
            k.barrier();
            distance *= 2;
        }
        self.put(k, shared, thread, &now());
        k.barrier();
        let before = self.get(k, shared, k.max(k.sub(thread, 1), 0));
        let start: Vec<Value> = before.iter().zip(&tile).map(|(before, tile)| k.select(is_first, *tile, *before)).collect();
        let last = self.run(k, first, end, &start, true);
        let all = self.count(k, &self.firings);
        let mut places = vec![];
        for index in 0..last.len() {
            places.push(self.place(k, index)?);
        }
        k.if_then(k.and(k.lt(first, end), k.eq(end, all)), || {
            places.iter().zip(&last).for_each(|((memory, at), value)| k.store(*memory, *at, *value));
        });
        Ok(())
    }
}
