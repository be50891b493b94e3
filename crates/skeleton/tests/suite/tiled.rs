//! Functions of windows, staged in shared memory and not, compared to their evaluation on the host.

use crate::support::{Given, Literals, Random, benches, h200, run, strided, strides};
use broadloom_device::{Machine, MachineKind};
use broadloom_scalar::{AccessorKind, Builder, Element, Environment, Function, Lanes, Literal, Type, Value};
use broadloom_skeleton::{Boundary, Domain, Error, Pattern, Sink, Staging, Tile, TiledStencil};

/// The values around a position of an image.
struct Image<'a> {
    values: &'a [Literal],
    shape: &'a [u64],
    position: Vec<i64>,
    stencil: &'a TiledStencil,
}

impl Environment for Image<'_> {
    fn window(&mut self, _: usize, offsets: &[i128]) -> Option<Lanes> {
        let mut place = 0;
        for (axis, stride) in strides(self.shape).into_iter().enumerate() {
            let (before, behind) = self.stencil.reach[axis];
            let offset = (offsets[axis] as i64).clamp(-i64::from(before), behind.into());
            match self.stencil.boundary.rule().index(self.position[axis] + offset, self.shape[axis] as i64) {
                Some(index) => place += index * stride as i64,
                None => return self.stencil.boundary.constant().map(|lanes| lanes[0].clone()),
            }
        }
        Some(std::iter::once(self.values[place as usize]).collect())
    }
}

/// Returns a function with two results. The first is the maximum of the values within a radius along the last
/// axis, at offset -1 along all other axes (exclusive or for `bool`). The second is the first index plus the
/// radius. The radius is a scalar.
fn function(axes: usize, element: Element) -> Function {
    let f = Builder::function("around");
    let position: Vec<Value> = (0..axes).map(|_| f.parameter("i", Type::I32)).collect();
    let radius = f.parameter("radius", Type::I32);
    let x = f.accessor("x", AccessorKind::Window, element, axes as u8);
    let at = |offset: Value| {
        let offsets: Vec<_> =
            (0..axes).map(|axis| if axis + 1 == axes { offset.into() } else { f.literal(-1i32).into() }).collect();
        f.window(x, &offsets)
    };
    let most = f.variable_with(at(f.literal(0i32)));
    f.for_range(f.neg(radius), f.add(radius, 1), |offset| {
        let one = at(offset);
        let both = if element == Element::Bool { f.xor(f.get(most), one) } else { f.max(f.get(most), one) };
        f.set(most, both);
    });
    f.finish_function(&[f.get(most), f.add(position[0], radius)]).unwrap()
}

pub(crate) fn stencil(axes: usize, element: Element, number: usize) -> TiledStencil {
    let constant = vec![Lanes::from_slice(&[Literal::from_i128(element, 3)])];
    let mut reach = vec![(0, 0); axes];
    (axes.saturating_sub(2)..axes).for_each(|axis| reach[axis] = [(2, 2), (1, 3)][axis % 2]);
    TiledStencil {
        domain: Domain::of(&vec![40; axes]),
        source: strided(axes, Type::I32, element),
        beside: None,
        function: function(axes, element),
        reach,
        boundary: [Boundary::Clamp, Boundary::Wrap, Boundary::Mirror, Boundary::Constant(constant)][number % 4].clone(),
        sink: Sink::STORE,
        staging: [Staging::Never, Staging::Tile(Tile { columns: 1, rows: 2 }), Staging::Chosen][number % 3],
    }
}

