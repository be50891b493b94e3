//! Stencils over images of all sizes, with every boundary rule.

use crate::support::{Given, Random, benches, run};
use broadloom_scalar::{AccessorKind, Builder, Element, Literal, Shuffle, Type, Value};
use broadloom_skeleton::cost::Costs;
use broadloom_skeleton::{Border, Call, Domain, Error, Fold, Operator, Pattern, Sink, Source, Stencil};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    Clamp,
    Wrap,
    /// This value stands outside.
    Constant(i64),
}

/// Weights of the neighbours, which no symmetry leaves unseen.
const TAPS: [(i64, i64, i64); 6] = [(-2, 0, 1), (-1, 1, 3), (0, 0, 5), (0, -2, 7), (1, 1, 11), (2, 0, 13)];

/// Weights of neighbours in the same column.
const ROW_TAPS: [(i64, i64, i64); 3] = [(-2, 0, 1), (0, 0, 5), (1, 0, 11)];

/// The columns of a thread that it reads together. Rows of the image are multiples of the columns, and `skew` elements more.
#[derive(Clone, Copy)]
struct Wide {
    columns: i64,
    skew: i64,
    /// True if columns of other threads come from their lanes.
    exchanges: bool,
}

/// Returns the two results of each row of a strip: the weighted sum of the neighbours, and the element itself. The scalars are height and width.
fn strip(axes: usize, index: Type, rows: u32, rule: Option<Rule>) -> Source {
    let places: Vec<(i64, i64)> = (0..rows.into()).map(|row| (row, 0)).collect();
    function(&TAPS, axes, index, &places, [rule; 2], None)
}

/// Returns the same of each row and column of a patch, in the interior.
fn patch(taps: &[(i64, i64, i64)], axes: usize, index: Type, [rows, step]: [u32; 2], wide: Wide) -> Source {
    let place = |row: i64, column: i64| (row * i64::from(step), column - row * i64::from(step) * wide.skew % wide.columns);
    let places: Vec<(i64, i64)> =
        (0..rows.into()).flat_map(|row| (0..wide.columns).map(move |column| place(row, column))).collect();
    function(taps, axes, index, &places, [None; 2], Some(wide).filter(|wide| wide.columns > 1))
}

/// Returns the results of places relative to a position, with rules along rows and along columns.
fn function(
    taps: &[(i64, i64, i64)],
    axes: usize,
    index: Type,
    places: &[(i64, i64)],
    rules: [Option<Rule>; 2],
    wide: Option<Wide>,
) -> Source {
    let f = Builder::function("places");
    let position: Vec<Value> = (0..axes).map(|_| f.parameter("i", index)).collect();
    let (height, width) = (f.parameter("height", index), f.parameter("width", index));
    let element = wide.map_or(Type::I32, |wide| Type::vector(Element::I32, wide.columns as usize).unwrap());
    let image = f.accessor("image", AccessorKind::Input, element, 1);
    let (y, x) = (position[axes - 2], position[axes - 1]);
    let above = if axes == 3 { f.mul(position[0], height) } else { f.constant(index, 0) };
    let held = |rule: Option<Rule>, place: Value, extent: Value| match rule {
        None => place,
        Some(Rule::Wrap) => f.rem(f.add(place, extent), extent),
        Some(Rule::Clamp | Rule::Constant(_)) => f.max(f.min(place, f.sub(extent, 1)), 0),
    };
    let at = |dy: i64, dx: i64| {
        let (own_y, own_x) = (f.add(y, dy), f.add(x, dx));
        if let Some(Wide { columns, skew, exchanges }) = wide {
            let start = f.div(f.add(f.mul(f.add(above, own_y), width), x), columns);
            let dx = dx + (dy * skew).rem_euclid(columns);
            let lanes = dx.div_euclid(columns);
            let loaded = f.read(image, &[f.add(start, if exchanges { 0 } else { lanes }).into()]);
            let value = f.lane(loaded, dx.rem_euclid(columns) as usize);
            return match lanes {
                1.. if exchanges => f.shuffle(Shuffle::Down, value, lanes as u32),
                ..=-1 if exchanges => f.shuffle(Shuffle::Up, value, -lanes as u32),
                _ => value,
            };
        }
        let (in_y, in_x) = (held(rules[0], own_y, height), held(rules[1], own_x, width));
        let value = f.read(image, &[f.add(f.mul(f.add(above, in_y), width), in_x).into()]);
        match rules[0].or(rules[1]) {
            Some(Rule::Constant(outside)) => {
                let inside = f.and(f.eq(own_y, in_y), f.eq(own_x, in_x));
                f.select(inside, value, f.constant(Type::I32, outside))
            }
            _ => value,
        }
    };
    let mut results = vec![];
    for (row, column) in places {
        let terms = taps.iter().map(|(dy, dx, weight)| f.mul(at(row + dy, column + dx), *weight));
        results.extend(terms.reduce(|a, b| f.add(a, b)));
        results.push(at(*row, *column));
    }
    Source::new(f.finish_function(&results).unwrap(), axes).unwrap()
}

