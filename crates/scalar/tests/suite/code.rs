//! Quality of generated code: the instructions of kernels.

use broadloom_scalar::{
    Axis, Builder, Cache, Element, Kernel, LaunchBounds, Lowering, Order, Precision, Shuffle, Type, lower, lower_with,
};

fn ptx(kernel: &Kernel) -> String {
    let module = lower(std::slice::from_ref(kernel)).unwrap_or_else(|error| panic!("{error}\n{kernel}"));
    broadloom_ptx::print(&module)
}

/// Returns the number of instructions with this prefix.
fn count(text: &str, instruction: &str) -> usize {
    text.lines().filter(|line| line.trim_start().starts_with(instruction)).count()
}

/// Returns `y = a * x + y` with four adjacent elements per thread. The position has 64 bits, as in front
/// ends.
fn saxpy() -> Kernel {
    let b = Builder::kernel("saxpy");
    b.launch_bounds(LaunchBounds { max_grid: Some([1 << 20, 1, 1]), ..LaunchBounds::block(256) });
    let (x, y) = (b.pointer("x", Element::F32), b.pointer("y", Element::F32));
    let (a, n) = (b.parameter("a", Type::F32), b.parameter("n", Type::I64));
    let n = b.assume(n, 0, 1 << 30);
    let first = b.mul(b.convert(b.global_thread(Axis::X), Type::I64), 4);
    b.if_then(b.lt(first, n), || {
        let (u, v) = (b.load_as(x, first, 4, Order::Weak, Cache::ReadOnly), b.load_vector(y, first, 4));
        b.store(y, first, b.add(b.mul(u, a), v));
    });
    b.finish_kernel().unwrap()
}

#[test]
fn indices_are_32_bits_and_accesses_16_bytes() {
    let text = ptx(&saxpy());
    assert_eq!(count(&text, "ld.global.nc.v4.f32"), 1, "{text}");
    assert_eq!(count(&text, "st.global.v4.f32"), 1, "{text}");
    assert_eq!(count(&text, "fma.rn.f32"), 4, "{text}");
    assert_eq!(count(&text, "mad.wide.s32"), 2, "{text}");
    assert_eq!(count(&text, "mul.lo.s64") + count(&text, "mad.lo.s64") + count(&text, "cvt.s64"), 0, "{text}");
}

/// A store under a condition is one guarded instruction and no branch.
#[test]
fn stores_under_conditions_are_guarded() {
    let b = Builder::kernel("guarded");
    let (input, output) = (b.pointer("input", Element::F32), b.pointer("output", Element::F32));
    let first = b.mul(b.thread(Axis::X), 4);
    let value = b.load_vector(input, first, 4);
    b.store_if(b.lt(first, 20), output, first, value);
    let text = ptx(&b.finish_kernel().unwrap());
    assert_eq!(text.matches(" st.global.v4.f32").count(), 1, "{text}");
    assert_eq!(count(&text, "@") - text.matches(" bra").count(), 1, "{text}");
    assert_eq!(text.matches("bra").count(), 0, "{text}");
}

/// The size of nested loops is that of all iterations of both: the inner loop is unrolled, the outer is not.
#[test]
fn large_nested_loops_are_not_unrolled() {
    let b = Builder::kernel("window");
    let (input, output) = (b.pointer("input", Element::F32), b.pointer("output", Element::F32));
    let (column, sum) = (b.thread(Axis::X), b.variable_with(b.literal(0.0f32)));
    let [first, end] = [0, 32].map(|bound| b.constant(Type::U32, bound));
    b.for_range(first, end, |row| {
        b.for_range(first, end, |place| {
            let value = b.load(input, b.add(column, b.add(b.mul(row, 64), place)));
            b.set(sum, b.fma(value, value, b.get(sum)));
        });
    });
    b.store(output, column, b.get(sum));
    let text = ptx(&b.finish_kernel().unwrap());
    assert_eq!(count(&text, "fma.rn.f32"), 32, "{text}");
}

