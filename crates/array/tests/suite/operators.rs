//! Tests of reductions with user-defined operators: in element order, for any shape, axis and device.

use broadloom_array::{Array, Context, Error, F32x4, Result, Segments, Traced};
use broadloom_cpu::{CacheFolder, Cpu};
use broadloom_device::Device;
use broadloom_interp::Interp;

fn contexts() -> Result<[Context; 2]> {
    let options = broadloom_cpu::Options { cache: CacheFolder::Nowhere, ..broadloom_cpu::Options::default() };
    let cpu = Context::new(&Device::new(Cpu::new(options).map_err(Error::from)?));
    Ok([cpu, Context::new(&Device::new(Interp::new(broadloom_interp::Options::default())))])
}

/// Composes linear functions `x ↦ a x + b`. Composition is not commutative. Values stay integral, so floats
/// are exact.
fn behind<'t>(f: Traced<'t, F32x4>, g: Traced<'t, F32x4>) -> Traced<'t, F32x4> {
    Traced::from_lanes([f.lane(0) * g.lane(0), g.lane(0) * f.lane(1) + g.lane(1), f.lane(2), f.lane(2)])
}

const NOTHING: F32x4 = [1.0, 0.0, 0.0, 0.0];

fn host_behind(f: F32x4, g: F32x4) -> F32x4 {
    [f[0] * g[0], g[0] * f[1] + g[1], 0.0, 0.0]
}

fn functions(count: usize) -> Vec<F32x4> {
    (0..count).map(|i| [if i * i % 7 == 2 { -1.0 } else { 1.0 }, (i * 31 % 11) as f32 - 5.0, 0.0, 0.0]).collect()
}

#[test]
fn vectors_along_each_axis() -> Result<()> {
    for context in contexts()? {
        for shape in [[1, 1], [3, 5], [40, 33], [2, 700], [300, 2]] {
            let [rows, columns] = shape;
            let values = functions(rows * columns);
            let a = Array::new(&context, &values, shape)?;
            let row = |i: usize| values[i * columns..(i + 1) * columns].iter().copied();
            let column = |j: usize| values[j..].iter().step_by(columns).copied();
            let all = values.iter().copied().fold(NOTHING, host_behind);
            assert_eq!(a.reduce_with(&[0, 1], NOTHING, behind)?.item()?, all, "{shape:?}");
            let rowwise: Vec<F32x4> = (0..rows).map(|i| row(i).fold(NOTHING, host_behind)).collect();
            assert_eq!(a.reduce_with(&[1], NOTHING, behind)?.to_vec()?, rowwise, "{shape:?}");
            let columnwise: Vec<F32x4> = (0..columns).map(|j| column(j).fold(NOTHING, host_behind)).collect();
            assert_eq!(a.reduce_with(&[0], NOTHING, behind)?.to_vec()?, columnwise, "{shape:?}");
            let (mut up_to, mut before) = (vec![], vec![]);
            for i in 0..rows {
                row(i).fold(NOTHING, |sum, value| {
                    before.push(sum);
                    up_to.push(host_behind(sum, value));
                    host_behind(sum, value)
                });
            }
            assert_eq!(a.scan_with(1, NOTHING, behind)?.to_vec()?, up_to, "{shape:?}");
            assert_eq!(a.scan_before_with(1, NOTHING, behind)?.to_vec()?, before, "{shape:?}");
            assert_eq!(a.t().scan_with(0, NOTHING, behind)?.t().to_vec()?, up_to, "{shape:?}");
        }
    }
    Ok(())
}