/// Returns a stencil of strips of neighbouring rows.
fn stencil(domain: &[u64], rows: u32, inner: Source, edge: Option<Source>) -> Stencil {
    Stencil {
        domain: Domain::of(domain),
        rows,
        step: 1,
        columns: 1,
        skew: 0,
        live: 16,
        inner,
        edge,
        border: None,
        reach: (0, 0),
        fold: None,
    }
}

fn expected(taps: &[(i64, i64, i64)], image: &[i32], height: i64, width: i64, rule: Rule) -> Vec<Literal> {
    let at = |plane: i64, y: i64, x: i64| {
        let inside = (0..height).contains(&y) && (0..width).contains(&x);
        let (y, x) = match rule {
            Rule::Constant(outside) if !inside => return outside as i32,
            Rule::Wrap => (y.rem_euclid(height), x.rem_euclid(width)),
            Rule::Clamp | Rule::Constant(_) => (y.clamp(0, height - 1), x.clamp(0, width - 1)),
        };
        image[((plane * height + y) * width + x) as usize]
    };
    let sum = |i: i64| {
        let (plane, y, x) = (i / (height * width), i / width % height, i % width);
        taps.iter().fold(0i32, |sum, (dy, dx, weight)| sum.wrapping_add(at(plane, y + dy, x + dx).wrapping_mul(*weight as i32)))
    };
    (0..image.len() as i64).map(|i| Literal::from(sum(i))).collect()
}

#[test]
fn neighbours_of_all_positions() {
    let shapes: [&[u64]; 10] =
        [&[4, 1], &[5, 3], &[8, 40], &[9, 70], &[31, 33], &[150, 33], &[6, 4200], &[2, 7, 65], &[3, 8, 32], &[2, 0, 40]];
    for (name, bench) in benches() {
        for (rule, rows, of_edge, index) in [
            (Rule::Clamp, 4, 4, Type::I32),
            (Rule::Wrap, 2, 2, Type::I64),
            (Rule::Constant(-7), 3, 3, Type::I32),
            (Rule::Clamp, 1, 1, Type::I64),
            // The function near the edges is one of a position.
            (Rule::Wrap, 4, 1, Type::I32),
            (Rule::Clamp, 3, 1, Type::I64),
        ] {
            for shape in shapes {
                let axes = shape.len();
                let (height, width) = (shape[axes - 2] as i64, shape[axes - 1] as i64);
                let inner = strip(axes, index, rows, None);
                let edge = Some(strip(axes, index, of_edge, Some(rule)));
                let pattern = Pattern::from(stencil(&[9, 9, 40][3 - axes..], rows, inner, edge));
                let count: u64 = shape.iter().product();
                let mut random = Random(count);
                let image: Vec<i32> = (0..count).map(|_| random.bits() as i32).collect();
                let literals: Vec<Literal> = image.iter().map(|x| Literal::from(*x)).collect();
                let number = |value: i64| Literal::from_i128(index.element(), value.into());
                // Strips whose rows all have two others above and below.
                let mut bounds = vec![(0, 1 << 20); axes - 2];
                bounds.extend([(2, height - 1 - i64::from(rows)), (2, width - 1)]);
                let bounds = bounds.iter().flat_map(|(first, end)| [number(*first), number(*end)]);
                let extents = [number(height), number(width)];
                let scalars: Vec<Literal> = bounds.chain(extents).chain(extents).collect();
                let inputs = [literals.clone(), literals.clone()];
                let given = Given { inputs: &inputs, scalars: &scalars, sizes: shape, ..Given::default() };
                let results = run(&bench, &pattern, &given);
                assert_eq!(
                    results,
                    [expected(&TAPS, &image, height, width, rule), literals],
                    "{name}, {shape:?}, {rule:?}, {rows}, {of_edge} near the edges"
                );
            }
        }
    }
}

