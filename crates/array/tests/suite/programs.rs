//! Tests of small user programs on the interpreter and on the CPU, each compared with plain loops.

use broadloom_array::{Array, Boundary, Context, Error, F32x4, Function, Result, Segments, Span, evaluate_all, span};
use broadloom_cpu::{CacheFolder, Cpu};
use broadloom_device::Device;
use broadloom_interp::Interp;
use std::collections::BTreeMap;

fn interp() -> Context {
    Context::new(&Device::new(Interp::new(broadloom_interp::Options::default())))
}

fn contexts() -> Result<[Context; 2]> {
    let options = broadloom_cpu::Options { cache: CacheFolder::Nowhere, ..broadloom_cpu::Options::default() };
    Ok([interp(), Context::new(&Device::new(Cpu::new(options)?))])
}

/// Returns pseudo-random numbers from 0 to 1.
fn noise(count: usize) -> Vec<f32> {
    (0..count as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 24) as f32).collect()
}

#[track_caller]
fn close(found: &[f32], wanted: &[f32], error: f32) {
    assert_eq!(found.len(), wanted.len());
    for (i, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        assert!((found - wanted).abs() <= error * (1.0 + wanted.abs()), "at {i}: {found} instead of {wanted}");
    }
}

/// Returns the index of the minimum. The first of equal elements wins.
fn least(values: &[f32]) -> usize {
    (0..values.len()).fold(0, |best, i| if values[i] < values[best] { i } else { best })
}

#[test]
fn k_means() -> Result<()> {
    const K: usize = 4;
    const D: usize = 3;
    let host = noise(200 * D);
    for context in contexts()? {
        let points = Array::new(&context, &host, [200, D])?;
        let columns = Array::<i64>::iota(&context, D)?;
        let mut centres = points.slice(&span![..4])?;
        let mut wanted = host[..K * D].to_vec();
        for _ in 0..3 {
            let apart = points.add_axis(1, 1)? - centres.add_axis(0, 1)?;
            let nearest = (&apart * &apart).sum_along(&[2])?.argmin(1)?;
            let sums = Array::full(&context, [K, D], 0.0f32)?.scatter_sum(&[&nearest.add_axis(1, 1)?, &columns], &points)?;
            centres = sums / nearest.histogram(K)?.maximum(1)?.cast::<f32>()?.add_axis(1, 1)?;
            centres.evaluate()?;

            let (mut sums, mut counts) = (vec![0.0; K * D], vec![0.0f32; K]);
            for point in host.chunks(D) {
                let apart = |centre: &[f32]| point.iter().zip(centre).map(|(a, b)| (a - b) * (a - b)).sum::<f32>();
                let nearest = least(&wanted.chunks(D).map(apart).collect::<Vec<f32>>());
                counts[nearest] += 1.0;
                (0..D).for_each(|i| sums[nearest * D + i] += point[i]);
            }
            wanted = (0..K * D).map(|i| sums[i] / counts[i / D].max(1.0)).collect();
        }
        close(&centres.to_vec()?, &wanted, 1e-5);
        // One plan for the first centres, which are a view, and one for all later centres.
        assert_eq!(context.statistics().plans, 2);
    }
    Ok(())
}

#[test]
fn cross_entropy() -> Result<()> {
    const N: usize = 33;
    const K: usize = 10;
    let host: Vec<f32> = noise(N * K).iter().map(|x| x * 200.0 - 100.0).collect();
    let label = |i: usize| i * 7 % K;
    for context in contexts()? {
        let logits = Array::new(&context, &host, [N, K])?;
        let labels = Array::line(&context, &(0..N).map(|i| label(i) as u8).collect::<Vec<u8>>())?;
        let most = logits.max_along(&[1])?;
        let e = (&logits - most.add_axis(1, 1)?).exp();
        let sum = e.sum_along(&[1])?;
        let softmax = &e / sum.add_axis(1, 1)?;
        let hot = labels.add_axis(1, 1)?.eq(Array::<u8>::iota(&context, K)?)?.cast::<f32>()?;
        let picked = logits.gather(&[&Array::iota(&context, N)?, &labels], Boundary::Clamp)?;
        let loss = (sum.log() + &most - &picked).mean()?;
        let slope = (&softmax - &hot) / N as f32;
        evaluate_all(&[loss.node(), slope.node(), softmax.node()])?;

        let (mut total, mut wanted) = (0.0, vec![]);
        for (i, row) in host.chunks(K).enumerate() {
            let most = row.iter().copied().fold(f32::MIN, f32::max);
            let sum: f32 = row.iter().map(|x| (x - most).exp()).sum();
            total += sum.ln() + most - row[label(i)];
            wanted.extend((0..K).map(|j| ((row[j] - most).exp() / sum - f32::from(j == label(i))) / N as f32));
        }
        close(&[loss.item()?], &[total / N as f32], 1e-5);
        close(&slope.to_vec()?, &wanted, 1e-6);
        close(&softmax.sum_along(&[1])?.to_vec()?, &[1.0; N], 1e-5);
    }
    Ok(())
}

