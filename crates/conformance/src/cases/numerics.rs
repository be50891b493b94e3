//! Simulation, fractals, transforms, statistics.

use std::f64::consts::PI;

use crate::compare::{close, holds, same};
use crate::inputs::Inputs;
use crate::trial::{Outcome, Trial, args};

pub(crate) fn nbody(t: &mut Trial<'_>) -> Outcome {
    let (n, softening) = (100, 0.01f32);
    let mut r = Inputs::new(90);
    let bodies: Vec<[f32; 4]> = r.many(n, |r| [0; 4].map(|_: i32| r.f64(0.1, 1.0) as f32));
    let (db, out) = (t.upload(&bodies)?, t.output::<[f32; 4]>(n)?);
    t.launch("nbody", 2, 64, args![db, out, n as i32, softening])?;
    let want: Vec<f32> = bodies
        .iter()
        .flat_map(|me| {
            let mut sum = [0.0f64; 4];
            for other in &bodies {
                let d: Vec<f64> = (0..3).map(|c| f64::from(other[c]) - f64::from(me[c])).collect();
                let distance2 = d.iter().map(|d| d * d).sum::<f64>() + f64::from(softening);
                (0..3).for_each(|c| sum[c] += f64::from(other[3]) * d[c] / distance2.powf(1.5));
            }
            sum.map(|s| s as f32)
        })
        .collect();
    close("accelerations", t.download(&out)?.as_flattened(), &want, 1e-4, 1e-2)
}

pub(crate) fn mandelbrot(t: &mut Trial<'_>) -> Outcome {
    let (w, h, limit) = (40, 24, 60);
    let steps = t.output::<u16>(w * h)?;
    let (left, top, step) = (-2.1f32, -1.2f32, 0.075f32);
    t.launch("mandelbrot", [3, 3, 1], [16, 8, 1], args![steps, w as i32, h as i32, left, top, step, limit])?;
    let count = |cx: f32, cy: f32| {
        let (mut x, mut y) = (0.0f32, 0.0f32);
        (0..limit)
            .find(|_| {
                let out = x * x + y * y > 4.0;
                (x, y) = (x * x - y * y + cx, 2.0 * x * y + cy);
                out
            })
            .unwrap_or(limit) as u16
    };
    let want: Vec<u16> = (0..w * h).map(|i| count(left + (i % w) as f32 * step, top + (i / w) as f32 * step)).collect();
    same("mandelbrot", &t.download(&steps)?, &want)?;

    let c = [-0.8f64, 0.156];
    let steps = t.output::<u16>(w * h)?;
    t.launch("julia", [3, 3, 1], [16, 8, 1], args![steps, w as i32, h as i32, c, 0.07f64, limit])?;
    let count = |mut x: f64, mut y: f64| {
        (0..limit)
            .find(|_| {
                let out = x * x + y * y > 4.0;
                (x, y) = (x * x - y * y + c[0], x * y + x * y + c[1]);
                out
            })
            .unwrap_or(limit) as u16
    };
    let centred = |v: usize, size: usize| (v as f64 - (size / 2) as f64) * 0.07;
    let want: Vec<u16> = (0..w * h).map(|i| count(centred(i % w, w), centred(i / w, h))).collect();
    same("julia", &t.download(&steps)?, &want)
}

/// Returns the prices of a call and a put after Black and Scholes.
fn option_price(spot: f64, strike: f64, years: f64, r: f64, v: f64) -> (f64, f64) {
    let normal = |d: f64| 0.5 * libm::erfc(-d / 2f64.sqrt());
    let d1 = ((spot / strike).ln() + (r + 0.5 * v * v) * years) / (v * years.sqrt());
    let d2 = d1 - v * years.sqrt();
    let discounted = strike * (-r * years).exp();
    (spot * normal(d1) - discounted * normal(d2), discounted * normal(-d2) - spot * normal(-d1))
}

pub(crate) fn black_scholes(t: &mut Trial<'_>) -> Outcome {
    let (n, rate, volatility) = (200, 0.02, 0.3);
    let mut r = Inputs::new(91);
    let single = |values: Vec<f64>| -> Vec<f32> { values.iter().map(|v| *v as f32).collect() };
    let (spot, strike) = (single(r.f64s(n, 5.0, 30.0)), single(r.f64s(n, 1.0, 100.0)));
    let years = single(r.f64s(n, 0.25, 10.0));
    let prices = |i: usize| option_price(f64::from(spot[i]), f64::from(strike[i]), f64::from(years[i]), rate, volatility);
    let (call, put): (Vec<f64>, Vec<f64>) = (0..n).map(prices).unzip();

    let wide = |values: &[f32]| -> Vec<f64> { values.iter().map(|v| f64::from(*v)).collect() };
    let (ds, dk, dy) = (t.upload(&wide(&spot))?, t.upload(&wide(&strike))?, t.upload(&wide(&years))?);
    let (dc, dp) = (t.output::<f64>(n)?, t.output::<f64>(n)?);
    t.launch("black_scholes_f64", 2, 64, args![ds, dk, dy, dc, dp, rate, volatility, n as i32])?;
    close("call in double", &t.download(&dc)?, &call, 1e-11, 1e-11)?;
    close("put in double", &t.download(&dp)?, &put, 1e-11, 1e-11)?;

    let (ds, dk, dy) = (t.upload(&spot)?, t.upload(&strike)?, t.upload(&years)?);
    let (dc, dp) = (t.output::<f32>(n)?, t.output::<f32>(n)?);
    let (rate, volatility) = (rate as f32, volatility as f32);
    t.launch("black_scholes_f32", 2, 64, args![ds, dk, dy, dc, dp, rate, volatility, n as i32])?;
    // The polynomial for the normal distribution has an error of up to 7.5e-8, times prices of up to 100,
    // besides rounding.
    close("call", &wide(&t.download(&dc)?), &call, 1e-4, 2e-4)?;
    close("put", &wide(&t.download(&dp)?), &put, 1e-4, 2e-4)
}

