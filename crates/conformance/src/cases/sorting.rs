//! Sorting and merging.

use crate::compare::same;
use crate::inputs::Inputs;
use crate::trial::{Outcome, Trial, args};

pub(crate) fn bitonic_sort(t: &mut Trial<'_>) -> Outcome {
    let (grid, block) = (2, 128);
    let keys = Inputs::new(30).u32s(grid * 2 * block);
    for descending in [false, true] {
        let dk = t.upload(&keys)?;
        t.launch("bitonic_sort", grid as u32, block as u32, args![dk, i32::from(descending)])?;
        let mut want = keys.clone();
        for part in want.chunks_mut(2 * block) {
            part.sort_unstable();
            if descending {
                part.reverse();
            }
        }
        same(if descending { "descending" } else { "ascending" }, &t.download(&dk)?, &want)?;
    }
    Ok(())
}

pub(crate) fn radix_sort(t: &mut Trial<'_>) -> Outcome {
    let blocks = 4;
    let n = blocks * 256;
    let keys = Inputs::new(31).u32s(n);
    let (mut from, mut to) = (t.upload(&keys)?, t.output::<u32>(n)?);
    let counts = t.output::<u32>(16 * blocks)?;
    for shift in (0..32).step_by(4) {
        t.launch("radix_count", blocks as u32, 256, args![from, shift, counts])?;
        t.launch("radix_offsets", 1, 1, args![counts, 16 * blocks as i32])?;
        t.launch("radix_scatter", blocks as u32, 256, args![from, to, shift, counts])?;
        std::mem::swap(&mut from, &mut to);
    }
    let mut want = keys;
    want.sort_unstable();
    same("keys", &t.download(&from)?, &want)
}

pub(crate) fn odd_even_sort(t: &mut Trial<'_>) -> Outcome {
    let n = 151;
    let mut keys: Vec<i16> = Inputs::new(32).many(n, |r| r.u32() as i16);
    let dk = t.upload(&keys)?;
    t.launch("odd_even_sort", 1, 76, args![dk, n as i32])?;
    keys.sort_unstable();
    same("keys", &t.download(&dk)?, &keys)
}

pub(crate) fn merge_path(t: &mut Trial<'_>) -> Outcome {
    let mut r = Inputs::new(33);
    let (mut a, mut b) = (r.i32s(700, 0, 900), r.i32s(433, 0, 900));
    a.sort_unstable();
    b.sort_unstable();
    let total = a.len() + b.len();
    let (da, db, out) = (t.upload(&a)?, t.upload(&b)?, t.output::<i32>(total)?);
    t.launch("merge_path", 3, 64, args![da, a.len() as i32, db, b.len() as i32, out])?;
    let mut want = [a, b].concat();
    want.sort_unstable();
    same("merged", &t.download(&out)?, &want)
}

pub(crate) fn rank_sort(t: &mut Trial<'_>) -> Outcome {
    let n = 300;
    // Some keys are equal.
    let keys: Vec<f64> = Inputs::new(34).many(n, |r| r.below(-80, 80) as f64 * 0.37);
    let (dk, out) = (t.upload(&keys)?, t.output::<f64>(n)?);
    t.launch("rank_sort", 3, 128, args![dk, out, n as i32])?;
    let mut want = keys;
    want.sort_by(f64::total_cmp);
    same("keys", &t.download(&out)?, &want)
}
