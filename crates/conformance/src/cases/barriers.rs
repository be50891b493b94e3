//! Barriers, locks, flags and fences.

use crate::compare::{same, same_set};
use crate::inputs::Inputs;
use crate::trial::{Outcome, Trial, args};

pub(crate) fn named_barriers(t: &mut Trial<'_>) -> Outcome {
    let (grid, rounds) = (2, 5);
    let n = grid * 64 * rounds;
    let mut r = Inputs::new(140);
    let input = r.i32s(n, -1000, 1000);
    let (di, out) = (t.upload(&input)?, t.output::<i32>(n)?);
    t.launch("named_barriers", grid as u32, 128, args![di, out, rounds as i32])?;
    let want: Vec<i32> = (0..n).map(|i| input[i / 64 * 64 + 63 - i % 64] * 2 + 1).collect();
    same("drained", &t.download(&out)?, &want)?;

    let mut data = r.i32s(256, -1000, 1000);
    let dd = t.upload(&data)?;
    t.launch("paired_barriers", 2, 128, args![dd])?;
    for (half, values) in data.chunks_mut(64).enumerate() {
        for k in 0..[3, 7][half % 2] {
            values.rotate_left(1);
            values.iter_mut().for_each(|v| *v += k);
        }
    }
    same("rotated", &t.download(&dd)?, &data)
}

pub(crate) fn barrier_votes(t: &mut Trial<'_>) -> Outcome {
    let (grid, block) = (4, 75);
    let mut input = Inputs::new(141).i32s(grid * block, -100, 70);
    input[..block].iter_mut().for_each(|v| *v = v.abs());
    input[2 * block + 40] = 77;
    let (di, out) = (t.upload(&input)?, t.output::<[i32; 3]>(grid * block)?);
    t.launch("barrier_votes", grid as u32, block as u32, args![di, out])?;
    let vote = |i: usize| {
        let all = &input[i / block * block..][..block];
        [all.iter().filter(|v| **v > 0).count() as i32, i32::from(all.iter().all(|v| *v > -90)), i32::from(all.contains(&77))]
    };
    same("votes", &t.download(&out)?, &(0..grid * block).map(vote).collect::<Vec<[i32; 3]>>())?;

    let (grid, n) = (3, 90);
    let mut data = vec![1000; grid * n];
    [(0, 3), (1, 60), (1, 10), (2, 89)].iter().for_each(|(block, at)| data[block * n + at] = 0);
    let (dd, rounds) = (t.upload(&data)?, t.output::<i32>(grid)?);
    t.launch("relax_until_stable", grid as u32, n as u32, args![dd, rounds])?;
    let distance = |i: usize| {
        let zeros = (0..n).filter(|k| data[i / n * n + k] == 0);
        zeros.map(|k| (k as i32 - (i % n) as i32).abs()).min().unwrap_or_default()
    };
    let want: Vec<i32> = (0..grid * n).map(distance).collect();
    same("distances", &t.download(&dd)?, &want)?;
    // Number of iterations: the longest distance, and one in which nothing changes.
    let longest = want.chunks(n).map(|d| d.iter().max().copied().unwrap_or_default() + 1);
    same("rounds", &t.download(&rounds)?, &longest.collect::<Vec<i32>>())
}

pub(crate) fn spin_lock(t: &mut Trial<'_>) -> Outcome {
    let (grid, block) = (3, 48);
    let threads = grid * block;
    let (lock, data) = (t.zeros::<i32>(1)?, t.zeros::<u32>(2)?);
    t.launch("spin_lock", grid, block, args![lock, data])?;
    same("data", &t.download(&data)?, &[threads, threads * (threads - 1) / 2])?;
    same("lock", &t.download(&lock)?, &[0])?;

    let (tickets, data) = (t.zeros::<u32>(2)?, t.zeros::<u32>(1)?);
    t.launch("ticket_lock", grid, block, args![tickets, data])?;
    same("tickets", &t.download(&tickets)?, &[threads, threads])?;
    same("served", &t.download(&data)?, &[threads])
}