#[test]
fn principal_component() -> Result<()> {
    const N: usize = 60;
    let host: Vec<f32> = noise(N * 5).iter().enumerate().map(|(i, x)| if i % 5 == 2 { x * 9.0 } else { *x }).collect();
    for context in contexts()? {
        let x = Array::new(&context, &host, [N, 5])?;
        let x = &x - x.mean_along(&[0])?;
        let covariance = x.t().matmul(&x)? / (N as f32 - 1.0);
        let step = Function::new(&context, |matrix: &Array<f32>, vector: &Array<f32>| {
            let next = matrix.inner(vector)?;
            let norm = (&next * &next).sum().sqrt();
            Ok((&next / &norm, norm))
        });
        let (mut vector, mut norm) = (Array::full(&context, 5, 1.0f32)?, Array::scalar(&context, 0.0f32));
        for _ in 0..30 {
            (vector, norm) = step.call((&covariance, &vector))?;
        }
        // The matrix maps the vector to a multiple of itself.
        let (found, times) = (vector.to_vec()?, norm.item()?);
        let image: Vec<f32> = found.iter().map(|x| x * times).collect();
        close(&covariance.inner(&vector)?.to_vec()?, &image, 1e-4);
        assert!(found[2].abs() > 0.99 && times > 4.0, "{found:?} {times}");
    }
    Ok(())
}

#[test]
fn edges() -> Result<()> {
    const H: usize = 20;
    const W: usize = 24;
    let host = noise(H * W);
    let at = |i: i64, j: i64| f64::from(host[i.clamp(0, H as i64 - 1) as usize * W + j.clamp(0, W as i64 - 1) as usize]);
    let across = |i: i64, j: i64| {
        at(i - 1, j + 1) + 2.0 * at(i, j + 1) + at(i + 1, j + 1) - at(i - 1, j - 1) - 2.0 * at(i, j - 1) - at(i + 1, j - 1)
    };
    let down = |i: i64, j: i64| {
        at(i + 1, j - 1) + 2.0 * at(i + 1, j) + at(i + 1, j + 1) - at(i - 1, j - 1) - 2.0 * at(i - 1, j) - at(i - 1, j + 1)
    };
    let size = |i: i64, j: i64| {
        let is_inside = (0..H as i64).contains(&i) && (0..W as i64).contains(&j);
        if is_inside { across(i, j).hypot(down(i, j)) } else { 0.0 }
    };
    for context in contexts()? {
        let image = Array::new(&context, &host, [H, W])?;
        let across_all = image.window(Boundary::Clamp, |w| {
            let column = |j: i64| w.at(&[-1, j]) + w.at(&[0, j]) * 2.0 + w.at(&[1, j]);
            column(1) - column(-1)
        })?;
        let down_all = image.window(Boundary::Clamp, |w| {
            let row = |i: i64| w.at(&[i, -1]) + w.at(&[i, 0]) * 2.0 + w.at(&[i, 1]);
            row(1) - row(-1)
        })?;
        let strength = across_all.hypot(&down_all)?;
        let beside = |by: [i64; 2]| strength.shift(&by, Boundary::Constant(0.0));
        let rival = across_all
            .abs()
            .ge(down_all.abs())?
            .cond(beside([0, 1])?.maximum(beside([0, -1])?)?, beside([1, 0])?.maximum(beside([-1, 0])?)?)?;
        let thin = strength.ge(&rival)?.cond(&strength, 0.0)?;
        assert!(thin.plan()?.kernels.len() <= 2, "{}", thin.explain()?);
        let found = thin.to_vec()?;
        for (i, j) in (0..H as i64).flat_map(|i| (0..W as i64).map(move |j| (i, j))) {
            let is_across = across(i, j).abs() >= down(i, j).abs();
            let (a, b) = if is_across { (size(i, j - 1), size(i, j + 1)) } else { (size(i - 1, j), size(i + 1, j)) };
            let (own, rival) = (size(i, j), a.max(b));
            let wanted = if own >= rival { own } else { 0.0 };
            let found = f64::from(found[i as usize * W + j as usize]);
            // Two values that differ only by rounding may be exchanged.
            assert!((found - wanted).abs() < 1e-5 || (own - rival).abs() < 1e-5, "{i} {j}: {found} instead of {wanted}");
        }
    }
    Ok(())
}