/// The sum of a block: a tile in shared memory, then shuffles.
#[test]
fn shared_memory_has_constant_offsets() {
    let b = Builder::kernel("block_sum");
    b.launch_bounds(LaunchBounds::block(128));
    let (input, output) = (b.pointer("input", Element::F32), b.pointer("output", Element::F32));
    let tile = b.shared(Element::F32, 4);
    let thread = b.thread(Axis::X);
    let x = b.variable_with(b.load(input, b.global_thread(Axis::X)));
    for distance in [16u32, 8, 4, 2, 1] {
        let other = b.shuffle(Shuffle::Down, b.get(x), distance);
        b.set(x, b.add(b.get(x), other));
    }
    b.if_then(b.eq(b.and(thread, 31), 0), || b.store(tile, b.shr(thread, 5), b.get(x)));
    b.barrier();
    b.if_then(b.eq(thread, 0), || {
        let sum = b.variable_with(b.load(tile, 0));
        b.for_range(1, 4, |i| b.set(sum, b.add(b.get(sum), b.load(tile, i))));
        b.store(output, b.block(Axis::X), b.get(sum));
    });
    let text = ptx(&b.finish_kernel().unwrap());
    for offset in ["block_sum_shared_0]", "+4]", "+8]", "+12]"] {
        assert!(text.lines().any(|line| line.contains("ld.shared.f32") && line.contains(offset)), "{offset}\n{text}");
    }
    assert_eq!(count(&text, "shfl.sync.down.b32"), 5, "{text}");
    assert!(!text.contains("$for"), "{text}");
}

/// A constant in a signed index is free, for any other part of the index, also if it was added as an unsigned
/// number.
#[test]
fn constants_come_off_signed_indices() {
    let b = Builder::kernel("neighbours");
    let (x, y) = (b.pointer("x", Element::F32), b.pointer("y", Element::F32));
    let (i, j) = (b.parameter("i", Type::I32), b.parameter("j", Type::U32));
    let at = |by: u32| b.load(x, b.convert(b.add(j, by), Type::I32));
    b.store(y, 0, b.add(b.load(x, b.add(i, 3)), b.add(b.load(x, b.add(i, 5)), b.add(at(7), at(9)))));
    // Unsigned sums may wrap, and a subtracted constant may be greater than the rest.
    b.store(y, 1, b.add(b.load(x, b.add(j, 11)), b.load(x, b.sub(i, 13))));
    let text = ptx(&b.finish_kernel().unwrap());
    for offset in [3, 5, 7, 9] {
        assert!(text.contains(&format!("+{}]", 4 * offset)), "{offset}\n{text}");
    }
    assert!(!text.contains("+44]") && !text.contains("-52]"), "{text}");
    assert_eq!(count(&text, "mad.wide.s32"), 3, "{text}");
}

/// Vectors around a vector with a computed number are read at constant offsets from it.
#[test]
fn constants_come_off_numbers_of_vectors() {
    let b = Builder::kernel("vectors");
    let (x, y) = (b.pointer("x", Element::F32), b.pointer("y", Element::F32));
    let i = b.parameter("i", Type::I32);
    let at = |by: i64| {
        let number = b.add(b.convert(b.shr(i, 2), Type::I64), by);
        b.load_as(x, b.mul(number, 4), 4, Order::Weak, Cache::ReadOnly)
    };
    b.store(y, 0, b.add(b.add(at(-2), at(0)), at(1)));
    let text = ptx(&b.finish_kernel().unwrap());
    assert_eq!(count(&text, "ld.global.nc.v4.f32"), 3, "{text}");
    assert!(text.contains("-32]") && text.contains("+16]"), "{text}");
    assert_eq!(count(&text, "mad.wide.s32") + count(&text, "mul.wide.s32") + count(&text, "mad.lo.u64"), 1, "{text}");
}

/// Reads around a position that a loop changes share the constant before it, which cannot be an immediate
/// offset. Each read only adds its distance.
#[test]
fn constants_of_reads_around_a_position_are_added_once() {
    let b = Builder::kernel("around");
    let (x, y) = (b.pointer("x", Element::F32), b.pointer("y", Element::F32));
    let distances: Vec<_> = (0..4).map(|number| b.parameter(&format!("distance{number}"), Type::I32)).collect();
    let count_of = b.parameter("count", Type::I32);
    let sum = b.variable(Type::F32);
    b.for_range(0, count_of, |position| {
        let around = |distance| b.load(x, b.sub(b.add(position, distance), 3));
        let values = distances.iter().map(|distance| around(*distance));
        b.set(sum, values.fold(b.get(sum), |sum, value| b.add(sum, value)));
    });
    b.store(y, 0, b.get(sum));
    let text = ptx(&b.finish_kernel().unwrap());
    let body = text.lines().skip_while(|line| !line.starts_with("$for:"));
    let inside = body.take_while(|line| !line.starts_with("$end_for:")).collect::<Vec<&str>>().join("\n");
    assert_eq!(count(&inside, "mad.wide.s32"), 4, "{text}");
    assert_eq!(inside.matches(", -3;").count(), 1, "{text}");
}

