//! Barriers in shared memory, and clusters.

use crate::compare::same;
use crate::inputs::Inputs;
use crate::trial::{Outcome, Trial, args};

pub(crate) fn barrier_phases(t: &mut Trial<'_>) -> Outcome {
    let (grid, block, rounds) = (2, 128, 4);
    let mut r = Inputs::new(150);
    let mut data = r.i32s(grid * block, -1000, 1000);
    let dd = t.upload(&data)?;
    t.launch("barrier_phases", grid as u32, block as u32, args![dd, rounds])?;
    for k in 0..rounds {
        let before = data.clone();
        for (i, v) in data.iter_mut().enumerate() {
            let next = i / block * block + (i + 1) % block;
            *v = before[next].wrapping_sub(before[i].wrapping_mul(3).wrapping_add(k));
        }
    }
    same("exchanged", &t.download(&dd)?, &data)?;

    let (out, alive) = (t.output::<i32>(grid * block)?, t.output::<[i32; 4]>(grid)?);
    t.launch("barrier_leaving", grid as u32, block as u32, args![out, alive])?;
    let stays = |i: usize| {
        let (mut own, mut other) = ((i % block) as i32, ((i % block) ^ 1) as i32);
        for k in 0..(i % block / 32) as i32 {
            (own, other) = (own + other + k, other + own + k);
        }
        own
    };
    same("sums", &t.download(&out)?, &(0..grid * block).map(stays).collect::<Vec<i32>>())?;
    same("alive", &t.download(&alive)?, &vec![[128, 96, 64, 32]; grid])?;

    let mut data = r.i32s(grid * block, -1000, 1000);
    let dd = t.upload(&data)?;
    t.launch("barrier_many_at_once", grid as u32, block as u32, args![dd, rounds])?;
    for _ in 0..rounds {
        let before = data.clone();
        let far = |i: usize| i / block * block + block - 1 - i % block;
        data.iter_mut().enumerate().for_each(|(i, v)| *v += before[far(i)]);
    }
    same("mirrored", &t.download(&dd)?, &data)
}

pub(crate) fn barrier_pipeline(t: &mut Trial<'_>) -> Outcome {
    let (grid, steps) = (2, 11);
    let input = Inputs::new(151).f32s(grid * 32 * steps, -8.0, 8.0);
    let (di, out) = (t.upload(&input)?, t.output::<f32>(grid * 96)?);
    t.launch("barrier_pipeline", grid as u32, 128, args![di, out, steps as i32])?;
    let drained = |i: usize| {
        let tiles = input[i / 96 * 32 * steps..].chunks(32).take(steps);
        // Halving is exact, so fusing it with the sum does not matter.
        tiles.enumerate().fold(0f32, |sum, (k, tile)| sum * 0.5 + tile[(i % 96 * 5 + k) % 32])
    };
    same("drained", &t.download(&out)?, &(0..grid * 96).map(drained).collect::<Vec<f32>>())
}

pub(crate) fn cluster_memory(t: &mut Trial<'_>) -> Outcome {
    let (grid, block) = (8, 64);
    let mut r = Inputs::new(152);
    let input: Vec<u8> = r.many(3000, |r| (r.below(0, 256) * r.below(0, 256) / 256) as u8);
    let (di, bins) = (t.upload(&input)?, t.zeros::<u32>(256)?);
    t.launch("cluster_histogram", grid as u32, block as u32, args![di, input.len() as i32, bins])?;
    let mut counts = vec![0; 256];
    input.iter().for_each(|v| counts[usize::from(*v)] += 1);
    same("bins", &t.download(&bins)?, &counts)?;

    let input = r.i32s(grid * block, -1000, 1000);
    for steps in [1, 3, 6] {
        let (di, out) = (t.upload(&input)?, t.output::<i32>(grid * block)?);
        t.launch("cluster_rotate", grid as u32, block as u32, args![di, out, steps as i32])?;
        let added: i32 = (0..steps as i32).map(|k| k * 10 + 1).sum();
        let from = |i: usize| {
            let (cluster, rank) = (i / block / 4, i / block % 4);
            (cluster * 4 + (rank + 8 - steps) % 4) * block + i % block
        };
        same("rotated", &t.download(&out)?, &(0..grid * block).map(|i| input[from(i)] + added).collect::<Vec<i32>>())?;
    }
    Ok(())
}