#[test]
fn sums_in_boxes() -> Result<()> {
    const H: usize = 11;
    const W: usize = 17;
    let host = noise(H * W);
    for context in contexts()? {
        let a = Array::new(&context, &host, [H, W])?;
        let table = a.cumulative_sum(0)?.cumulative_sum(1)?.pad(&[(1, 0), (1, 0)], 0.0)?;
        let boxes = table.slice(&span![3.., 3..])? - table.slice(&span![..-3, 3..])? - table.slice(&span![3.., ..-3])?
            + table.slice(&span![..-3, ..-3])?;
        assert_eq!(boxes.plan()?.kernels.len(), 3, "{}", boxes.explain()?);
        let wanted = |p: usize| (0..9).map(|q| host[(p / (W - 2) + q / 3) * W + p % (W - 2) + q % 3]).sum::<f32>();
        close(&boxes.to_vec()?, &(0..(H - 2) * (W - 2)).map(wanted).collect::<Vec<f32>>(), 1e-4);
    }
    Ok(())
}

#[test]
fn equalised() -> Result<()> {
    let host: Vec<u8> = noise(600).iter().map(|x| (x * x * 200.0) as u8).collect();
    let mut counts = [0u32; 256];
    host.iter().for_each(|x| counts[usize::from(*x)] += 1);
    let up_to: Vec<u32> = (0..256).map(|i| counts[..=i].iter().sum()).collect();
    let first = up_to.iter().copied().find(|x| *x > 0).unwrap_or(0);
    let level = |x: &u8| ((up_to[usize::from(*x)] - first) as f32 * 255.0 / (600 - first) as f32).round_ties_even() as u8;
    let wanted: Vec<u8> = host.iter().map(level).collect();
    for context in contexts()? {
        let image = Array::new(&context, &host, [20, 30])?;
        let up_to = image.histogram(256)?.cumulative_sum(0)?;
        let first = up_to.gt(0)?.cond(&up_to, u32::MAX)?.min();
        let levels = (&up_to - &first).cast::<f32>()? * 255.0 / (600 - &first).cast::<f32>()?;
        let table = levels.round_even().cast::<u8>()?;
        assert_eq!(table.take(0, &image, Boundary::Clamp)?.to_vec()?, wanted);
    }
    Ok(())
}

#[test]
fn groups_and_runs() -> Result<()> {
    let keys: Vec<i32> = noise(400).iter().map(|x| (x * 7.0) as i32).collect();
    let values = noise(400);
    for context in contexts()? {
        let (key, value) = (Array::line(&context, &keys)?, Array::line(&context, &values)?);
        // Mean and variance of each group.
        let none = Array::full(&context, 7, 0.0f32)?;
        let count = key.histogram(7)?.cast::<f32>()?;
        let mean = none.scatter_sum(&[&key], &value)? / &count;
        let off = &value - mean.take(0, &key, Boundary::Clamp)?;
        let variance = none.scatter_sum(&[&key], &(&off * &off))? / &count;
        evaluate_all(&[mean.node(), variance.node()])?;
        let (means, variances) = (mean.to_vec()?, variance.to_vec()?);
        for group in 0..7 {
            let own: Vec<f32> = (0..400).filter(|i| keys[*i] == group).map(|i| values[i]).collect();
            let mean = own.iter().sum::<f32>() / own.len() as f32;
            let variance = own.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / own.len() as f32;
            close(&[means[group as usize], variances[group as usize]], &[mean, variance], 1e-4);
        }
        // Sorts the keys, finds each distinct value with its count, and reconstructs the sorted keys.
        let sorted = key.sort(0)?;
        let starts = sorted.ne(sorted.shift(&[1], Boundary::Constant(-1))?)?;
        let at = Array::<i32>::iota(&context, 400)?.pack(&starts)?;
        let (each, times) = (sorted.pack(&starts)?, at.shift(&[-1], Boundary::Constant(400))? - &at);
        let mut wanted = BTreeMap::new();
        keys.iter().for_each(|key| *wanted.entry(*key).or_insert(0) += 1);
        assert_eq!(each.to_vec()?.into_iter().zip(times.to_vec()?).collect::<BTreeMap<i32, i32>>(), wanted);
        let run = starts.cast::<i32>()?.cumulative_sum(0)? - 1;
        assert_eq!(each.take(0, &run, Boundary::Clamp)?.to_vec()?, sorted.to_vec()?);
    }
    Ok(())
}