#[test]
fn every_shape_boundary_and_tile() {
    let shapes: [&[u64]; 9] = [&[0], &[1], &[300], &[5, 40], &[40, 70], &[1, 9], &[0, 4], &[2, 9, 33], &[2, 2, 3, 5]];
    for (name, bench) in benches() {
        for number in 0..8usize {
            for shape in shapes {
                let axes = shape.len();
                let element = Element::ALL[(number * 5 + axes) % 12];
                let stencil = stencil(axes, element, number);
                let count: u64 = shape.iter().product();
                let values = Random(count).values(element, count);
                let radius = Literal::from(2i32);
                let (mut most, mut first) = (vec![], vec![]);
                for i in 0..count {
                    let at = strides(shape).into_iter().zip(shape).map(|(stride, length)| (i / stride % length) as i64);
                    let position: Vec<i64> = at.collect();
                    let arguments: Vec<Literal> = position.iter().map(|i| Literal::from(*i as i32)).chain([radius]).collect();
                    let mut image = Image { values: &values, shape, position, stencil: &stencil };
                    let results = stencil.function.evaluate_in(&arguments, &mut image).unwrap();
                    most.push(results[0]);
                    first.push(results[1]);
                }
                let scalars = strides(shape).into_iter().map(|stride| Literal::from(stride as i32)).chain([radius]);
                let (scalars, inputs) = (scalars.collect::<Vec<_>>(), [values]);
                let given = Given { inputs: &inputs, scalars: &scalars, sizes: shape, ..Given::default() };
                let told = format!("{name}, {shape:?}, {element}, {:?}, {:?}", stencil.boundary, stencil.staging);
                assert_eq!(run(&bench, &Pattern::from(stencil), &given), [most, first], "{told}");
            }
        }
    }
}

#[test]
fn tiles_follow_from_the_machine() {
    let machine = h200().machine;
    assert_eq!(Tile::of(&machine, &[Type::F32], &[(1, 1), (1, 1)]), Some(Tile { columns: 2, rows: 4 }));
    assert_eq!(Tile::of(&machine, &[Type::F64; 3], &[(8, 8), (8, 8)]), Some(Tile { columns: 1, rows: 2 }));
    assert_eq!(Tile::of(&machine, &[Type::F32], &[(500, 500), (500, 500)]), None);
    assert_eq!(Tile::of(&machine, &[Type::F32], &[(1, 0), (1, 1), (1, 1)]), None);
    assert_eq!(Tile::of(&machine, &[Type::F32], &[(u32::MAX, u32::MAX), (1, 1)]), None);
}

/// Tiles are staged on a GPU if the function reads many values and the halo is small.
#[test]
fn tiles_are_staged_where_that_pays() {
    let box_of = |reads: i32, radius: u32| {
        let f = Builder::function("box");
        let _position = ["y", "x"].map(|axis| f.parameter(axis, Type::I32));
        let window = f.accessor("window", AccessorKind::Window, Type::I32, 2);
        let sum = (0..reads).map(|dx| f.window(window, &[0.into(), (dx % 2).into()])).reduce(|a, b| f.add(a, b));
        let function = f.finish_function(&[sum.unwrap()]).unwrap();
        let reach = vec![(radius, radius); 2];
        TiledStencil { function, reach, staging: Staging::Chosen, ..stencil(2, Element::I32, 0) }
    };
    let is_staged = |stencil: &TiledStencil, machine: &Machine| {
        let never = TiledStencil { staging: Staging::Never, ..stencil.clone() };
        format!("{:?}", stencil.program(machine).unwrap()) != format!("{:?}", never.program(machine).unwrap())
    };
    let gpu = h200().machine;
    let cpu = Machine { kind: MachineKind::Cpu, ..gpu.clone() };
    assert!(is_staged(&box_of(9, 1), &gpu));
    assert!(!is_staged(&box_of(9, 1), &cpu));
    assert!(!is_staged(&box_of(3, 1), &gpu), "few reads");
    assert!(!is_staged(&box_of(9, 60), &gpu), "mostly halo");
}

#[test]
fn windows_that_do_not_fit_are_refused() {
    let (_, bench) = benches().remove(0);
    let good = stencil(2, Element::F32, 0);
    let refused = |change: &dyn Fn(&mut TiledStencil)| {
        let mut stencil = good.clone();
        change(&mut stencil);
        match stencil.program(&bench.machine) {
            Err(Error::Pattern { pattern: "tiled stencil", reason }) => reason,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(&|s| s.reach = vec![(1, 1)]), "a window along 1 axes of 2");
    assert_eq!(
        refused(&|s| s.function = function(1, Element::F32)),
        "`around` does not have a window of 2 indices for each value"
    );
    assert_eq!(
        refused(&|s| s.reach[0].0 = u32::MAX),
        "a window of 4294967295 positions; at most 1048576 on each side are possible"
    );
    let outside = Boundary::Constant(vec![Lanes::from_slice(&[Literal::from(1u8)])]);
    assert_eq!(refused(&|s| s.boundary = outside.clone()), "the constants outside do not have the types of the source's values");
}