#[test]
fn patches_of_all_positions() {
    let shapes: [&[u64]; 12] = [
        &[16, 4],
        &[17, 40],
        &[31, 36],
        &[150, 132],
        &[16, 600],
        &[2, 23, 64],
        &[3, 16, 32],
        &[17, 41],
        &[31, 34],
        &[2, 23, 63],
        &[3, 17, 33],
        &[150, 135],
    ];
    // Vectors have no patches.
    for (name, bench) in benches().into_iter().filter(|(_, bench)| Costs::of(&bench.machine).takes_patches()) {
        for (rule, [rows, step, columns], index, exchanges, has_border) in [
            (Rule::Clamp, [4, 2, 1], Type::I32, false, false),
            (Rule::Wrap, [2, 8, 1], Type::I64, false, true),
            (Rule::Constant(-7), [3, 5, 4], Type::I32, false, true),
            (Rule::Clamp, [1, 1, 4], Type::I32, false, false),
            (Rule::Wrap, [4, 1, 2], Type::I64, false, false),
            (Rule::Constant(5), [4, 1, 4], Type::I32, true, false),
            (Rule::Clamp, [2, 4, 2], Type::I64, true, true),
            (Rule::Wrap, [4, 2, 4], Type::I32, true, true),
        ] {
            for (shape, taps) in shapes.iter().flat_map(|shape| [(shape, &TAPS[..]), (shape, &ROW_TAPS[..])]) {
                // Threads that have no neighbours to read have none to exchange values with.
                if exchanges && taps != TAPS {
                    continue;
                }
                let axes = shape.len();
                let (height, width) = (shape[axes - 2] as i64, shape[axes - 1] as i64);
                let wide = Wide { columns: columns.into(), skew: width % i64::from(columns), exchanges };
                let skew = wide.skew;
                let inner = patch(taps, axes, index, [rows, step], wide);
                let edge = function(taps, axes, index, &[(0, 0)], [Some(rule); 2], None);
                let positions = rows.min(3);
                let apart = || (0..i64::from(positions)).map(|place| place * i64::from(step));
                let along_rows: Vec<(i64, i64)> = apart().map(|column| (0, column)).collect();
                let along_columns: Vec<(i64, i64)> = apart().map(|row| (row, 0)).collect();
                let border = Border {
                    positions,
                    along_rows: function(taps, axes, index, &along_rows, [Some(rule), None], None),
                    along_columns: function(taps, axes, index, &along_columns, [None, Some(rule)], None),
                };
                let pattern = Pattern::from(Stencil {
                    step,
                    columns,
                    skew: skew as u32,
                    border: has_border.then_some(border),
                    reach: if exchanges { (2, 2) } else { (0, 0) },
                    ..stencil(&[9, 9, 40][3 - axes..], rows, inner, Some(edge))
                });
                let count: u64 = shape.iter().product();
                let mut random = Random(count);
                let image: Vec<i32> = (0..count).map(|_| random.bits() as i32).collect();
                let literals: Vec<Literal> = image.iter().map(|x| Literal::from(*x)).collect();
                let number = |value: i64| Literal::from_i128(index.element(), value.into());
                let mut bounds = vec![(0, 1 << 20); axes - 2];
                let (last_place, last_column) = (i64::from((rows - 1) * step), i64::from(columns - 1));
                // Rows of a skewed patch start before that of the thread.
                let before = if skew == 0 { 0 } else { last_column };
                // Functions that look at rows only have no bounds along them.
                let of_row = if taps == TAPS { (2 + before, width - 1 - last_column) } else { (0, 1 << 20) };
                bounds.extend([(2, height - 2 - last_place), of_row]);
                if has_border {
                    let last = i64::from((positions - 1) * step);
                    bounds.push(if taps == TAPS { (2, width - 1 - last) } else { (0, width - last) });
                }
                let bounds = bounds.iter().flat_map(|(first, end)| [number(*first), number(*end)]);
                let extents = [number(height), number(width)];
                let functions = if has_border { 4 } else { 2 };
                let extents = (0..functions).flat_map(|_| extents);
                let scalars: Vec<Literal> = bounds.chain(extents).collect();
                let inputs: Vec<Vec<Literal>> = (0..functions).map(|_| literals.clone()).collect();
                let given = Given { inputs: &inputs, scalars: &scalars, sizes: shape, ..Given::default() };
                let results = run(&bench, &pattern, &given);
                let wanted = [expected(taps, &image, height, width, rule), literals];
                assert_eq!(
                    results, wanted,
                    "{name}, {shape:?}, {rule:?}, {rows} rows {step} apart, {columns} columns, {exchanges}, {has_border}"
                );
            }
        }
    }
}