#[test]
fn sparse_matrix() -> Result<()> {
    let (mut offsets, mut columns, mut values) = (vec![0u32], vec![], vec![]);
    for i in 0..30u32 {
        columns.extend((0..i * 5 % 7).map(|j| (i + j * 3) % 25));
        values.extend((0..i * 5 % 7).map(|j| (i as f32 - j as f32) / 8.0));
        offsets.push(columns.len() as u32);
    }
    let host = noise(25);
    let row = |i: usize| offsets[i] as usize..offsets[i + 1] as usize;
    let wanted: Vec<f32> = (0..30).map(|i| row(i).map(|k| values[k] * host[columns[k] as usize]).sum()).collect();
    for context in contexts()? {
        let (column, value) = (Array::line(&context, &columns)?, Array::line(&context, &values)?);
        let vector = Array::line(&context, &host)?;
        let rows = Segments::from_offsets(&Array::line(&context, &offsets)?, columns.len())?;
        let product = (&value * vector.take(0, &column, Boundary::Clamp)?).segmented_sum(&rows)?;
        assert_eq!(product.plan()?.kernels.len(), 1, "{}", product.explain()?);
        close(&product.to_vec()?, &wanted, 1e-5);
        // The row of an element is the number of segments that end before it. This gives the dense matrix.
        let ends = Array::full(&context, columns.len() + 1, 0u32)?
            .scatter_sum(&[&Array::line(&context, &offsets[1..])?], &Array::scalar(&context, 1))?;
        let row = ends.cumulative_sum(0)?.slice(&span![..-1])?;
        let dense = Array::full(&context, [30, 25], 0.0f32)?.scatter_sum(&[&row, &column], &value)?;
        close(&dense.inner(&vector)?.to_vec()?, &wanted, 1e-5);
    }
    Ok(())
}

#[test]
fn options_and_their_slopes() -> Result<()> {
    const RATE: f64 = 0.02;
    const YEARS: f64 = 1.5;
    const STRIKE: f64 = 100.0;
    let spots: Vec<f64> = noise(40).iter().map(|x| 50.0 + 100.0 * f64::from(*x)).collect();
    for context in contexts()? {
        let price = |spot: &Array<f64>, volatility: f64| {
            let width = volatility * YEARS.sqrt();
            let up = ((spot / STRIKE).log() + (RATE + volatility * volatility / 2.0) * YEARS) / width;
            spot * up.normcdf() - STRIKE * (-RATE * YEARS).exp() * (&up - width).normcdf()
        };
        let spot = Array::line(&context, &spots)?;
        let width = 0.3 * YEARS.sqrt();
        let up = ((&spot / STRIKE).log() + (RATE + 0.045) * YEARS) / width;
        let density = (&up * &up * -0.5).exp() / std::f64::consts::TAU.sqrt();
        let (delta, gamma, vega) = (up.normcdf(), &density / (&spot * width), &spot * &density * YEARS.sqrt());
        // Finite differences of prices.
        let (more, less, same) = (price(&(&spot + 0.01), 0.3), price(&(&spot - 0.01), 0.3), price(&spot, 0.3));
        let off = [
            delta - (&more - &less) / 0.02,
            gamma - (&more + &less - &same * 2.0) / 1e-4,
            vega - (price(&spot, 0.3001) - price(&spot, 0.2999)) / 2e-4,
        ];
        evaluate_all(&off.each_ref().map(Array::node))?;
        for off in off {
            let most = off.abs().max().item()?;
            assert!(most < 1e-5, "{most}");
        }
    }
    Ok(())
}