/// On recent GPUs a kernel itself waits for earlier kernels, and approximations flush subnormal numbers.
#[test]
fn kernels_of_a_gpu_overlap_and_flush() {
    let b = Builder::kernel("overlap");
    b.prefer(Precision::Fast);
    let x = b.pointer("x", Element::F32);
    let values = b.load(x, 0);
    b.store(x, 1, b.div(b.exp(values), b.sqrt(values)));
    let kernel = b.finish_kernel().unwrap();
    let plain = ptx(&kernel);
    assert!(!plain.contains("griddepcontrol") && !plain.contains("ftz"), "{plain}");
    let lowering = Lowering { target: broadloom_ptx::Target::sm(90), overlap: true, flush: true, ..Lowering::default() };
    let text = broadloom_ptx::print(&lower_with(&[kernel], &lowering).unwrap());
    let instructions: Vec<&str> =
        text.lines().map(str::trim).filter(|line| line.ends_with(';') && !line.starts_with('.')).collect();
    assert_eq!(instructions[..2], ["griddepcontrol.wait;", "griddepcontrol.launch_dependents;"], "{text}");
    for instruction in ["ex2.approx.ftz.f32", "sqrt.approx.ftz.f32", "div.approx.ftz.f32"] {
        assert_eq!(count(&text, instruction), 1, "{instruction}\n{text}");
    }
}

/// Loop-invariant code is computed before the loop.
#[test]
fn loops_repeat_only_what_changes() {
    let b = Builder::kernel("rows");
    b.launch_bounds(LaunchBounds::block(128));
    let (input, output) = (b.pointer("input", Element::F32), b.pointer("output", Element::F32));
    let (width, scale) = (b.parameter("width", Type::U32), b.parameter("scale", Type::F32));
    let width = b.assume(width, 1, 1 << 12);
    let row = b.assume(b.global_thread(Axis::X), 0, 1 << 12);
    let sum = b.variable(Type::F32);
    b.for_range(0, width, |column| {
        let x = b.load(input, b.add(b.mul(row, width), column));
        // `fmod` is a loop itself, and `pow` is long.
        let factor = b.add(b.div(1.0, scale), b.fmod(b.pow(scale, scale), scale));
        b.set(sum, b.add(b.get(sum), b.mul(x, factor)));
    });
    b.store(output, row, b.get(sum));
    let text = ptx(&b.finish_kernel().unwrap());
    let body = text.lines().skip_while(|line| !line.starts_with("$for:"));
    let inside: Vec<&str> = body.take_while(|line| !line.starts_with("$end_for:")).collect();
    assert!(inside.len() < 16, "{text}");
    let inside = inside.join("\n");
    assert_eq!(count(&inside, "div.rn.f32") + count(&inside, "mul."), 0, "{text}");
    assert_eq!(count(&inside, "mad.wide.u32"), 1, "{text}");
    assert_eq!(count(&inside, "fma.rn.f32"), 1, "{text}");
}