pub(crate) fn producer_consumer(t: &mut Trial<'_>) -> Outcome {
    let (grid, block) = (2, 100);
    let input = Inputs::new(142).i32s(grid * block, -50, 50);
    let (di, out) = (t.upload(&input)?, t.output::<i32>(grid * block)?);
    t.launch("producer_consumer", grid as u32, block as u32, args![di, out])?;
    let want: Vec<i32> = (0..grid * block).map(|i| input[i / block * block..=i].iter().sum()).collect();
    same("sums", &t.download(&out)?, &want)
}

pub(crate) fn acquire_release(t: &mut Trial<'_>) -> Outcome {
    let (grid, block) = (3u32, 40u32);
    let n = (grid * block) as usize;
    let want: Vec<u32> = (1..=n as u32).map(|i| i * (i + 1) / 2).collect();
    for kernel in ["acquire_release", "relaxed_fences"] {
        let (slot, flag, out) = (t.zeros::<u32>(n)?, t.zeros::<u32>(n)?, t.output::<u32>(n)?);
        t.launch_together(kernel, grid, block, args![slot, flag, out])?;
        same(kernel, &t.download(&out)?, &want)?;
    }
    let (lock, total) = (t.zeros::<u32>(1)?, t.zeros::<u32>(1)?);
    t.launch("acquire_release_lock", grid, block, args![lock, total])?;
    same("total", &t.download(&total)?, &[grid * (0..block).sum::<u32>()])
}

pub(crate) fn grid_barrier(t: &mut Trial<'_>) -> Outcome {
    let (grid, block, rounds) = (4, 32, 3);
    let n = grid * block;
    let data = Inputs::new(143).i32s(n, -100, 100);
    let (dd, arrived) = (t.upload(&data)?, t.zeros::<u32>(1)?);
    t.launch_together("grid_barrier", grid as u32, block as u32, args![dd, rounds, arrived])?;
    let want: Vec<i32> = (0..n).map(|i| data[(i + rounds as usize) % n] + (0..rounds).sum::<i32>()).collect();
    same("data", &t.download(&dd)?, &want)?;
    same("arrivals", &t.download(&arrived)?, &[2 * rounds as u32 * grid as u32])
}

pub(crate) fn hash_table(t: &mut Trial<'_>) -> Outcome {
    let (n, capacity) = (600, 256);
    let mut r = Inputs::new(144);
    let keys: Vec<u32> = r.many(n, |r| r.below(0, 200) as u32 * 0x0101_0101);
    let (dk, slot, count) = (t.upload(&keys)?, t.upload(&vec![u32::MAX; capacity])?, t.zeros::<u32>(capacity)?);
    t.launch("hash_insert", 2, 128, args![dk, n as i32, slot, count, capacity as u32])?;
    let mut distinct = keys.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let stored: Vec<u32> = t.download(&slot)?.into_iter().filter(|k| *k != u32::MAX).collect();
    same_set("stored keys", &stored, &distinct)?;

    let queries: Vec<u32> = (0..220).map(|k| k * 0x0101_0101).collect();
    let (dq, found) = (t.upload(&queries)?, t.output::<u32>(queries.len())?);
    t.launch("hash_lookup", 1, 64, args![dq, queries.len() as i32, slot, count, capacity as u32, found])?;
    let occurrences = |q: &u32| keys.iter().filter(|k| *k == q).count() as u32;
    same("counts", &t.download(&found)?, &queries.iter().map(occurrences).collect::<Vec<u32>>())
}

pub(crate) fn work_queue(t: &mut Trial<'_>) -> Outcome {
    let (n, grid, block) = (300, 2, 32);
    let (next, steps) = (t.zeros::<u32>(1)?, t.output::<u32>(n)?);
    t.launch("work_queue", grid, block, args![next, n as u32, steps])?;
    let collatz = |start: u64| {
        std::iter::successors(Some(start), |v| (*v != 1).then(|| if v % 2 == 0 { v / 2 } else { 3 * v + 1 })).count() as u32 - 1
    };
    same("steps", &t.download(&steps)?, &(1..=n as u64).map(collatz).collect::<Vec<u32>>())?;
    // Every thread draws one surplus ticket before it stops.
    same("tickets", &t.download(&next)?, &[n as u32 + grid * block])
}