#[test]
fn bodies() -> Result<()> {
    const N: usize = 24;
    let (host, masses) = (noise(N * 3), noise(N + 5)[5..].to_vec());
    for context in contexts()? {
        let mass = Array::line(&context, &masses)?;
        let step = Function::new(&context, move |place: &Array<f32>, speed: &Array<f32>, time: &Array<f32>| {
            let apart = place.add_axis(0, 1)? - place.add_axis(1, 1)?;
            let near = ((&apart * &apart).sum_along(&[2])? + 0.01).rsqrt();
            let pull = (&mass * near.pow(3.0)?).add_axis(2, 1)?;
            let speed = speed + (apart * pull).sum_along(&[1])? * time;
            Ok((place + &speed * time, speed))
        });
        let (mut place, mut speed) = (Array::new(&context, &host, [N, 3])?, Array::full(&context, [N, 3], 0.0f32)?);
        let (mut places, mut speeds) = (host.clone(), vec![0.0f32; N * 3]);
        for time in [0.01, 0.02, 0.01] {
            (place, speed) = step.call((&place, &speed, time))?;
            let from = places.clone();
            for (i, j) in (0..N).flat_map(|i| (0..N).map(move |j| (i, j))) {
                let apart = [0, 1, 2].map(|k| from[j * 3 + k] - from[i * 3 + k]);
                let near = (apart.iter().map(|x| x * x).sum::<f32>() + 0.01).sqrt().recip();
                (0..3).for_each(|k| speeds[i * 3 + k] += masses[j] * near.powi(3) * apart[k] * time);
            }
            (0..N * 3).for_each(|i| places[i] += speeds[i] * time);
        }
        close(&place.to_vec()?, &places, 1e-4);
        close(&speed.to_vec()?, &speeds, 1e-3);
    }
    Ok(())
}

/// Computes the Fourier transform of complex numbers, stored as pairs of arrays, by halving: strided slices
/// and concatenations.
fn fourier(re: &Array<f32>, im: &Array<f32>) -> Result<(Array<f32>, Array<f32>)> {
    let n = re.len();
    if n == 1 {
        return Ok((re.clone(), im.clone()));
    }
    let half = |a: &Array<f32>, first: isize| a.slice(&span![first.. ; 2]);
    let (a, b) = fourier(&half(re, 0)?, &half(im, 0)?)?;
    let (c, d) = fourier(&half(re, 1)?, &half(im, 1)?)?;
    let turn = Array::<i32>::iota(re.context(), n / 2)?.cast::<f32>()? * (-std::f32::consts::TAU / n as f32);
    let (cos, sin) = (turn.cos(), turn.sin());
    let (c, d) = (&c * &cos - &d * &sin, &c * &sin + &d * &cos);
    Ok((Array::concatenate(0, &[&(&a + &c), &(&a - &c)])?, Array::concatenate(0, &[&(&b + &d), &(&b - &d)])?))
}

#[test]
fn transformed_by_halves() -> Result<()> {
    let host = noise(8);
    let wanted = |part: fn(f64) -> f64| -> Vec<f32> {
        let angle = |i: usize, k: usize| -std::f64::consts::TAU * (i * k % 8) as f64 / 8.0;
        (0..8).map(|k| (0..8).map(|i| f64::from(host[i]) * part(angle(i, k))).sum::<f64>() as f32).collect()
    };
    for context in contexts()? {
        let (re, im) = fourier(&Array::line(&context, &host)?, &Array::full(&context, 8, 0.0f32)?)?;
        evaluate_all(&[re.node(), im.node()])?;
        close(&re.to_vec()?, &wanted(f64::cos), 1e-5);
        close(&im.to_vec()?, &wanted(f64::sin), 1e-5);
    }
    Ok(())
}