#[test]
fn long_lines_and_segments() -> Result<()> {
    for context in contexts()? {
        let is_interp = context.device().machine().id == "interp";
        for count in [0usize, 1, 33, 5001, if is_interp { 0 } else { 300_001 }] {
            let values: Vec<i64> = (0..count as i64).map(|i| if i * i % 5 == 1 { i } else { 0 }).collect();
            let a = Array::line(&context, &values)?;
            // The last value that is not 0.
            fn last<'t>(x: Traced<'t, i64>, y: Traced<'t, i64>) -> Traced<'t, i64> {
                y.eq(0).cond(x, y)
            }
            let expected = values.iter().rev().find(|value| **value != 0).copied().unwrap_or(0);
            assert_eq!(a.reduce_with(&[0], 0, last)?.item()?, expected);
            let filled = |values: &[i64]| -> Vec<i64> {
                let mut last = 0;
                values
                    .iter()
                    .map(|value| {
                        last = if *value == 0 { last } else { *value };
                        last
                    })
                    .collect()
            };
            assert_eq!(a.scan_with(0, 0, last)?.to_vec()?, filled(&values));
            let lengths = [3, 0, count.saturating_sub(7).min(100), 1];
            let segments = Segments::from_lengths(&Array::line(&context, &lengths.map(|length| length as i64))?, count)?;
            let ends = segments.offsets().to_vec()?;
            let parts: Vec<Vec<i64>> = ends.windows(2).map(|ends| filled(&values[ends[0] as usize..ends[1] as usize])).collect();
            let lasts: Vec<i64> = parts.iter().map(|part| part.last().copied().unwrap_or(0)).collect();
            assert_eq!(a.segmented_reduce_with(&segments, 0, last)?.to_vec()?, lasts);
            assert_eq!(a.segmented_scan_with(&segments, 0, last)?.to_vec()?, parts.concat());
            // Scatters to one of three indices, keeping the last value that is not 0.
            let places = Array::<i64>::iota(&context, count)? % 3;
            let sent = Array::line(&context, &[-1i64, -2, -3])?.scatter_with(&[&places], &a, 0, last)?.to_vec()?;
            let expected = [0, 1, 2].map(|place| {
                let own = values.iter().skip(place).step_by(3);
                own.rev().find(|value| **value != 0).copied().unwrap_or(-1 - place as i64)
            });
            assert_eq!(sent, expected);
        }
    }
    Ok(())
}

/// Operators are part of the structure: a different operator needs a new plan, an equal one does not.
#[test]
fn plans_are_found_again() -> Result<()> {
    let [_, context] = contexts()?;
    let a = Array::line(&context, &[1u32, 2, 4])?;
    for (shift, expected) in [(0, 7), (1, 6), (0, 7)] {
        let one = a.reduce_with(&[0], 0, |x, y| if shift == 0 { x | y } else { x.max(y) + x.min(y).min(2) })?;
        assert_eq!(one.item()?, expected);
    }
    assert_eq!(context.statistics().plans, 2);
    let error = a.reduce_with(&[1], 0, |x, y| x | y).map_or_else(|error| error.to_string(), |_| "no error".into());
    assert_eq!(error, "`reduce_with`: axis 1 of an array of shape [3], whose last axis is 0");
    Ok(())
}

#[test]
fn closures_say_where_they_are_wrong() -> Result<()> {
    let [_, context] = contexts()?;
    let a = Array::line(&context, &[1.0f32])?;
    let error = a.map(|x| x.cast::<F32x4>()).map_or_else(|error| error.to_string(), |_| "no error".into());
    assert!(error.contains("`f32` does not become `f32x4`") && error.contains(file!()), "{error}");
    Ok(())
}

#[test]
fn floats_are_looked_at() -> Result<()> {
    for context in contexts()? {
        let a = Array::line(&context, &[2.5f64, -2.5, f64::NAN, f64::INFINITY, -0.4])?;
        assert_eq!(a.is_nan().to_vec()?, [false, false, true, false, false]);
        assert_eq!(a.is_finite().to_vec()?, [true, true, false, false, true]);
        let rounded = a.round().to_vec()?;
        assert_eq!((rounded[0], rounded[1], rounded[4].to_bits()), (3.0, -3.0, (-0.0f64).to_bits()));
        // More elements than an `f16` can count, with a sum that it cannot represent.
        let ones = Array::full(&context, [3, 30_000], half::f16::from_f32(3.0))?;
        assert_eq!(ones.mean()?.item()?.to_f32(), 3.0);
        let wide = Array::full(&context, [2; 5], 1i32)?;
        let error = wide.outer(&wide).map_or_else(|error| error.to_string(), |_| "no error".into());
        assert_eq!(error, "`outer`: the shapes [2, 2, 2, 2, 2] and [2, 2, 2, 2, 2] do not fit together");
    }
    Ok(())
}
