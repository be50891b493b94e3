//! Filters of PNG rows (PNG specification, section 9): differences to the pixels at the left and above.

/// Filters by their numbers: none, left, above, mean of both, Paeth.
const FILTERS: u8 = 5;

/// Predictor of Paeth: the neighbour that is nearest to left + above − corner.
fn paeth(left: u8, above: u8, corner: u8) -> u8 {
    let (a, b, c) = (i16::from(left), i16::from(above), i16::from(corner));
    let (to_left, to_above, to_corner) = ((b - c).abs(), (a - c).abs(), (a + b - 2 * c).abs());
    if to_left <= to_above && to_left <= to_corner {
        left
    } else if to_above <= to_corner {
        above
    } else {
        corner
    }
}

/// Filters a row. `pixel` is the number of bytes of a pixel, `above` the row before.
fn apply(filter: u8, pixel: usize, row: &[u8], above: &[u8], out: &mut [u8]) {
    let first = pixel.min(row.len());
    let (lefts, corners) = (&row[..row.len() - first], &above[..row.len() - first]);
    // Pixels left of the row are 0.
    for ((out, x), above) in out[..first].iter_mut().zip(row).zip(above) {
        *out = match filter {
            0 | 1 => *x,
            2 | 4 => x.wrapping_sub(*above),
            _ => x.wrapping_sub(above / 2),
        };
    }
    let rest = out[first..].iter_mut().zip(&row[first..]);
    match filter {
        0 => rest.for_each(|(out, x)| *out = *x),
        1 => rest.zip(lefts).for_each(|((out, x), left)| *out = x.wrapping_sub(*left)),
        2 => rest.zip(&above[first..]).for_each(|((out, x), above)| *out = x.wrapping_sub(*above)),
        3 => rest.zip(lefts.iter().zip(&above[first..])).for_each(|((out, x), (left, above))| {
            *out = x.wrapping_sub((left & above) + ((left ^ above) >> 1));
        }),
        _ => rest.zip(lefts.iter().zip(&above[first..]).zip(corners)).for_each(|((out, x), ((left, above), corner))| {
            *out = x.wrapping_sub(paeth(*left, *above, *corner));
        }),
    }
}

/// Filters rows and puts the number of the filter before each. The filter with the smallest sum of magnitudes is chosen
/// for groups of `group` rows by the first of them. `above` is the row before the first one; 0 above the image.
pub(super) fn filtered(rows: &[u8], line: usize, pixel: usize, above: &[u8], group: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(rows.len() + rows.len() / line);
    let (mut best, mut tried) = (vec![0; line], vec![0; line]);
    let (mut above, mut number) = (above, 0);
    for (index, row) in rows.chunks_exact(line).enumerate() {
        if index.is_multiple_of(group) {
            let mut least = u64::MAX;
            for filter in 0..FILTERS {
                apply(filter, pixel, row, above, &mut tried);
                let sum = magnitudes(&tried);
                if sum < least {
                    (number, least) = (filter, sum);
                    std::mem::swap(&mut best, &mut tried);
                }
            }
        } else {
            apply(number, pixel, row, above, &mut best);
        }
        bytes.push(number);
        bytes.extend_from_slice(&best);
        above = row;
    }
    bytes
}

/// Returns the sum of the magnitudes of signed bytes.
fn magnitudes(bytes: &[u8]) -> u64 {
    // Sums of this many bytes fit in 16 bits.
    let sum = |part: &[u8]| u64::from(part.iter().map(|byte| u16::from((*byte as i8).unsigned_abs())).sum::<u16>());
    bytes.chunks(256).map(sum).sum()
}