#[test]
fn pixels() -> Result<()> {
    let host: Vec<F32x4> = noise(4 * 80).chunks(4).map(|p| [p[0], p[1], p[2], p[3]]).collect();
    let over: Vec<F32x4> = host.iter().map(|p| p.map(|x| x * p[3] + 1.0 - p[3])).collect();
    let grey: Vec<f32> = over.iter().map(|p| p[0] * 0.25 + p[1] * 0.5 + p[2] * 0.25).collect();
    for context in contexts()? {
        let image = Array::new(&context, &host, [8, 10])?;
        let opaque = image.lane(3)?.splat();
        let mut on_white = &image * &opaque;
        on_white += [1.0; 4] - &opaque;
        let weighed = on_white.map(|p| (p * [0.25, 0.5, 0.25, 0.0]).lane(0) + p.lane(1) * 0.5 + p.lane(2) * 0.25)?;
        let bright = weighed.gt(0.5)?.cond(&on_white, [0.0; 4])?;
        // Each 2×2 block becomes one pixel.
        let smaller = on_white.reshape([4, 2, 5, 2])?.sum_along(&[1, 3])? / [4.0; 4];
        evaluate_all(&[weighed.node(), bright.node(), smaller.node()])?;
        close(&weighed.to_vec()?, &grey, 1e-5);
        let (bright, smaller) = (bright.to_vec()?, smaller.to_vec()?);
        for i in (0..80).filter(|i| (grey[*i] - 0.5).abs() > 1e-5) {
            close(&bright[i], &if grey[i] > 0.5 { over[i] } else { [0.0; 4] }, 1e-5);
        }
        for (i, pixel) in smaller.iter().enumerate() {
            let corner = i / 5 * 20 + i % 5 * 2;
            let mean = |lane: usize| [0, 1, 10, 11].iter().map(|by| over[corner + by][lane]).sum::<f32>() / 4.0;
            close(pixel, &[0, 1, 2, 3].map(mean), 1e-5);
        }
    }
    Ok(())
}

#[test]
fn neighbours() -> Result<()> {
    const D: usize = 4;
    let (from, to) = (noise(40 * D), noise(30 * D + 7)[7..].to_vec());
    let apart = |i: usize, j: usize| (0..D).map(|k| (from[i * D + k] - to[j * D + k]).powi(2)).sum::<f32>();
    for context in contexts()? {
        let (a, b) = (Array::new(&context, &from, [40, D])?, Array::new(&context, &to, [30, D])?);
        let square = |a: &Array<f32>| (a * a).sum_along(&[1]);
        let squares = square(&a)?.add_axis(1, 1)? + square(&b)? - a.matmul(&b.t())? * 2.0;
        let order = squares.argsort(1)?.slice(&span![.., ..3])?;
        let lengths = squares.gather(&[&Array::positions(&context, order.shape(), 0)?, &order], Boundary::Clamp)?;
        // Three points for each. Their axes replace the row axis.
        let points = b.take(0, &order, Boundary::Clamp)?;
        assert_eq!(points.shape().extents(), [40, 3, D]);
        let (order, lengths, points) = (order.to_vec()?, lengths.to_vec()?, points.to_vec()?);
        for i in 0..40 {
            let mut wanted: Vec<f32> = (0..30).map(|j| apart(i, j)).collect();
            for place in i * 3..i * 3 + 3 {
                let j = order[place] as usize;
                close(&[lengths[place]], &[wanted[j]], 1e-5);
                assert_eq!(points[place * D..][..D], to[j * D..][..D]);
            }
            wanted.sort_by(f32::total_cmp);
            close(&lengths[i * 3..][..3], &wanted[..3], 1e-5);
        }
    }
    Ok(())
}

#[test]
fn in_its_place() -> Result<()> {
    for context in contexts()? {
        let ramp = Array::line(&context, &[1, 2, 3])?;
        let mut a = ramp.clone();
        a += 10;
        a -= &ramp;
        a *= Array::scalar(&context, 3);
        a /= 4;
        a %= 5;
        a <<= 3;
        a >>= 1;
        a |= &ramp;
        a &= 6;
        a ^= 1;
        let wanted = |x: i32| ((((((x + 10 - x) * 3 / 4) % 5) << 3) >> 1 | x) & 6) ^ 1;
        assert_eq!(a.to_vec()?, [1, 2, 3].map(wanted));
        assert_eq!(ramp.to_vec()?, [1, 2, 3]);
        // Numbers as operands of arrays, also in methods.
        let x = Array::line(&context, &[-1.5f32, 2.0, 3.0])?;
        assert_eq!(x.maximum(0.0)?.pow(2.0)?.to_vec()?, [0.0, 4.0, 9.0]);
        assert_eq!(x.mul_add(2.0, &x)?.sub(1.0)?.to_vec()?, [-5.5, 5.0, 8.0]);
        assert_eq!(x.map(|x| x.gt(0.0).cond(1u8, 0))?.to_vec()?, [0, 1, 1]);
        let (right, guessed) = (x.gt(0.0)?, x.lt(2.5)?);
        assert_eq!(right.eq(&guessed)?.to_vec()?, [false, true, false]);
        assert_eq!(right.ne(true)?.to_vec()?, [true, false, false]);
    }
    Ok(())
}

