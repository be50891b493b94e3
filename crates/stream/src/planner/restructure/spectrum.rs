//! Long convolutions by the fast Fourier transform.
//!
//! A filter that adds up many neighbouring items with constant coefficients takes one product for each
//! coefficient and item. With the transform, the cost grows with the `log` of the number of coefficients
//! instead. A block transforms a window of items, multiplies it with the transform of the coefficients and
//! transforms back (overlap-save). Of a window of `points` items, those results are valid whose coefficients
//! all lie inside. Two windows are the real and the imaginary part of one transform.
//!
//! Forward passes take items in order and leave frequencies in digit-reversed order. Backward passes do the
//! opposite. No reordering is needed, and a thread reads and writes the same four places in a pass. The last
//! forward pass, the product and the first backward pass stay in registers.
//!
//! One infinity would spread to all items of a window. Blocks that see one add up products instead.

use super::cut::Cut;
use super::section::{Section, Taps};
use crate::planner::translate::Reason;
use broadloom_scalar::{Axis, Element, Literal, Memory, Type, Unroll, Value};
use broadloom_skeleton::kit::{Draft, Writer};
use broadloom_skeleton::{Argument, Count, Output, Program as Kernels};
use std::f64::consts::TAU;

/// Returns the number of passes of a transform in one direction.
fn passes(points: u32) -> u32 {
    points.ilog2() / 2
}

/// Returns the number of valid items of a window.
fn valid(points: u32, taps: usize) -> u32 {
    (points + 1).saturating_sub(taps as u32)
}

/// A complex number.
#[derive(Clone, Copy)]
struct Complex(Value, Value);

struct SpectrumWriter<'m> {
    k: &'m Writer,
    points: u32,
    thread: Value,
    /// Real and imaginary parts, in shared memory.
    parts: [Memory; 2],
    padded: bool,
}

