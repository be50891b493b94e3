//! Flat and irregular benchmarks against C++: the programs of `examples/nesl`, called with arrays.

use super::ragged::{filter_sums, list_argmin, list_pairs, list_sort};
use super::{Contest, NeslFunction, line, near};
use crate::benchmark::{Benchmark, count};
use crate::error::Failure;
use crate::group;
use crate::inputs::{hashed, ragged_offsets, unit, units, weighed};
use crate::job::Work;
use crate::kernels::option;
use broadloom::array::Precision;

macro_rules! benchmark {
    ($name:ident, $peer:literal, $tolerance:expr, $full:expr, $quick:expr, $shown:expr) => {
        Benchmark {
            group: group::NESL,
            name: stringify!($name),
            peer: include_str!(concat!("../../peers/", $peer, ".cpp")),
            tolerance: $tolerance,
            size: |scale| scale.fixed($full, $quick),
            shown: $shown,
            subject: &NeslFunction($name),
        }
    };
}

/// All benchmarks, in run order.
pub(crate) const ALL: &[Benchmark] = &[
    benchmark!(dot, "dot", 1e-4, 10_000_000, 2000, count),
    benchmark!(black_scholes, "black_scholes", 1e-4, 10_000_000, 500, count),
    benchmark!(black_scholes_fast, "black_scholes", 1e-4, 10_000_000, 500, count),
    benchmark!(quicksort, "nesl_quicksort", 1e-9, 1_000_000, 200, count),
    benchmark!(sparse_product, "sparse_product", 1e-4, 615_000, 100, |n| format!("{n} rows")),
    benchmark!(convex_hull, "nesl_convex_hull", 1e-4, 5_000_000, 200, |n| format!("{n} points")),
    benchmark!(barnes_hut, "nesl_barnes_hut", 1e-3, 75_000, 60, |n| format!("{n} bodies")),
    benchmark!(filter_sums, "nesl_filter_sums", 1e-4, 1_000_000, 100, |n| format!("{n} lists")),
    benchmark!(list_argmin, "nesl_list_argmin", 1e-9, 5_000_000, 100, |n| format!("{n} lists")),
    benchmark!(list_pairs, "nesl_list_pairs", 5e-3, 200_000, 40, |n| format!("{n} lists")),
    benchmark!(list_sort, "nesl_list_sort", 1e-9, 1_000_000, 60, |n| format!("{n} lists")),
];

fn dot(n: usize) -> Contest {
    Contest {
        text: concat!(
            include_str!("../../../../examples/nesl/dot_product.nesl"),
            "function contest(a, b) : ([float], [float]) -> float = dot_product(a, b);"
        )
        .to_owned(),
        precision: Precision::Fast,
        work: Work { in_memory: false, ..Work::reading(8 * n, 2 * n) },
        arguments: Box::new(move |context| {
            Ok(vec![line(context, &units(n, 1, 0.0, 1.0))?, line(context, &units(n, 2, 0.0, 1.0))?])
        }),
        judge: Box::new(move |found| {
            let want: f64 = (0..n as u32).map(|i| f64::from(unit(i, 1)) * f64::from(unit(i, 2))).sum();
            near("the product", found[0][0], want, 1e-5, 0.0)?;
            Ok(weighed(found[0].iter().copied(), 0))
        }),
    }
}

fn black_scholes(n: usize) -> Contest {
    options(n, Precision::Accurate, 5e-5)
}

fn black_scholes_fast(n: usize) -> Contest {
    options(n, Precision::Fast, 2e-4)
}

/// Makes a contest of option prices, with an absolute tolerance against the reference.
fn options(n: usize, precision: Precision, tolerance: f64) -> Contest {
    Contest {
        text: concat!(
            include_str!("../../../../examples/nesl/black_scholes.nesl"),
            "function contest(s, k, y) : ([float], [float], [float]) -> [(float, float)] = prices(s, k, y);"
        )
        .to_owned(),
        precision,
        work: Work { in_memory: false, ..Work::memory(20 * n, 0) },
        arguments: Box::new(move |context| {
            let columns = [units(n, 1, 5.0, 30.0), units(n, 2, 1.0, 100.0), units(n, 3, 0.25, 10.0)];
            columns.iter().map(|column| line(context, column)).collect()
        }),
        judge: Box::new(move |found| {
            for index in (0..n).step_by(n / 1000 + 1) {
                let (call, put) = option(index as u32);
                near("a call", found[0][index], call, 0.0, tolerance)?;
                near("a put", found[1][index], put, 0.0, tolerance)?;
            }
            Ok(weighed(found[0].iter().copied(), 0) + weighed(found[1].iter().copied(), n))
        }),
    }
}

fn quicksort(n: usize) -> Contest {
    Contest {
        text: concat!(
            include_str!("../../../../examples/nesl/quicksort.nesl"),
            "function contest(s) : [float] -> [float] = quicksort(s);"
        )
        .to_owned(),
        precision: Precision::Fast,
        work: Work { in_memory: false, ..Work::memory(8 * n, 0) },
        arguments: Box::new(move |context| Ok(vec![line(context, &units(n, 21, 0.0, 1.0))?])),
        judge: Box::new(move |found| {
            let mut want = units(n, 21, 0.0, 1.0);
            want.sort_unstable_by(f32::total_cmp);
            if found[0].len() != n || found[0].iter().zip(&want).any(|(got, want)| *got != f64::from(*want)) {
                return Err(Failure::Wrong("the numbers are not sorted".to_owned()));
            }
            Ok(weighed(found[0].iter().copied(), 0))
        }),
    }
}