#[test]
fn taken_along_each_axis() -> Result<()> {
    for context in contexts()? {
        let host: Vec<i32> = (0..24).collect();
        let a = Array::new(&context, &host, [2, 3, 4])?;
        // The index type may be too small for the other axes.
        let long = Array::<i32>::iota(&context, 600)?.reshape([2, 300])?;
        let columns = long.take(0, &Array::line(&context, &[1u8, 7])?, Boundary::Constant(-1))?;
        assert_eq!(columns.to_vec()?, (300..600).chain([-1; 300]).collect::<Vec<i32>>());
        let at = Array::new(&context, &[1i8, 0, -1, 2], [2, 2])?;
        for (axis, extents) in [vec![2, 2, 3, 4], vec![2, 2, 2, 4], vec![2, 3, 2, 2]].into_iter().enumerate() {
            let taken = a.take(axis, &at, Boundary::Wrap)?;
            assert_eq!(taken.shape().extents(), extents);
            let mut wanted = vec![];
            for place in 0..extents.iter().product::<usize>() {
                let mut own = [0; 4];
                (0..4).rev().fold(place, |rest, axis| {
                    own[axis] = rest % extents[axis];
                    rest / extents[axis]
                });
                let index = [1i64, 0, -1, 2][own[axis] * 2 + own[axis + 1]].rem_euclid([2, 3, 4][axis]) as usize;
                let mut from: Vec<usize> = own.to_vec();
                from.splice(axis..axis + 2, [index]);
                wanted.push(host[from[0] * 12 + from[1] * 4 + from[2]]);
            }
            assert_eq!(taken.to_vec()?, wanted, "axis {axis}");
        }
        // An index that is a parameter.
        let rows = Array::new(&context, &host, [24, 1])?;
        let mut sum = Array::full(&context, 1, 0)?;
        sum.evaluate()?;
        let before = context.statistics().plans;
        for row in 0..24 {
            let own = rows.take(0, &Array::scalar(&context, row), Boundary::Clamp)?;
            assert_eq!(own.shape().extents(), [1]);
            sum += own;
            sum.evaluate()?;
        }
        assert_eq!((sum.item()?, context.statistics().plans), (276, before + 1));
    }
    Ok(())
}

#[test]
fn parts_replaced() -> Result<()> {
    let spans = [
        span![1..4, ..],
        span![.., -2..],
        span![2, ..],
        span![.., -1],
        span![.. ; 2, 1.. ; 3],
        span![.. ; -1, 1..5 ; -2],
        span![3..3, ..],
        span![.. ; 100, .. ; -100],
        span![3, 4],
    ];
    for context in contexts()? {
        let host: Vec<i32> = (0..42).collect();
        let a = Array::new(&context, &host, [6, 7])?;
        for spans in &spans {
            let part = a.slice(spans)?;
            let other = -Array::<i32>::iota(&context, part.len())?.reshape(part.shape())? - 1;
            let replaced = a.replace_slice(spans, &other)?;
            // The indices of the slice are the values of the array.
            let mut wanted = host.clone();
            part.to_vec()?.iter().zip(other.to_vec()?).for_each(|(place, value)| wanted[*place as usize] = value);
            assert!(replaced.plan()?.kernels.len() <= 1, "{}", replaced.explain()?);
            assert_eq!(replaced.to_vec()?, wanted, "{spans:?}");
        }
        // Values broadcast, also along a new axis.
        let line = Array::line(&context, &[-1, -2])?;
        let columns = a.replace_slice(&[Span::At(0), Span::Added, Span::from(2..4)], &line)?;
        assert_eq!(columns.to_vec()?[..7], [0, 1, -1, -2, 4, 5, 6]);
        let error = a.replace_slice(&span![1.., ..3], &line).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("`replace_slice`: the shapes [5, 3] and [2] do not fit together"));
        // A frame keeps its values while the inside changes.
        let mut heat = a.cast::<f32>()?;
        for _ in 0..3 {
            let mean =
                heat.window(Boundary::Clamp, |w| (w.at(&[-1, 0]) + w.at(&[1, 0]) + w.at(&[0, -1]) + w.at(&[0, 1])) / 4.0)?;
            heat = heat.replace_slice(&span![1..-1, 1..-1], mean.slice(&span![1..-1, 1..-1])?)?;
        }
        // A plane stays unchanged.
        close(&heat.to_vec()?, &host.iter().map(|x| *x as f32).collect::<Vec<f32>>(), 1e-6);
    }
    Ok(())
}