/// Writes the program of a cut whose only actor is a convolution. Its inputs and outputs are those of
/// [`super::emit::program`].
pub(crate) fn program(section: &Section, cut: &Cut, name: &str, starts: &[i64], points: u32) -> Result<Kernels, Reason> {
    let index = cut.actors[0];
    let actor = &section.actors[index];
    let taps = actor.taps.as_ref().ok_or("it is no convolution")?;
    let (Some(from), Some(to)) = (&actor.input, &actor.output) else { return Err("it has no tape".into()) };
    let range = cut.unit.firings[index].ok_or("nothing needs it")?;
    let last = cut.last[index].ok_or("nothing needs it")?;
    let mut draft = Draft::new(name, 1);
    draft.scalar(Type::I32);
    let input = draft.input(Type::F32);
    let output = draft.output(Output { ty: Type::F32, count: Count::Constant(0) });
    draft.output(Output { ty: Type::U32, count: Count::Constant(1) });
    let block = [points / 4, 1, 1];
    let k = Writer::new(name, block);
    let own = valid(points, taps.coefficients.len());

    // Items that the batch needs, from the first on.
    let units = k.assume(k.convert(k.count(Count::size(0), Type::U32), Type::I32), 1, 1 << 30);
    let firings = k.add(k.mul(k.sub(units, 1), actor.firings as i32), (last - range.start) as i32);
    let all = k.mul(firings, to.rate as i32);
    let there = k.add(all, taps.coefficients.len() as i32 - 1);
    let behind = |port: &super::section::Port| (port.items(range).start - starts[port.buffer]) as i32;
    let (source, sink) = (k.memory(Argument::Input(input), Element::F32), k.memory(Argument::Output(output), Element::F32));
    let read = |at: Value| k.load(source, k.add(k.min(at, k.sub(there, 1)), behind(from)));

    let length = match cut.padded {
        true => super::cut::padded(points.into(), 1) as u32,
        false => points,
    };
    let parts = [k.shared(Element::F32, length), k.shared(Element::F32, length)];
    let thread = k.convert(k.thread(Axis::X), Type::I32);
    let maker = SpectrumWriter { k: &k, points, thread, parts, padded: cut.padded };
    let first = k.mul(k.convert(k.block(Axis::X), Type::I32), 2 * own as i32);
    let quarter = points / 4;
    let place = |item: u32| k.add(first, k.add(thread, (item * quarter) as i32));
    let seen: Vec<Complex> = (0..4).map(|item| Complex(read(place(item)), read(k.add(place(item), own as i32)))).collect();
    let finite = seen.iter().map(|Complex(re, im)| k.and(k.is_finite(*re), k.is_finite(*im)));
    let finite = finite.reduce(|a, b| k.and(a, b)).ok_or("it has no items")?;
    maker.store(quarter, &maker.forward(quarter, seen));
    let strange = k.barrier_count(k.not(finite));
    let mut span = quarter / 4;
    while span > 1 {
        maker.store(span, &maker.forward(span, maker.load(span)));
        k.barrier();
        span /= 4;
    }
    let product = maker.times_spectrum(maker.forward(1, maker.load(1)), taps);
    maker.store(1, &maker.back(1, product));
    k.barrier();
    span = 4;
    while span < quarter {
        maker.store(span, &maker.back(span, maker.load(span)));
        k.barrier();
        span *= 4;
    }
    let made = maker.back(quarter, maker.load(quarter));

    let table = table(&k, taps.coefficients.iter().copied());
    let put = |item: u32, half: u32, value: Value| {
        let offset = k.add(thread, (item * quarter) as i32);
        let at = k.add(first, k.add(offset, (half * own) as i32));
        k.if_then(k.and(k.lt(offset, own as i32), k.lt(at, all)), || {
            let sum = k.variable_with(value);
            k.if_then(k.gt(strange, 0u32), || {
                k.set(sum, k.literal(0.0f32));
                k.for_step(0, k.literal(taps.coefficients.len() as i32), 1, Unroll::Never, |tap| {
                    let by = k.lookup(table, k.convert(tap, Type::U32));
                    k.set(sum, k.add(k.get(sum), k.mul(read(k.add(at, tap)), by)));
                });
            });
            k.store(sink, k.add(at, behind(to)), k.add(k.get(sum), taps.constant as f32));
        });
    };
    for (item, Complex(re, im)) in made.into_iter().enumerate() {
        put(item as u32, 0, re);
        put(item as u32, 1, im);
    }
    let items = Count::size(0) * Count::Constant(actor.firings as u64);
    let items = (items + Count::Constant((last - range.start - actor.firings).max(0) as u64)) * Count::Constant(to.rate as u64);
    let grid = items.div_ceil(Count::Constant(2 * u64::from(own)));
    draft.launch(k, [grid, 1u32.into(), 1u32.into()], block)?;
    Ok(draft.finish())
}

fn table(k: &Writer, entries: impl Iterator<Item = f64>) -> broadloom_scalar::TableId {
    k.table(&entries.map(|entry| Literal::from(entry as f32)).collect::<Vec<_>>())
}