/// Rows and columns in 64 bits, as in front ends, become 32-bit arithmetic in which the CPU sees that lanes
/// are contiguous.
#[test]
fn the_cpu_sees_neighbours() {
    let b = Builder::kernel("rows");
    b.launch_bounds(LaunchBounds { max_grid: Some([1 << 16, 1 << 12, 1]), ..LaunchBounds::block(128) });
    let (input, output) = (b.pointer("input", Element::F32), b.pointer("output", Element::F32));
    let (width, height) = (b.parameter("width", Type::I64), b.parameter("height", Type::I64));
    let (width, height) = (b.assume(width, 1, 1 << 14), b.assume(height, 1, 1 << 14));
    let column = b.convert(b.global_thread(Axis::X), Type::I64);
    let row = b.convert(b.block(Axis::Y), Type::I64);
    b.if_then(b.and(b.lt(column, width), b.lt(row, height)), || {
        let sum = b.variable(Type::F32);
        for (dy, dx) in [(0i64, 0i64), (0, 1), (1, 0)] {
            let index = b.add(b.mul(b.add(row, dy), width), b.add(column, dx));
            b.set(sum, b.add(b.get(sum), b.load(input, index)));
        }
        b.store(output, b.add(b.mul(row, width), column), b.get(sum));
    });
    let kernel = b.finish_kernel().unwrap();
    let text = ptx(&kernel);
    let long = ["mul.lo.s64", "mul.lo.u64", "mad.lo.s64", "mad.lo.u64", "min.s64"];
    assert_eq!(long.iter().map(|word| count(&text, word)).sum::<usize>(), 0, "{text}");

    let options = broadloom_cpu::Options {
        threads: 1,
        memory_bytes: 1 << 28,
        cache: broadloom_cpu::CacheFolder::Nowhere,
        ..broadloom_cpu::Options::default()
    };
    let cpu = broadloom_cpu::Cpu::new(options).unwrap();
    let device = broadloom_device::Device::new(cpu.clone());
    let module = device.load(&std::sync::Arc::new(lower(&[kernel]).unwrap())).unwrap();
    let (width, height) = (300usize, 5usize);
    let values: Vec<f32> = (0..width * (height + 1) + 1).map(|index| index as f32).collect();
    let (input, output) = (device.upload(&values).unwrap(), device.zeros::<f32>(width * height).unwrap());
    let arguments = [(&input).into(), (&output).into(), (width as i64).into(), (height as i64).into()];
    let launch = broadloom_device::Launch::new([3, 5, 1], [128, 1, 1]);
    module.kernel("rows").unwrap().launch(&launch, &arguments).unwrap();
    let found = output.read().unwrap();
    for (index, found) in found.iter().enumerate() {
        assert_eq!(*found, values[index] + values[index + 1] + values[index + width], "{index}");
    }
    let statistics = cpu.statistics();
    assert_eq!(statistics[0].not_vectorised, None);
    assert_eq!(statistics[0].stores.contiguous, 1, "{:?}", statistics[0]);
    assert_eq!((statistics[0].loads.contiguous, statistics[0].loads.scattered), (3, 0), "{:?}\n{text}", statistics[0]);
}

/// A minimum that propagates NaN is one instruction. For doubles there is none.
#[test]
fn propagated_nans_are_one_instruction() {
    let text = |ty: Type| {
        let b = Builder::kernel("least");
        b.launch_bounds(LaunchBounds::block(128));
        let memory = b.pointer("memory", ty.element());
        let at = b.thread(Axis::X);
        let (x, y) = (b.load(memory, at), b.load(memory, b.add(at, 128)));
        let either = b.or(b.is_nan(x), b.is_nan(y));
        b.store(memory, at, b.select(either, b.constant(ty, f64::NAN), b.min(x, y)));
        b.store(memory, b.add(at, 128), b.select(either, b.constant(ty, f64::NAN), b.max(x, y)));
        ptx(&b.finish_kernel().unwrap())
    };
    let single = text(Type::F32);
    assert_eq!((count(&single, "min.NaN.f32"), count(&single, "max.NaN.f32")), (1, 1), "{single}");
    assert_eq!(count(&single, "selp") + count(&single, "setp"), 0, "{single}");
    let double = text(Type::F64);
    assert_eq!((count(&double, "min.f64"), count(&double, "selp.f64")), (1, 2), "{double}");
}

/// Tables are in constant memory if all threads read one entry, otherwise in global memory. An index that is
/// inside of its table is not clamped.
#[test]
fn tables_lie_where_they_are_read_best() {
    let b = Builder::kernel("tables");
    b.launch_bounds(LaunchBounds::block(64));
    let output = b.pointer("output", Element::F32);
    let entries = |scale: f32| -> Vec<broadloom_scalar::Literal> { (0..64).map(|i| (i as f32 * scale).into()).collect() };
    let (own, common) = (b.table(&entries(0.5)), b.table(&entries(0.25)));
    let thread = b.thread(Axis::X);
    let sum = b.variable_with(b.lookup(own, thread));
    b.for_step(0u32, b.literal(64u32), 1, broadloom_scalar::Unroll::Never, |i| {
        b.set(sum, b.add(b.get(sum), b.lookup(common, i)));
    });
    b.store(output, thread, b.get(sum));
    let text = ptx(&b.finish_kernel().unwrap());
    assert_eq!((count(&text, "ld.global.nc.f32"), count(&text, "ld.const.f32")), (1, 1), "{text}");
    assert_eq!((count(&text, ".global .align"), count(&text, ".const .align")), (1, 1), "{text}");
    assert_eq!(count(&text, "min.u32"), 0, "{text}");
}