#[test]
fn an_image_lower_than_a_strip_is_refused() {
    let (name, bench) = benches().remove(0);
    let inner = strip(2, Type::I32, 4, Some(Rule::Clamp));
    let pattern = Pattern::from(stencil(&[9, 40], 4, inner, None));
    let scalars: Vec<Literal> = [0, 3, 0, 40, 3, 40].map(|x: i32| Literal::from(x)).to_vec();
    let image = bench.device.upload(&[0u8; 480]).unwrap();
    let outputs = [bench.device.allocate::<u8>(480).unwrap(), bench.device.allocate::<u8>(480).unwrap()];
    let call = Call { inputs: &[image], outputs: &outputs, scalars: &scalars, sizes: &[3, 40], ..Call::default() };
    let refused = bench.get(&pattern).run(&call);
    assert!(matches!(refused, Err(Error::Small { least: 4, .. })), "{name}: {refused:?}");
}

#[test]
fn strips_that_do_not_come_out_even_are_refused() {
    let (_, bench) = benches().remove(0);
    let inner = strip(2, Type::I32, 3, None);
    for (rows, edge) in [(4, None), (0, None), (3, Some(strip(2, Type::I64, 3, Some(Rule::Wrap))))] {
        let stencil = stencil(&[9, 40], rows, inner.clone(), edge);
        assert!(matches!(stencil.program(&bench.machine), Err(Error::Pattern { pattern: "stencil", .. })));
    }
}

/// For each row of a strip, what three columns hold in a mixture with the first index, two of them from other lanes; and the first index.
fn mixed(rows: u32) -> Source {
    let f = Builder::function("mixed");
    let [d, y, x] = ["d", "y", "x"].map(|name| f.parameter(name, Type::I32));
    let width = f.parameter("width", Type::I32);
    let image = f.accessor("image", AccessorKind::Input, Type::I32, 1);
    let mut results = vec![];
    for row in 0..rows {
        let place = f.add(f.mul(f.add(y, row), width), x);
        let own = f.and(f.xor(f.read(image, &[place.into()]), f.mul(d, 37)), 255);
        let (before, behind) = (f.shuffle(Shuffle::Up, own, 1), f.shuffle(Shuffle::Down, own, 2));
        results.extend([f.add(f.add(before, f.mul(own, 2)), f.mul(behind, 3)), d]);
    }
    Source::new(f.finish_function(&results).unwrap(), 3).unwrap()
}

