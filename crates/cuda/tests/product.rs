//! Matrix products by a library loaded at run time, with a fake library.

mod fake;

use broadloom_cuda::{Cuda, Options};
use broadloom_device::{Buffer, CacheFolder, Device, Error, Matrix, MatrixProduct, ProductElement, Stream};
use broadloom_scalar::{AccessorKind, Builder, Element, Literal, Type};
use broadloom_skeleton::{Call, Product, Sink, Source};
use fake::{Fake, alone, library};

fn device(blas: Vec<String>) -> Device {
    let options = Options { driver: library(), blas, cache: CacheFolder::Nowhere, ..Options::default() };
    Device::new(Cuda::new(options).unwrap())
}

/// Returns small numbers, whose products have exact sums.
fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7 + seed * 3) % 11) as f32 - 5.0).collect()
}

fn matrix(buffer: &Buffer<f32>, stride: u64, transposed: bool) -> Matrix {
    Matrix { address: buffer.address(), stride, transposed }
}

#[test]
fn plain_and_transposed_on_streams_and_in_sequences() {
    let _one = alone();
    let fake = Fake::new();
    let device = device(vec!["libnothing-of-this-name.so".to_owned(), library()]);
    assert!(device.backend().has_products());
    let (rows, columns, common) = (5usize, 7usize, 3usize);
    let own = device.stream().unwrap();
    for (case, stream) in [Stream::default(), own.id(), Stream::default(), own.id()].into_iter().enumerate() {
        let (left_transposed, right_transposed) = (case & 1 == 1, case & 2 == 2);
        let (left_stride, right_stride) = (9, 8);
        let (a, b) = (numbers(9 * 9, case), numbers(8 * 8, case + 1));
        let (left, right) = (device.upload(&a).unwrap(), device.upload(&b).unwrap());
        let result = device.zeros::<f32>(rows * columns).unwrap();
        device.synchronise().unwrap();
        let product = MatrixProduct {
            element: ProductElement::F32,
            rows: rows as u64,
            columns: columns as u64,
            common: common as u64,
            left: matrix(&left, left_stride, left_transposed),
            right: matrix(&right, right_stride, right_transposed),
            result: matrix(&result, columns as u64, false),
        };
        let before = fake.calls("cublasSgemm");
        if case < 2 {
            device.backend().product(stream, &product).unwrap();
        } else {
            let mut recorder = device.recorder();
            recorder.fill_bytes(&result, 1).product(product).keep(&left);
            let sequence = recorder.finish().unwrap();
            sequence.replay(stream).unwrap();
            sequence.replay(stream).unwrap();
        }
        device.synchronise().unwrap();
        assert_eq!(fake.calls("cublasSgemm") - before, if case < 2 { 1 } else { 2 });
        let at = |list: &[f32], stride: u64, transposed: bool, row: usize, column: usize| {
            let (row, column) = if transposed { (column, row) } else { (row, column) };
            list[row * stride as usize + column]
        };
        let expected: Vec<f32> = (0..rows * columns)
            .map(|place| {
                let (row, column) = (place / columns, place % columns);
                let term =
                    |k: usize| at(&a, left_stride, left_transposed, row, k) * at(&b, right_stride, right_transposed, k, column);
                (0..common).map(term).sum()
            })
            .collect();
        assert_eq!(result.read().unwrap(), expected, "case {case}");
    }
}