impl SpectrumWriter<'_> {
    fn add(&self, a: Complex, b: Complex) -> Complex {
        Complex(self.k.add(a.0, b.0), self.k.add(a.1, b.1))
    }

    fn sub(&self, a: Complex, b: Complex) -> Complex {
        Complex(self.k.sub(a.0, b.0), self.k.sub(a.1, b.1))
    }

    fn mul(&self, a: Complex, b: Complex) -> Complex {
        let k = self.k;
        Complex(k.fma(a.0, b.0, k.neg(k.mul(a.1, b.1))), k.fma(a.0, b.1, k.mul(a.1, b.0)))
    }

    /// Returns the first place of a thread in a pass whose places are `span` apart, and its number in its
    /// group.
    fn places(&self, span: u32) -> (Value, Value) {
        let k = self.k;
        let number = k.and(self.thread, span as i32 - 1);
        (k.sub(k.mul(self.thread, 4), k.mul(number, 3)), number)
    }

    fn place(&self, span: u32, item: usize) -> Value {
        let k = self.k;
        let at = k.add(self.places(span).0, (span as usize * item) as i32);
        if self.padded { k.add(at, k.shr(at, 5)) } else { at }
    }

    fn load(&self, span: u32) -> Vec<Complex> {
        let one = |item: usize| self.parts.map(|part| self.k.load(part, self.place(span, item)));
        (0..4).map(one).map(|[re, im]| Complex(re, im)).collect()
    }

    fn store(&self, span: u32, values: &[Complex]) {
        for (item, Complex(re, im)) in values.iter().enumerate() {
            let at = self.place(span, item);
            self.k.store(self.parts[0], at, *re);
            self.k.store(self.parts[1], at, *im);
        }
    }

    /// Returns the radix-4 butterfly of four numbers. The backward transform exchanges the second and the
    /// last output.
    fn butterfly(&self, a: &[Complex], back: bool) -> Vec<Complex> {
        let (even, odd) = (self.add(a[0], a[2]), self.add(a[1], a[3]));
        let (across, turned) = (self.sub(a[0], a[2]), self.sub(a[1], a[3]));
        // Times the imaginary unit.
        let turned = Complex(self.k.neg(turned.1), turned.0);
        let (less, more) = (self.sub(across, turned), self.add(across, turned));
        let (second, last) = if back { (more, less) } else { (less, more) };
        vec![self.add(even, odd), second, self.sub(even, odd), last]
    }

    /// Multiplies three of the four numbers of a thread with the roots of unity of a pass. The first is
    /// unchanged.
    fn turned(&self, span: u32, values: Vec<Complex>, back: bool) -> Vec<Complex> {
        let k = self.k;
        if span == 1 {
            return values;
        }
        let angle = |number: u32| if back { 1.0 } else { -1.0 } * TAU * f64::from(number) / f64::from(4 * span);
        let number = k.convert(self.places(span).1, Type::U32);
        let (cos, sin) = (table(k, (0..span).map(|one| angle(one).cos())), table(k, (0..span).map(|one| angle(one).sin())));
        let first = Complex(k.lookup(cos, number), k.lookup(sin, number));
        let second = self.mul(first, first);
        let roots = [first, second, self.mul(second, first)];
        let turn = |(item, value): (usize, Complex)| if item == 0 { value } else { self.mul(value, roots[item - 1]) };
        values.into_iter().enumerate().map(turn).collect()
    }

    fn forward(&self, span: u32, values: Vec<Complex>) -> Vec<Complex> {
        self.turned(span, self.butterfly(&values, false), false)
    }

    fn back(&self, span: u32, values: Vec<Complex>) -> Vec<Complex> {
        self.butterfly(&self.turned(span, values, true), true)
    }

    /// Multiplies values with the transform of the coefficients, at digit-reversed places.
    fn times_spectrum(&self, values: Vec<Complex>, taps: &Taps) -> Vec<Complex> {
        let (k, points) = (self.k, self.points as usize);
        let roots: Vec<(f64, f64)> = (0..points).map(|one| (TAU * one as f64 / points as f64).sin_cos()).collect();
        let at = |place: usize| -> (f64, f64) {
            let reversed = (0..passes(self.points)).fold(0, |all, digit| all << 2 | place >> (2 * digit) & 3);
            let terms = taps.coefficients.iter().enumerate();
            let terms = terms.map(|(tap, by)| (by, roots[tap * reversed % points]));
            let sum = terms.fold((0.0, 0.0), |(re, im), (by, (sin, cos))| (re + by * cos, im + by * sin));
            (sum.0 / points as f64, sum.1 / points as f64)
        };
        let spectrum: Vec<(f64, f64)> = (0..points).map(at).collect();
        let (re, im) = (table(k, spectrum.iter().map(|one| one.0)), table(k, spectrum.iter().map(|one| one.1)));
        let times = |(item, value): (usize, Complex)| {
            let place = k.convert(k.add(self.places(1).0, item as i32), Type::U32);
            self.mul(value, Complex(k.lookup(re, place), k.lookup(im, place)))
        };
        values.into_iter().enumerate().map(times).collect()
    }
}
