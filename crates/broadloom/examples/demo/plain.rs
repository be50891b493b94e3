//! The jobs as plain loops on one core: what a person writes first.

/// Non-local means of one plane, with mirrored edges.
pub(crate) fn nlmeans(x: &[f32], width: usize, height: usize, search: i32, patch: i32, strength: f32) -> Vec<f32> {
    let mirrored = |at: i32, size: usize| {
        let at = if at < 0 { -1 - at } else { at };
        let size = size as i32;
        (if at >= size { 2 * size - 1 - at } else { at }) as usize
    };
    let pixel = |column: i32, row: i32| x[mirrored(row, height) * width + mirrored(column, width)];
    let (search, patch) = (search / 2, patch / 2);
    let scale = 1.0 / (((2 * patch + 1) * (2 * patch + 1)) as f32 * strength * strength);
    let mut result = Vec::with_capacity(x.len());
    for row in 0..height as i32 {
        for column in 0..width as i32 {
            let (mut sum, mut weights) = (0.0, 0.0);
            for j in -search..=search {
                for i in -search..=search {
                    let mut distance = 0.0;
                    for v in -patch..=patch {
                        for u in -patch..=patch {
                            let difference = pixel(column + u, row + v) - pixel(column + i + u, row + j + v);
                            distance += difference * difference;
                        }
                    }
                    let weight = (-distance * scale).exp();
                    sum += weight * pixel(column + i, row + j);
                    weights += weight;
                }
            }
            result.push(sum / weights);
        }
    }
    result
}

/// The number of rounds, of `rounds`, for which each point of the Julia set stays near.
pub(crate) fn julia(width: usize, height: usize, rounds: usize, c: [f32; 2]) -> Vec<f32> {
    let mut counts = Vec::with_capacity(width * height);
    for row in 0..height {
        for column in 0..width {
            let (mut x, mut y) = crate::arrays::point(column as f32, row as f32, width, height);
            let mut count = 0.0;
            for _ in 0..rounds {
                (x, y) = (x * x - y * y + c[0], 2.0 * x * y + c[1]);
                if x * x + y * y >= 4.0 {
                    break;
                }
                count += 1.0;
            }
            counts.push(count);
        }
    }
    counts
}

/// The numbers of `examples/demo/quicksort.nesl`, whose ints have 32 bits.
pub(crate) fn numbers(n: i32) -> Vec<i32> {
    let noise = |i: i32| {
        let x = i.wrapping_mul(1_103_515_245).wrapping_add(12345);
        let y = (x ^ (x >> 13)).wrapping_mul(1_597_334_677);
        (y ^ (y >> 16)) & i32::MAX
    };
    (0..n).map(noise).collect()
}

/// Quicksort as in the NESL program: three new vectors in each call.
pub(crate) fn quicksort(s: Vec<i32>) -> Vec<i32> {
    if s.len() < 2 {
        return s;
    }
    let pivot = s[s.len() / 2];
    let part = |keep: fn(&i32, &i32) -> bool| s.iter().copied().filter(|e| keep(e, &pivot)).collect::<Vec<_>>();
    let mut sorted = quicksort(part(|e, pivot| e < pivot));
    sorted.extend(part(|e, pivot| e == pivot));
    sorted.extend(quicksort(part(|e, pivot| e > pivot)));
    sorted
}

/// Accelerations of all stars, `[x, y, z, mass]`, by all others.
pub(crate) fn pull(stars: &[[f32; 4]], velocities: &mut [[f32; 3]], step: f32) {
    for (me, velocity) in stars.iter().zip(velocities) {
        let mut sum = [0.0f32; 3];
        for other in stars {
            let d = [other[0] - me[0], other[1] - me[1], other[2] - me[2]];
            let inverse = 1.0 / (d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 0.01).sqrt();
            let weight = other[3] * inverse * inverse * inverse;
            for (sum, d) in sum.iter_mut().zip(d) {
                *sum += d * weight;
            }
        }
        for (velocity, sum) in velocity.iter_mut().zip(sum) {
            *velocity += sum * step;
        }
    }
}

/// A sample of the station of `examples/demo/radio.str`.
fn station(n: usize, tune: &[usize], pitch: &[f32]) -> [f32; 2] {
    let tone = pitch[tune[n / 48_000 % tune.len()]];
    let turn = std::f32::consts::TAU;
    let phase = 5000.0 / tone * (1.0 - (turn * tone * (n % 48_000) as f32 / 240_000.0).cos());
    let noise = (n as i32).wrapping_mul(1_103_515_245).wrapping_add(12345) as f32 / 2_147_483_648.0;
    [phase.cos() + 0.2 * noise, phase.sin() - 0.2 * noise]
}

/// The receiver of `examples/demo/radio.str`: the loudest note of each fifth of a second.
pub(crate) fn radio(notes: usize, tune: &[usize], pitch: &[f32]) -> Vec<usize> {
    const TAPS: usize = 64;
    const EAR: usize = 512;
    const WINDOW: usize = 6000;
    let turn = std::f32::consts::TAU;
    let sounds = notes * WINDOW + EAR;
    let samples: Vec<[f32; 2]> = (0..8 * (sounds + 1) + TAPS).map(|n| station(n, tune, pitch)).collect();
    let low_pass: Vec<f32> = (0..TAPS)
        .map(|i| {
            let (x, w) = (i as f32 - (TAPS - 1) as f32 / 2.0, turn * 12_000.0 / 240_000.0);
            (0.54 - 0.46 * (turn * i as f32 / (TAPS - 1) as f32).cos()) * (w * x).sin() / (std::f32::consts::PI * x)
        })
        .collect();
    let channel = |at: usize| {
        let taps = low_pass.iter().zip(&samples[8 * at..]);
        taps.fold([0.0f32; 2], |[re, im], (h, sample)| [re + h * sample[0], im + h * sample[1]])
    };
    let channel: Vec<[f32; 2]> = (0..=sounds).map(channel).collect();
    let angle = |pair: &[[f32; 2]]| {
        let ([a, b], [c, d]) = (pair[0], pair[1]);
        30_000.0 / (turn * 5000.0) * (d * a - c * b).atan2(c * a + d * b)
    };
    let sound: Vec<f32> = channel.windows(2).map(angle).collect();
    let loudness = |tone: &f32| {
        let tap = |i: usize, wave: fn(f32) -> f32| {
            let window = 0.5 - 0.5 * (turn * i as f32 / (EAR - 1) as f32).cos();
            window * wave(turn * tone * i as f32 / 30_000.0)
        };
        let cosine: Vec<f32> = (0..EAR).map(|i| tap(i, f32::cos)).collect();
        let sine: Vec<f32> = (0..EAR).map(|i| tap(i, f32::sin)).collect();
        let at = |first: usize| {
            let (mut a, mut b) = (0.0, 0.0);
            for i in 0..EAR {
                a += cosine[i] * sound[first + i];
                b += sine[i] * sound[first + i];
            }
            a * a + b * b
        };
        (0..notes).map(|note| (note * WINDOW..(note + 1) * WINDOW).map(at).sum()).collect()
    };
    let levels: Vec<Vec<f32>> = pitch.iter().map(loudness).collect();
    (0..notes)
        .map(|note| (1..levels.len()).fold(0, |best, i| if levels[i][note] > levels[best][note] { i } else { best }))
        .collect()
}