#[test]
fn refusals() {
    let _one = alone();
    let fake = Fake::new();
    let without = device(vec![]);
    assert!(!without.backend().has_products());
    let device = device(vec![library()]);
    let buffer = device.zeros::<f32>(16).unwrap();
    let product = MatrixProduct {
        element: ProductElement::F32,
        rows: 4,
        columns: 4,
        common: 4,
        left: matrix(&buffer, 4, false),
        right: matrix(&buffer, 4, false),
        result: matrix(&buffer, 4, false),
    };
    let refused = |product: MatrixProduct| device.backend().product(Stream::default(), &product).unwrap_err().to_string();
    assert!(refused(MatrixProduct { rows: 5, ..product }).contains("is not inside of a buffer"));
    assert!(refused(MatrixProduct { left: matrix(&buffer, 3, false), ..product }).contains("do not lie as a product takes them"));
    assert!(refused(MatrixProduct { common: 0, ..product }).contains("do not lie as a product takes them"));
    assert!(refused(MatrixProduct { rows: 1 << 40, ..product }).contains("too large"));
    assert!(without.backend().product(Stream::default(), &product).is_err());
    fake.fail("cublasSgemm", 1, 13);
    let error = device.backend().product(Stream::default(), &product).unwrap_err();
    assert!(matches!(error, Error::Driver { call: "cublasSgemm", code: 13, .. }), "{error}");
    assert_eq!(error.to_string(), "cublasSgemm: cuBLAS says a kernel of it failed (status 13)");
    fake.forget();
    device.backend().product(Stream::default(), &product).unwrap();
    device.synchronise().unwrap();
    // A library that opens but does not start counts as missing.
    fake.fail("cublasCreate", 1, 1);
    let silent = self::device(vec![library()]);
    assert!(!silent.backend().has_products());
    fake.forget();
}

/// A pattern of two matrices in memory uses the library. With computed factors, or without a library, kernels
/// are used.
#[test]
fn patterns() {
    let _one = alone();
    let fake = Fake::new();
    let matrix = |transposed: bool, scale: f32| {
        let f = Builder::function("matrix");
        let (i, j, stride) = (f.parameter("i", Type::I32), f.parameter("j", Type::I32), f.parameter("stride", Type::I32));
        let x = f.accessor("x", AccessorKind::Input, Element::F32, 1);
        let (line, place) = if transposed { (j, i) } else { (i, j) };
        // One row further down.
        let index = f.add(f.mul(f.add(line, 1), stride), place);
        let value = f.read(x, &[index.into()]);
        let value = if scale == 1.0 { value } else { f.mul(value, scale) };
        Source::new(f.finish_function(&[value]).unwrap(), 2).unwrap()
    };
    let (rows, columns, common) = (9usize, 12usize, 5usize);
    let (a, b) = (numbers(20 * 20, 1), numbers(30 * 30, 2));
    for (blas, transposed, scale, calls) in
        [(true, false, 1.0, 1), (true, true, 1.0, 1), (true, false, 2.0, 0), (false, false, 1.0, 0)]
    {
        let device = device(if blas { vec![library()] } else { vec![] });
        let pattern = Product { left: matrix(false, scale), right: matrix(transposed, scale), sink: Sink::STORE };
        let program = pattern.program(device.machine()).unwrap().load(&device).unwrap();
        let (left, right) = (device.upload(&a).unwrap(), device.upload(&b).unwrap());
        let result = device.zeros::<f32>(rows * columns).unwrap();
        let inputs = [left.view::<u8>().unwrap(), right.view::<u8>().unwrap()];
        let outputs = [result.view::<u8>().unwrap()];
        let scalars = [Literal::from(20i32), Literal::from(30i32)];
        let sizes = [rows as u64, columns as u64, common as u64];
        let call = Call { inputs: &inputs, outputs: &outputs, scalars: &scalars, sizes: &sizes, ..Call::default() };
        let before = fake.calls("cublasSgemm");
        program.run(&call).unwrap();
        let found = result.read().unwrap();
        assert_eq!(fake.calls("cublasSgemm") - before, calls);
        let right_at = |k: usize, j: usize| if transposed { b[(j + 1) * 30 + k] } else { b[(k + 1) * 30 + j] };
        for (place, found) in found.into_iter().enumerate() {
            let (i, j) = (place / columns, place % columns);
            let exact: f32 = (0..common).map(|k| a[(i + 1) * 20 + k] * right_at(k, j)).sum();
            assert_eq!(found, exact * scale * scale, "{transposed}, {scale}");
        }
    }
}
