//! Matrix products.

use crate::support::{Given, Literals, Random, benches, run};
use broadloom_scalar::{AccessorKind, Builder, Element, Literal, Type};
use broadloom_skeleton::{Pattern, Product, Sink, Source};

fn matrix(element: Element) -> Source {
    let f = Builder::function("matrix");
    let (i, j) = (f.parameter("i", Type::I32), f.parameter("j", Type::I32));
    let columns = f.parameter("columns", Type::I32);
    let x = f.accessor("x", AccessorKind::Input, element, 1);
    let value = f.read(x, &[f.add(f.mul(i, columns), j).into()]);
    Source::new(f.finish_function(&[value]).unwrap(), 2).unwrap()
}

#[test]
fn products_of_all_types_and_shapes() {
    let elements: Vec<Element> = Element::ALL.into_iter().filter(|element| *element != Element::Bool).collect();
    for (name, bench) in benches() {
        for element in &elements {
            // The tiles of a GPU have the same code for all integers.
            if name != "cpu" && matches!(element, Element::I16 | Element::U16 | Element::U32 | Element::U64 | Element::I8) {
                continue;
            }
            let product = Product { left: matrix(*element), right: matrix(*element), sink: Sink::STORE };
            let product = Pattern::from(product);
            let small = [[0u64, 3, 4], [3, 4, 0], [1, 1, 1], [12, 32, 7], [13, 33, 20]];
            // Several pieces of the common axis, and more strips and more panels than a tile has on a CPU.
            let others = [[70, 5, 40], [130, 140, 33], [110, 40, 400], [25, 150, 1100], [1100, 33, 9], [14, 1100, 530]];
            let large = name != "interp" && [Element::F32, Element::F64, Element::I32].contains(element);
            for [m, n, common] in small.into_iter().chain(others.into_iter().filter(|_| large)) {
                let mut random = Random(m * n);
                let (a, b) = (random.values(*element, m * common), random.values(*element, common * n));
                // Results are exact, so the order of terms does not matter: rows are added to each other.
                let whole = |x: &Literal| x.as_i128().unwrap_or_else(|| x.as_f64().unwrap() as i128) as i64;
                let [rows, columns] = [&a, &b].map(|values| values.iter().map(whole).collect::<Vec<i64>>());
                let mut sums = vec![0i64; (m * n) as usize];
                for (i, sums) in sums.chunks_mut(n as usize).enumerate() {
                    for k in 0..common as usize {
                        let factor = rows[i * common as usize + k];
                        for (sum, x) in sums.iter_mut().zip(&columns[k * n as usize..]) {
                            *sum = sum.wrapping_add(factor.wrapping_mul(*x));
                        }
                    }
                }
                let expected: Vec<Literal> = sums.into_iter().map(|sum| Literal::from_i128(*element, sum.into())).collect();
                let scalars = [Literal::from(common as i32), (n as i32).into()];
                let inputs = [a, b];
                let given = Given { inputs: &inputs, scalars: &scalars, sizes: &[m, n, common], ..Given::default() };
                assert!(run(&bench, &product, &given).concat() == expected, "{name}, {element}, {m}×{common}×{n}");
            }
        }
    }
}

/// A computed factor, a transposed factor, and a sink that adds another matrix.
#[test]
fn computed_factors_and_a_sink() {
    let f = Builder::function("ramp");
    let (i, k) = (f.parameter("i", Type::I64), f.parameter("k", Type::I64));
    let left = Source::new(f.finish_function(&[f.convert(f.sub(i, k), Type::F32)]).unwrap(), 2).unwrap();
    let f = Builder::function("transposed");
    let (k, j, rows) = (f.parameter("k", Type::I64), f.parameter("j", Type::I64), f.parameter("rows", Type::I64));
    let x = f.accessor("x", AccessorKind::Input, Element::F32, 1);
    let value = f.read(x, &[f.add(f.mul(j, rows), k).into()]);
    let right = Source::new(f.finish_function(&[value]).unwrap(), 2).unwrap();
    let g = Builder::function("plus");
    let (i, j, sum) = (g.parameter("i", Type::I64), g.parameter("j", Type::I64), g.parameter("sum", Type::F32));
    let columns = g.parameter("columns", Type::I64);
    let c = g.accessor("c", AccessorKind::Input, Element::F32, 1);
    let more = g.add(sum, g.read(c, &[g.add(g.mul(i, columns), j).into()]));
    let sink = Sink::new(g.finish_function(&[more]).unwrap(), 2, 1).unwrap();
    let product = Pattern::from(Product { left, right, sink });
    let (m, n, common) = (45u64, 70u64, 19u64);
    let mut random = Random(1);
    let (x, c) = (random.values(Element::F32, n * common), random.values(Element::F32, m * n));
    let expected: Vec<Literal> = (0..m)
        .flat_map(|i| (0..n).map(move |j| (i, j)))
        .map(|(i, j)| {
            let term = |k: u64| (i as f64 - k as f64) * x[(j * common + k) as usize].as_f64().unwrap();
            let sum = (0..common).map(term).sum::<f64>() + c[(i * n + j) as usize].as_f64().unwrap();
            Literal::from(sum as f32)
        })
        .collect();
    let inputs = [x, c];
    for (name, bench) in benches() {
        let scalars = [Literal::from(common as i64), (n as i64).into()];
        let given = Given { inputs: &inputs, scalars: &scalars, sizes: &[m, n, common], ..Given::default() };
        assert!(run(&bench, &product, &given).concat() == expected, "{name}");
    }
}