fn sparse_product(n: usize) -> Contest {
    let starts = ragged_offsets(n, 16);
    let total = starts[n] as usize;
    let column = move |i: usize| ((u64::from(hashed(i as u32, 15)) * n as u64) >> 32) as i32;
    let judged = starts.clone();
    Contest {
        text: concat!(
            include_str!("../../../../examples/nesl/sparse_product.nesl"),
            "function contest(m, x) : ([[(int, float)]], [float]) -> [float] = sparse_product(m, x);"
        )
        .to_owned(),
        precision: Precision::Fast,
        work: Work::memory(8 * total + 12 * n, 2 * total),
        arguments: Box::new(move |context| {
            Ok(vec![
                line(context, &starts)?,
                line(context, &(0..total).map(column).collect::<Vec<_>>())?,
                line(context, &units(total, 14, 0.0, 1.0))?,
                line(context, &units(n, 13, 0.0, 1.0))?,
            ])
        }),
        judge: Box::new(move |found| {
            let term = |i: usize| f64::from(unit(i as u32, 14)) * f64::from(unit(column(i) as u32, 13));
            for row in (0..n).step_by(n / 1000 + 1) {
                let want = (judged[row] as usize..judged[row + 1] as usize).map(term).sum();
                near("a row", found[0][row], want, 1e-4, 0.0)?;
            }
            Ok(weighed(found[0].iter().copied(), 0))
        }),
    }
}

fn convex_hull(n: usize) -> Contest {
    Contest {
        text: concat!(
            include_str!("../../../../examples/nesl/convex_hull.nesl"),
            "function contest(p) : [(float, float)] -> [(float, float)] = convex_hull(p);"
        )
        .to_owned(),
        precision: Precision::Fast,
        work: Work { in_memory: false, ..Work::memory(8 * n, 0) },
        arguments: Box::new(move |context| {
            Ok(vec![line(context, &units(n, 31, 0.0, 1.0))?, line(context, &units(n, 32, 0.0, 1.0))?])
        }),
        // Points on an edge of the hull may be included or not because of rounding. Therefore the area is
        // compared.
        judge: Box::new(move |found| {
            let (x, y) = (&found[0], &found[1]);
            let count = x.len();
            let area: f64 = (0..count).map(|i| (i, (i + 1) % count)).map(|(i, j)| x[j] * y[i] - x[i] * y[j]).sum::<f64>() / 2.0;
            for point in (0..n).step_by(n / 1000 + 1) {
                let (px, py) = (f64::from(unit(point as u32, 31)), f64::from(unit(point as u32, 32)));
                for (i, j) in (0..count).map(|i| (i, (i + 1) % count)) {
                    let side = (x[i] - px) * (y[j] - py) - (y[i] - py) * (x[j] - px);
                    if side > 1e-6 {
                        return Err(Failure::Wrong(format!("point {point} lies outside of the hull by {side}")));
                    }
                }
            }
            Ok(area)
        }),
    }
}

fn barnes_hut(n: usize) -> Contest {
    let body = |i: usize| [0.5 + unit(i as u32, 41), unit(i as u32, 42), unit(i as u32, 43)];
    Contest {
        text: concat!(
            include_str!("../../../../examples/nesl/barnes_hut.nesl"),
            "function contest(b) : [(float, float, float)] -> [(float, float)] = barnes_hut(b);"
        )
        .to_owned(),
        precision: Precision::Fast,
        work: Work { in_memory: false, ..Work::memory(20 * n, 0) },
        arguments: Box::new(move |context| {
            (0..3).map(|part| line(context, &(0..n).map(|i| body(i)[part]).collect::<Vec<_>>())).collect()
        }),
        judge: Box::new(move |found| {
            let bodies: Vec<[f64; 3]> = (0..n).map(|i| body(i).map(f64::from)).collect();
            let direct = |i: usize| {
                bodies.iter().fold([0.0, 0.0], |[fx, fy], [mass, x, y]| {
                    let (dx, dy) = (x - bodies[i][1], y - bodies[i][2]);
                    let square = dx * dx + dy * dy + 1e-4;
                    let force = mass / (square * square.sqrt());
                    [fx + force * dx, fy + force * dy]
                })
            };
            let sample: Vec<usize> = (0..n).step_by(n / 50 + 1).collect();
            let exact: Vec<[f64; 2]> = sample.iter().map(|&i| direct(i)).collect();
            let largest = exact.iter().flatten().fold(0.0f64, |most, force| most.max(force.abs()));
            for (&i, want) in sample.iter().zip(&exact) {
                near("a force", found[0][i], want[0], 0.0, 0.02 * largest)?;
                near("a force", found[1][i], want[1], 0.0, 0.02 * largest)?;
            }
            Ok(weighed(found[0].iter().copied(), 0) + weighed(found[1].iter().copied(), n))
        }),
    }
}
