//! Points and rays, clusters, integration of motion, roots.

use crate::compare::{close, same};
use crate::inputs::Inputs;
use crate::trial::{Outcome, Trial, args};

/// Returns the squared distance in single precision, rounded after each operation.
fn distance2(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).fold(0.0, |sum, (a, b)| sum + (a - b) * (a - b))
}

pub(crate) fn kmeans(t: &mut Trial<'_>) -> Outcome {
    let (n, k) = (500, 7);
    let mut r = Inputs::new(100);
    let point: Vec<[f32; 2]> = r.many(n, |r| [r.f64(-8.0, 8.0) as f32, r.f64(-8.0, 8.0) as f32]);
    let centre = point[..k].to_vec();
    let (dp, dc, nearest) = (t.upload(&point)?, t.upload(&centre)?, t.output::<i32>(n)?);
    let (sx, sy, count) = (t.zeros::<i64>(k)?, t.zeros::<i64>(k)?, t.zeros::<i32>(k)?);
    t.launch("kmeans_assign", 4, 128, args![dp, n as i32, dc, k as i32, nearest, sx, sy, count])?;
    t.launch("kmeans_move", 1, k as u32, args![dc, sx, sy, count])?;

    let home =
        |p: &[f32; 2]| (0..k).fold(0, |best, c| if distance2(p, &centre[c]) < distance2(p, &centre[best]) { c } else { best });
    let homes: Vec<i32> = point.iter().map(|p| home(p) as i32).collect();
    same("nearest", &t.download(&nearest)?, &homes)?;
    let members = |c: usize| point.iter().zip(&homes).filter(move |(_, h)| **h as usize == c).map(|(p, _)| p);
    let counts: Vec<i32> = (0..k).map(|c| members(c).count() as i32).collect();
    same("counts", &t.download(&count)?, &counts)?;
    let mean = |c: usize, axis: usize| members(c).map(|p| f64::from(p[axis])).sum::<f64>() / f64::from(counts[c]);
    let want: Vec<f32> = (0..2 * k).map(|i| mean(i / 2, i % 2) as f32).collect();
    // Sums are truncated to multiples of 1/65536.
    close("centres", t.download(&dc)?.as_flattened(), &want, 1e-5, 1.0 / 65536.0)
}

pub(crate) fn nearest_neighbours(t: &mut Trial<'_>) -> Outcome {
    let (n, queries, d, k) = (150, 40, 3, 5);
    let mut r = Inputs::new(101);
    // A coarse lattice, so that some distances are equal.
    let coordinate = |r: &mut Inputs| r.below(-6, 7) as f32 * 0.5;
    let (reference, query) = (r.many(n * d, coordinate), r.many(queries * d, coordinate));
    let (dr, dq) = (t.upload(&reference)?, t.upload(&query)?);
    let (index, distance) = (t.output::<i32>(queries * k)?, t.output::<f32>(queries * k)?);
    let arguments = args![dr, n as i32, dq, queries as i32, d as i32, k as i32, index, distance];
    t.launch("nearest_neighbours", 2, 32, arguments)?;
    let (mut places, mut distances) = (Vec::new(), Vec::new());
    for q in query.chunks(d) {
        let mut all: Vec<(f32, usize)> = reference.chunks(d).enumerate().map(|(i, p)| (distance2(p, q), i)).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        places.extend(all[..k].iter().map(|(_, i)| *i as i32));
        distances.extend(all[..k].iter().map(|(d, _)| d.sqrt()));
    }
    same("places", &t.download(&index)?, &places)?;
    same("distances", &t.download(&distance)?, &distances)
}

pub(crate) fn ray_spheres(t: &mut Trial<'_>) -> Outcome {
    let (w, h) = (32, 24);
    let spheres = [[0.0f32, 0.0, 5.0, 1.0], [1.2, 0.4, 4.0, 0.5], [-1.0, -0.8, 6.0, 1.2]];
    let (ds, image) = (t.upload(&spheres)?, t.output::<f32>(w * h)?);
    t.launch("ray_spheres", [2, 3, 1], [16, 8, 1], args![ds, spheres.len() as i32, image, w as i32, h as i32])?;
    let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    let unit = |a: [f64; 3]| a.map(|c| c / dot(a, a).sqrt());
    // Distance to the edge of a hit, in units of the discriminant: at a silhouette, single precision may
    // decide differently.
    let mut edge = vec![f64::INFINITY; w * h];
    let shade = |i: usize, edge: &mut f64| {
        let ray = unit([(i % w) as f64 / w as f64 + 0.5 / w as f64 - 0.5, (i / w) as f64 / h as f64 + 0.5 / h as f64 - 0.5, 1.0]);
        let mut best = (f64::INFINITY, 0.0);
        for s in &spheres {
            let s = s.map(f64::from);
            let centre = [s[0], s[1], s[2]];
            let b = dot(ray, centre);
            let disc = b * b - dot(centre, centre) + s[3] * s[3];
            *edge = edge.min(disc.abs());
            let distance = b - disc.max(0.0).sqrt();
            if disc >= 0.0 && distance > 0.0 && distance < best.0 {
                let normal = unit([0, 1, 2].map(|c| ray[c] * distance - centre[c]));
                best = (distance, dot(normal, [-0.57735; 3]).max(0.0) + 0.1);
            }
        }
        best.1
    };
    let want: Vec<f64> = (0..w * h).map(|i| shade(i, &mut edge[i])).collect();
    let got: Vec<f64> = t.download(&image)?.iter().map(|v| f64::from(*v)).collect();
    let clear = |values: &[f64]| -> Vec<f64> { (0..w * h).filter(|i| edge[*i] > 1e-3).map(|i| values[i]).collect() };
    close("image", &clear(&got), &clear(&want), 1e-3, 1e-3)
}