fn philox_block(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let p = 0xd251_1f53u64 * u64::from(counter[0]);
        let q = 0xcd9e_8d57u64 * u64::from(counter[2]);
        counter = [(q >> 32) as u32 ^ counter[1] ^ key[0], q as u32, (p >> 32) as u32 ^ counter[3] ^ key[1], p as u32];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    counter
}

pub(crate) fn monte_carlo(t: &mut Trial<'_>) -> Outcome {
    // Known answer for a counter and a key of zero.
    let known = [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8];
    same("known answer", &philox_block([0; 4], [0; 2]), &known)?;
    let n = 100;
    for key in [[0u32, 0], [0xdead_beef, 0x1234_5678]] {
        let out = t.output::<[u32; 4]>(n)?;
        t.launch("philox", 1, 128, args![out, n as i32, key])?;
        let want: Vec<[u32; 4]> = (0..n as u32).map(|i| philox_block([i, 0, 0, 0], key)).collect();
        same("words", &t.download(&out)?, &want)?;
    }
    let (threads, rounds, key) = (256u32, 10u32, [7u32, 9]);
    let inside = t.zeros::<u64>(1)?;
    t.launch("monte_carlo_pi", 2, threads / 2, args![inside, rounds, key])?;
    let within = |x: u32, y: u32| {
        let scale = 2f32.powi(-32);
        let (u, v) = (x as f32 * scale, y as f32 * scale);
        u64::from(u * u + v * v < 1.0)
    };
    let mut want = 0;
    for i in 0..threads {
        for k in 0..rounds {
            let w = philox_block([i, k, 1, 0], key);
            want += within(w[0], w[1]) + within(w[2], w[3]);
        }
    }
    same("inside", &t.download(&inside)?, &[want])?;
    let pi = 4.0 * want as f64 / f64::from(threads * rounds * 2);
    holds("the estimate is near pi", (pi - PI).abs() < 0.1)
}

pub(crate) fn fft(t: &mut Trial<'_>) -> Outcome {
    let (blocks, n) = (2, 128);
    let mut r = Inputs::new(92);
    let data: Vec<[f32; 2]> = r.many(blocks * n, |r| [r.f64(-1.0, 1.0) as f32, r.f64(-1.0, 1.0) as f32]);
    let dd = t.upload(&data)?;
    t.launch("fft", blocks as u32, n as u32 / 2, args![dd, 0i32])?;
    let want: Vec<f32> = (0..blocks * n)
        .flat_map(|i| {
            let (mut re, mut im) = (0.0, 0.0);
            for (j, [x, y]) in data[i / n * n..][..n].iter().enumerate() {
                let (s, c) = (-2.0 * PI * (i % n * j % n) as f64 / n as f64).sin_cos();
                re += f64::from(*x) * c - f64::from(*y) * s;
                im += f64::from(*x) * s + f64::from(*y) * c;
            }
            [re as f32, im as f32]
        })
        .collect();
    close("spectrum", t.download(&dd)?.as_flattened(), &want, 1e-5, 1e-4)?;
    t.launch("fft", blocks as u32, n as u32 / 2, args![dd, 1i32])?;
    close("round trip", t.download(&dd)?.as_flattened(), data.as_flattened(), 1e-5, 1e-5)
}

pub(crate) fn dct8x8(t: &mut Trial<'_>) -> Outcome {
    let (tiles_x, tiles_y) = (3, 2);
    let width = tiles_x * 8;
    let image = Inputs::new(93).f32s(width * tiles_y * 8, -128.0, 128.0);
    let (di, out) = (t.upload(&image)?, t.output::<f32>(image.len())?);
    t.launch("dct8x8", [tiles_x as u32, tiles_y as u32, 1], [8, 8, 1], args![di, out])?;
    let scale = |u: usize| if u == 0 { (1.0f64 / 8.0).sqrt() } else { 0.5 };
    let wave = |x: usize, u: usize| ((2 * x + 1) as f64 * u as f64 * PI / 16.0).cos();
    let want: Vec<f32> = (0..image.len())
        .map(|i| {
            let (u, v) = (i % width % 8, i / width % 8);
            let corner = i - u - v * width;
            let pixel = |k: usize| f64::from(image[corner + k / 8 * width + k % 8]);
            let sum: f64 = (0..64).map(|k| pixel(k) * wave(k % 8, u) * wave(k / 8, v)).sum();
            (scale(u) * scale(v) * sum) as f32
        })
        .collect();
    close("coefficients", &t.download(&out)?, &want, 1e-5, 1e-3)
}