#[test]
fn files() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let context = interp();
    let path = std::env::temp_dir().join(format!("broadloom-programs-{}.npy", std::process::id()));
    let told = |error: broadloom_array::FileError| error.to_string().replace(&path.display().to_string(), "PATH");
    let error = Array::<f32>::load_npy(&context, &path).err().map(told);
    assert_eq!(error.as_deref(), Some("`PATH`: No such file or directory (os error 2)"));
    let host = ndarray::Array3::from_shape_fn((2, 3, 4), |(i, j, k)| (i * 100 + j * 10 + k) as f64);
    let a = Array::from_ndarray(&context, &host)?;
    assert_eq!(a.slice(&span![.., .. ; -1, 1.. ; 2])?.to_ndarray()?, host.slice(ndarray::s![.., ..;-1, 1..;2]).into_dyn());
    a.transpose(&[2, 0, 1])?.save_npy(&path)?;
    let back = Array::<f64>::load_npy(&context, &path)?;
    let error = Array::<f32>::load_npy(&context, &path).err().map(told);
    std::fs::remove_file(&path)?;
    assert_eq!(back.to_ndarray()?, host.permuted_axes([2, 0, 1]).into_dyn());
    assert_eq!(error.as_deref(), Some("`PATH` holds `f64`, not `f32`"));
    Ok(())
}

#[test]
fn threads_on_one_context() -> Result<()> {
    for context in contexts()? {
        let run = |start: f32| -> Result<Vec<f32>> {
            let mut x = Array::line(&context, &noise(100))?;
            for _ in 0..20 {
                x = (&x * 0.9 + start).sqrt();
                x.evaluate()?;
            }
            x.to_vec()
        };
        let (one, two) = std::thread::scope(|scope| {
            let other = scope.spawn(|| run(2.0));
            (run(1.0), other.join())
        });
        let wanted =
            |start: f32| -> Vec<f32> { noise(100).iter().map(|x| (0..20).fold(*x, |x, _| (x * 0.9 + start).sqrt())).collect() };
        close(&one?, &wanted(1.0), 1e-6);
        close(&two.unwrap_or_else(|_| Ok(vec![]))?, &wanted(2.0), 1e-6);
    }
    Ok(())
}

#[test]
fn contexts_are_not_mixed() -> Result<()> {
    let [context, other] = contexts()?;
    let (a, b) = (Array::line(&context, &[1.0f32])?, Array::line(&other, &[1.0f32])?);
    let (at, segments) = (b.cast::<i32>()?, Segments::from_lengths(&b.cast::<i32>()?, 1)?);
    let matrix = |a: &Array<f32>| a.reshape([1, 1]);
    let foreign = b.clone();
    let captured = Function::new(&context, move |a: &Array<f32>| a.sub(&foreign));
    let called = Function::new(&context, |a: &Array<f32>, b: &Array<f32>| a + b);
    let refused = [
        a.add(&b),
        a.pow(&b),
        a.zip_with(&b, |x, y| x + y),
        a.gather(&[&at], Boundary::Clamp),
        a.take(0, &at, Boundary::Clamp),
        a.scatter_sum(&[&at], &a),
        matrix(&a)?.matmul(&matrix(&b)?),
        a.inner(&b),
        a.outer(&b),
        a.sort_by(&b),
        a.pack(&b.gt(0.0)?),
        a.gt(0.0)?.cond(&a, &b),
        Array::concatenate(0, &[&a, &b]),
        a.segmented_sum(&segments),
        a.segmented_sum_before(&segments),
        a.segmented_sort(&segments),
        captured.call(&a),
        called.call((&a, &b)),
    ];
    for (number, result) in refused.into_iter().enumerate() {
        assert!(matches!(result, Err(Error::Devices { .. })), "{number}: {result:?}");
    }
    assert!(matches!(evaluate_all(&[a.node(), b.node()]), Err(Error::Devices { .. })));
    let told = a.add(&b).err().map(|error| error.to_string());
    assert_eq!(told.as_deref(), Some("`+`: one array is on `interp`, the other on `cpu`; `to_context` copies one of them"));
    assert_eq!(a.add(b.to_context(&context)?)?.to_vec()?, [2.0]);
    Ok(())
}
