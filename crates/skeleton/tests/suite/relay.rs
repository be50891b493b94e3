//! Functions that read lines computed by another function, compared to plain loops.

use crate::support::{Given, benches, strided, strides};
use broadloom_scalar::{AccessorKind, Builder, Element, Literal, Type, Value};
use broadloom_skeleton::{Domain, Error, Pattern, Relay, Sink, Source};

/// The element of a line at two thirds of the position, one at an index from a table, and the table itself.
fn picked(axes: usize) -> Source {
    let f = Builder::function("picked");
    let position: Vec<Value> = (0..axes).map(|_| f.parameter("i", Type::I32)).collect();
    let last = f.parameter("last", Type::I32);
    let table = f.accessor("table", AccessorKind::Input, Element::I32, 1);
    let line = f.accessor("line", AccessorKind::Input, Element::I32, 1);
    let along = position[axes - 1];
    let entry = f.read(table, &[along.into()]);
    let held = |place: Value| f.max(f.min(place, last), 0);
    let near = f.read(line, &[held(f.div(f.mul(along, 2), 3)).into()]);
    let far = f.read(line, &[held(entry).into()]);
    let sum = f.add(f.add(f.mul(near, 1000), far), position[0]);
    Source::new(f.finish_function(&[sum, entry]).unwrap(), axes).unwrap()
}

fn relay(axes: usize) -> Relay {
    let line = strided(axes, Type::I32, Element::I32);
    Relay { domain: Domain::with_axes(axes), source: picked(axes), along: vec![false, true], line, sink: Sink::STORE }
}

#[test]
fn lines_are_read_anywhere() {
    let shapes: [(&[u64], u64); 6] =
        [(&[1, 32], 32), (&[70, 50], 33), (&[3, 40, 33], 100), (&[2, 1, 3, 64], 95), (&[5, 1000], 32), (&[0, 40], 50)];
    for (name, bench) in benches() {
        for (shape, length) in shapes {
            let axes = shape.len();
            let rows: u64 = shape[..axes - 1].iter().product();
            let width = shape[axes - 1];
            let values: Vec<i32> = (0..rows * length).map(|number| (number * 7919 % 1009) as i32).collect();
            // Some entries are outside of the line.
            let table: Vec<i32> = (0..width).map(|column| (column * 31 % (length + 20)) as i32 - 10).collect();
            let (mut sums, mut entries) = (vec![], vec![]);
            for (row, column) in (0..rows).flat_map(|row| (0..width).map(move |column| (row, column))) {
                let at = |place: i64| values[(row * length) as usize + place.clamp(0, length as i64 - 1) as usize];
                let entry = table[column as usize];
                let first = row / shape[1..axes - 1].iter().product::<u64>();
                sums.push(Literal::from(at(column as i64 * 2 / 3) * 1000 + at(entry.into()) + first as i32));
                entries.push(Literal::from(entry));
            }
            let lines: Vec<u64> = shape[..axes - 1].iter().copied().chain([length]).collect();
            let scalars: Vec<Literal> = std::iter::once(Literal::from(length as i32 - 1))
                .chain(strides(&lines).into_iter().map(|stride| Literal::from(stride as i32)))
                .collect();
            let literals = |values: &[i32]| values.iter().map(|value| Literal::from(*value)).collect::<Vec<Literal>>();
            let inputs = [literals(&table), literals(&values)];
            let sizes: Vec<u64> = shape.iter().copied().chain([length]).collect();
            let given = Given { inputs: &inputs, scalars: &scalars, sizes: &sizes, ..Given::default() };
            let found = crate::support::run(&bench, &Pattern::from(relay(axes)), &given);
            assert_eq!(found, [sums, entries], "{name}, {shape:?}, lines of {length}");
        }
    }
}

#[test]
fn lines_of_another_type_are_refused() {
    let (_, bench) = benches().swap_remove(0);
    let told = |relay: Relay| match relay.program(&bench.machine) {
        Err(error @ Error::Pattern { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let wide = Relay { line: strided(2, Type::I32, Element::F32), ..relay(2) };
    assert!(told(wide).contains("reads lines of another type"));
    assert!(told(Relay { along: vec![true], ..relay(2) }).contains("reads lines of another type"));
    let several = Relay { line: picked(2), ..relay(2) };
    assert!(told(several).contains("gives 2 values"));
    assert!(
        told(Relay { domain: Domain::LINE, source: picked(1), line: strided(1, Type::I32, Element::I32), ..relay(2) })
            .contains("axes")
    );
}