#[test]
fn lanes_look_at_each_other_while_the_first_axis_is_combined() {
    let shapes: [[u64; 3]; 6] = [[1, 4, 1], [5, 9, 29], [4, 8, 32], [7, 5, 58], [2, 11, 4000], [0, 8, 40]];
    for (name, bench) in benches() {
        let fold = Fold { operator: Operator::arg_min_in_order(Type::I32, Element::I32).unwrap(), sink: Sink::STORE };
        let stencil = stencil(&[2, 9, 40], 4, mixed(4), None);
        let pattern = Pattern::from(Stencil { reach: (1, 2), fold: Some(fold), ..stencil });
        for shape in shapes {
            let [depth, height, width] = shape.map(|extent| extent as i64);
            let mut random = Random(shape[2]);
            let image: Vec<i32> = (0..height * width).map(|_| random.bits() as i32).collect();
            let own =
                |d: i64, y: i64, x: i64| i64::from((image[(y * width + x.clamp(0, width - 1)) as usize] ^ (d as i32 * 37)) & 255);
            let cost = |d: i64, y: i64, x: i64| own(d, y, x - 1) + 2 * own(d, y, x) + 3 * own(d, y, x + 2);
            let best = |i: i64| (0..depth).map(|d| (cost(d, i / width, i % width), d)).min();
            let best: Vec<(i64, i64)> =
                (0..height * width).map(|i| best(i).unwrap_or((i32::MAX.into(), i32::MAX.into()))).collect();
            let list = |pick: fn(&(i64, i64)) -> i64| best.iter().map(|b| Literal::from(pick(b) as i32)).collect::<Vec<_>>();
            let inputs = [image.iter().map(|x| Literal::from(*x)).collect::<Vec<Literal>>()];
            let bounds = [0, 1 << 20, 0, 1 << 20, 0, 1 << 20, width as i32];
            let scalars: Vec<Literal> = bounds.into_iter().map(Literal::from).collect();
            let given = Given { inputs: &inputs, scalars: &scalars, sizes: &shape, ..Given::default() };
            assert_eq!(run(&bench, &pattern, &given), [list(|b| b.0), list(|b| b.1)], "{name}, {shape:?}");
        }
    }
}

/// Sequences of a few values, in order, against the first of the best.
#[test]
fn the_first_of_the_best_in_order() {
    let values = [f32::NAN, 1.0, 2.0, -0.0, 0.0, f32::INFINITY];
    for greater in [false, true] {
        let in_order = if greater {
            Operator::arg_max_in_order(Type::F32, Element::I32)
        } else {
            Operator::arg_min_in_order(Type::F32, Element::I32)
        };
        let any = if greater { Operator::arg_max(Type::F32, Element::I32) } else { Operator::arg_min(Type::F32, Element::I32) };
        let (in_order, any) = (in_order.unwrap(), any.unwrap());
        for number in 0..values.len().pow(3) {
            let sequence = [number % 6, number / 6 % 6, number / 36].map(|i| values[i]);
            let found = [&in_order, &any].map(|operator| {
                let start = operator.identity().to_vec();
                sequence.iter().enumerate().fold(start, |sum, (i, x)| {
                    let next = [Literal::from(*x), Literal::from(i as i32)];
                    operator.function().evaluate(&[&sum[..], &next[..]].concat()).unwrap()
                })
            });
            assert_eq!(found[0][1], found[1][1], "{sequence:?}");
        }
    }
}