pub(crate) fn runge_kutta(t: &mut Trial<'_>) -> Outcome {
    let (n, steps, step) = (20, 40, 0.01);
    let mut state = Inputs::new(102).f64s(3 * n, -5.0, 5.0);
    let ds = t.upload(&state)?;
    t.launch("runge_kutta", 1, 32, args![ds, n as i32, step, steps])?;
    let slope = |s: [f64; 3]| [10.0 * (s[1] - s[0]), s[0] * (28.0 - s[2]) - s[1], s[0] * s[1] - 8.0 / 3.0 * s[2]];
    let along = |s: [f64; 3], by: f64, k: [f64; 3]| [0, 1, 2].map(|c| s[c] + by * k[c]);
    for s in state.chunks_mut(3) {
        let mut v = [s[0], s[1], s[2]];
        for _ in 0..steps {
            let k1 = slope(v);
            let k2 = slope(along(v, step / 2.0, k1));
            let k3 = slope(along(v, step / 2.0, k2));
            let k4 = slope(along(v, step, k3));
            let sum = [0, 1, 2].map(|c| k1[c] + 2.0 * k2[c] + 2.0 * k3[c] + k4[c]);
            v = along(v, step / 6.0, sum);
        }
        s.copy_from_slice(&v);
    }
    // The system doubles an error several times.
    close("states", &t.download(&ds)?, &state, 1e-9, 1e-9)
}

pub(crate) fn root_finding(t: &mut Trial<'_>) -> Outcome {
    let n = 60;
    let mut r = Inputs::new(103);
    let a = r.f64s(n, 0.1, 1.5);
    let (da, root, steps) = (t.upload(&a)?, t.output::<f64>(n)?, t.output::<i32>(n)?);
    t.launch("bisect", 1, 64, args![da, root, steps, n as i32])?;
    let got = t.download(&root)?;
    let image: Vec<f64> = got.iter().zip(&a).map(|(x, a)| (a * x).cos()).collect();
    close("x = cos(a x)", &got, &image, 0.0, 3e-12)?;
    // From 1 down to 1e-12 takes 40 halvings.
    same("steps", &t.download(&steps)?, &vec![40; n])?;

    let (a, power) = (r.f64s(n, 0.2, 50.0), r.i32s(n, 2, 7));
    let (da, dp, root) = (t.upload(&a)?, t.upload(&power)?, t.output::<f64>(n)?);
    t.launch("newton", 1, 64, args![da, dp, root, n as i32])?;
    let want: Vec<f64> = a.iter().zip(&power).map(|(a, p)| a.powf(1.0 / f64::from(*p))).collect();
    close("roots", &t.download(&root)?, &want, 1e-14, 0.0)
}

pub(crate) fn sum_compensated(t: &mut Trial<'_>) -> Outcome {
    let (rows, length) = (40, 64);
    let mut r = Inputs::new(104);
    // Large terms that cancel, so that a plain sum would lose the small ones.
    let mut values = r.f32s(rows * length, -1.0, 1.0);
    values.iter_mut().enumerate().for_each(|(i, v)| *v *= [1e6, 1.0, 1e3, -1.0][i % 4]);
    let (dv, out) = (t.upload(&values)?, t.output::<f32>(rows)?);
    t.launch("sum_kahan", 1, 64, args![dv, out, rows as i32, length as i32])?;
    let kahan = |row: &[f32]| {
        let (mut sum, mut lost) = (0.0f32, 0.0f32);
        for v in row {
            let y = v - lost;
            let next = sum + y;
            lost = (next - sum) - y;
            sum = next;
        }
        sum
    };
    let want: Vec<f32> = values.chunks(length).map(kahan).collect();
    same("kahan", &t.download(&out)?, &want)?;

    let other = r.f32s(rows * length, -1.0, 1.0);
    let (dw, out) = (t.upload(&other)?, t.output::<[f32; 2]>(rows)?);
    t.launch("dot_two_product", 1, 64, args![dv, dw, out, rows as i32, length as i32])?;
    let got: Vec<f64> = t.download(&out)?.iter().map(|[h, l]| f64::from(*h) + f64::from(*l)).collect();
    // Products of floats are exact in double, which has far more precision than the sum needs.
    let exact = |i: usize| f64::from(values[i]) * f64::from(other[i]);
    let want: Vec<f64> = (0..rows).map(|row| (row * length..(row + 1) * length).map(exact).sum()).collect();
    close("two-product", &got, &want, 1e-12, 1e-4)
}
