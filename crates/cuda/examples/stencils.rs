//! Stencils on a GPU: strips in registers against tiles in shared memory.
//!
//! `cargo run --release -p broadloom-cuda --example stencils` prints a table. For each radius it shows the
//! time of a box blur by [`Stencil`] in strips, by [`TiledStencil`] without a tile, and with the tile that
//! [`Tile::of`] selects.

use broadloom_cuda::{Cuda, Options};
use broadloom_device::{Buffer, Device};
use broadloom_scalar::{AccessorKind, Builder, Literal, Type, Value};
use broadloom_skeleton::{Boundary, Call, Domain, LoadedProgram, Pattern, Sink, Source, Staging, Stencil, Tile, TiledStencil};
use std::io::Write;
use std::time::Instant;

const SIDE: i32 = 4096;
const ROUNDS: u32 = 50;

/// Builds the sums of a strip of rows. Near the edges, coordinates are clamped to the image.
fn strip(radius: i32, rows: i32, edge: bool) -> Source {
    let f = Builder::function(if edge { "edge" } else { "inner" });
    let (y, x) = (f.parameter("y", Type::I32), f.parameter("x", Type::I32));
    let image = f.accessor("image", AccessorKind::Input, Type::F32, 1);
    let held = |place: Value| if edge { f.max(f.min(place, SIDE - 1), 0) } else { place };
    let at = |dy: i32, dx: i32| f.read(image, &[f.add(f.mul(held(f.add(y, dy)), SIDE), held(f.add(x, dx))).into()]);
    // The sum of a row that several results use is computed once.
    let sum = |values: Vec<Value>| values.into_iter().reduce(|a, b| f.add(a, b)).unwrap_or(f.literal(0.0f32));
    let across: Vec<Value> = (-radius..rows + radius).map(|dy| sum((-radius..=radius).map(|dx| at(dy, dx)).collect())).collect();
    let results: Vec<Value> = (0..rows as usize).map(|row| sum(across[row..=row + 2 * radius as usize].to_vec())).collect();
    Source::new(f.finish_function(&results).unwrap(), 2).unwrap()
}

fn tiled(radius: u32, staging: Staging) -> TiledStencil {
    let f = Builder::function("element");
    let (y, x) = (f.parameter("y", Type::I32), f.parameter("x", Type::I32));
    let image = f.accessor("image", AccessorKind::Input, Type::F32, 1);
    let value = f.read(image, &[f.add(f.mul(y, SIDE), x).into()]);
    let source = Source::new(f.finish_function(&[value]).unwrap(), 2).unwrap();
    let f = Builder::function("blur");
    f.parameter("y", Type::I32);
    f.parameter("x", Type::I32);
    let window = f.accessor("window", AccessorKind::Window, Type::F32, 2);
    let offsets = || -(radius as i32)..=radius as i32;
    let all = offsets().flat_map(|dy| offsets().map(move |dx| (dy, dx)));
    let sum = all.map(|(dy, dx)| f.window(window, &[dy.into(), dx.into()])).reduce(|a, b| f.add(a, b));
    let function = f.finish_function(&[sum.unwrap_or(f.literal(0.0f32))]).unwrap();
    let (domain, boundary, reach) = (Domain::of(&[SIDE as u64; 2]), Boundary::Clamp, vec![(radius, radius); 2]);
    TiledStencil { domain, source, beside: None, function, reach, boundary, sink: Sink::STORE, staging }
}

/// Measures the microseconds of one run.
fn measured(device: &Device, pattern: Pattern, images: &[Buffer<u8>], output: &Buffer<u8>, scalars: &[Literal]) -> f64 {
    let loaded: LoadedProgram = pattern.program(device.machine()).unwrap().load(device).unwrap();
    let inputs = &images[..loaded.program().inputs.len()];
    let sizes = [SIDE as u64; 2];
    let call = Call { inputs, outputs: std::slice::from_ref(output), scalars, sizes: &sizes, ..Call::default() };
    let run = |rounds: u32| {
        let start = Instant::now();
        (0..rounds).for_each(|_| loaded.run(&call).unwrap());
        device.synchronise().unwrap();
        start.elapsed().as_secs_f64() * 1e6 / f64::from(rounds)
    };
    run(3);
    (0..5).map(|_| run(ROUNDS)).fold(f64::INFINITY, f64::min)
}

fn main() {
    let mut out = std::io::stdout().lock();
    let device = match Cuda::new(Options::default()) {
        Ok(gpu) => Device::new(gpu),
        Err(error) => {
            let _ = writeln!(out, "skipped: {error}");
            return;
        }
    };
    let bytes = (SIDE * SIDE * 4) as usize;
    let image = device.zeros::<u8>(bytes).unwrap();
    let output = device.allocate::<u8>(bytes).unwrap();
    let images = [image.clone(), image];
    let _ = writeln!(out, "{SIDE} by {SIDE}, f32, µs: radius, strips of 8, from memory, tile");
    for radius in [1u32, 2, 3, 5, 8] {
        let (inner, edge) = (strip(radius as i32, 8, false), strip(radius as i32, 8, true));
        let domain = Domain::of(&[SIDE as u64; 2]);
        let strips = Stencil {
            domain,
            rows: 8,
            step: 1,
            columns: 1,
            skew: 0,
            live: 16,
            inner,
            edge: Some(edge),
            border: None,
            reach: (0, 0),
            fold: None,
        };
        let reach = radius as i32;
        let bounds = [reach, SIDE - reach - 8, reach, SIDE - reach].map(Literal::from);
        let tile = Tile::of(device.machine(), &[Type::F32], &[(radius, radius); 2]);
        let times = [
            measured(&device, strips.into(), &images, &output, &bounds),
            measured(&device, tiled(radius, Staging::Never).into(), &images, &output, &[]),
            measured(&device, tiled(radius, tile.map_or(Staging::Never, Staging::Tile)).into(), &images, &output, &[]),
        ];
        let _ = writeln!(out, "{radius}: {:.1} {:.1} {:.1} {tile:?}", times[0], times[1], times[2]);
    }
}
