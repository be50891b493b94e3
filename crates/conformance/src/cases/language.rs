//! Features of C++ in kernels: calls, recursion, tables of functions, templates, variables of the module.

use broadloom_device::FaultKind;

use crate::compare::{close, holds, same, same_set};
use crate::inputs::{Inputs, values_at};
use crate::trial::{Failure, Outcome, Trial, args};

fn same_text(what: &str, got: &str, want: &str) -> Outcome {
    if got == want { Ok(()) } else { Err(Failure::Wrong(format!("{what}: printed\n{got}expected\n{want}"))) }
}

pub(crate) fn print_values(t: &mut Trial<'_>) -> Outcome {
    let text = t.upload(b"weft\0")?;
    t.launch("print_values", 1, 1, args![-42i32, 3_000_000_000u32, -5_000_000_000i64, 1234.5678f64, text])?;
    let want = "plain text\n\
        int -42, unsigned 3000000000, hex b2d05e00 B2D05E00, octal 26264057000\n\
        long -5000000000 fffffffed5fa0e00\n\
        double 1234.567800 1234.568    1234.57 1.234568e+03 1234.57\n\
        char ok, percent %, string [weft] [left  ] [ right]\n\
        width [  -42] [-42  ] [-0042] [-42]\n\
        4 arguments\n";
    same_text("one thread", &t.printed(), want)?;

    t.launch("print_threads", 2, 4, args![])?;
    let mut want: Vec<String> = Vec::new();
    for block in 0..2 {
        want.extend((0..4).map(|thread| format!("block {block} thread {thread} value {:.1}\n", thread as f32 * 0.5)));
    }
    // The order of threads is undefined; lines are whole.
    let mut got: Vec<String> = t.printed().split_inclusive('\n').map(str::to_owned).collect();
    got.sort_unstable();
    same_text("several threads", &got.concat(), &want.concat())
}

pub(crate) fn recursion(t: &mut Trial<'_>) -> Outcome {
    let input: Vec<u32> = (0..11).collect();
    let n = input.len();
    let (di, fib, ack, parity) = (t.upload(&input)?, t.output::<u32>(n)?, t.output::<u32>(n)?, t.output::<u8>(n)?);
    t.launch("recursion", 1, 32, args![di, fib, ack, parity, n as i32])?;
    same("fibonacci", &t.download(&fib)?, &[0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55])?;
    // Ackermann's function of (2, n) is 2 n + 3.
    same("ackermann", &t.download(&ack)?, &input.iter().map(|n| 2 * n + 3).collect::<Vec<u32>>())?;
    same("parity", &t.download(&parity)?, &input.iter().map(|n| (n % 2) as u8).collect::<Vec<u8>>())?;

    let rows = 20;
    let mut data = Inputs::new(110).i32s(rows * 16, -50, 50);
    let dd = t.upload(&data)?;
    t.launch("quicksort_rows", 1, 32, args![dd, rows as i32])?;
    data.chunks_mut(16).for_each(|row| row.sort_unstable());
    same("rows", &t.download(&dd)?, &data)
}

pub(crate) fn function_pointers(t: &mut Trial<'_>) -> Outcome {
    let n = 150;
    let mut r = Inputs::new(111);
    let (a, b, op) = (r.i32s(n, -1000, 1000), r.i32s(n, -5, 6), r.u8s(n));
    let (da, db, dop, out) = (t.upload(&a)?, t.upload(&b)?, t.upload(&op)?, t.output::<i32>(n)?);
    t.launch("function_pointers", 2, 96, args![da, db, dop, out, n as i32])?;
    let apply = |i: usize| match op[i] % 4 {
        0 => a[i] + b[i],
        1 => a[i] - b[i],
        2 => a[i] * b[i],
        _ => a[i].checked_div(b[i]).unwrap_or(0),
    };
    same("results", &t.download(&out)?, &(0..n).map(apply).collect::<Vec<i32>>())?;

    let n = 20;
    let to = r.f64s(n, 1.5, 4.0);
    let (dt, out) = (t.upload(&to)?, t.output::<f64>(n)?);
    t.launch("integrals", 1, 32, args![dt, out, n as i32])?;
    let integral = |i: usize| {
        let h = (to[i] - 1.0) / 64.0;
        let middle = |k: i32| 1.0 + (f64::from(k) + 0.5) * h;
        let f = |x: f64| if i % 2 == 1 { x * x } else { 1.0 / x };
        let extra = if (i / 2).is_multiple_of(2) { i * 3 } else { i + 3 };
        (0..64).map(|k| f(middle(k))).sum::<f64>() * h + extra as f64
    };
    close("integrals", &t.download(&out)?, &(0..n).map(integral).collect::<Vec<f64>>(), 1e-12, 0.0)
}

pub(crate) fn virtual_functions(t: &mut Trial<'_>) -> Outcome {
    let n = 90;
    let mut r = Inputs::new(112);
    let kind = r.i32s(n, 0, 300);
    let size: Vec<[f32; 2]> = r.many(n, |r| [r.f64(0.5, 4.0) as f32, r.f64(0.5, 4.0) as f32]);
    let (dk, ds, out) = (t.upload(&kind)?, t.upload(&size)?, t.output::<f32>(n)?);
    t.launch("virtual_functions", 3, 32, args![dk, ds, out, n as i32])?;
    let factor = [1.0, 0.5, std::f32::consts::PI];
    let want: Vec<f32> = kind.iter().zip(&size).map(|(k, s)| s[0] * s[1] * factor[*k as usize % 3]).collect();
    close("areas", &t.download(&out)?, &want, 1e-6, 0.0)
}

pub(crate) fn templates(t: &mut Trial<'_>) -> Outcome {
    let n = 95;
    let input: Vec<u32> = (0..n as u32).collect();
    let (di, out) = (t.upload(&input)?, t.output::<u64>(n)?);
    t.launch("fibonacci_matrix", 3, 32, args![di, out, n as i32])?;
    let mut want = vec![0u64, 1];
    (2..n).for_each(|i| want.push(want[i - 1].wrapping_add(want[i - 2])));
    same("fibonacci", &t.download(&out)?, &want)?;

    let n = 300;
    let x = Inputs::new(113).f64s(n, -1.0, 1.0);
    let (dx, series, mixed) = (t.upload(&x)?, t.output::<f64>(n)?, t.output::<f64>(n)?);
    t.launch("folded", 3, 100, args![dx, series, mixed, n as i32])?;
    let want: Vec<f64> = x.iter().map(|x| x.exp()).collect();
    close("series", &t.download(&series)?, &want, 0.0, 3.0 / 3_628_800.0)?;
    let want: Vec<f64> = (0..n).map(|i| i as f64 + 2.5 + f64::from(i as u8) + x[i] - 3.0).collect();
    close("mixed", &t.download(&mixed)?, &want, 1e-14, 1e-14)
}

pub(crate) fn functors(t: &mut Trial<'_>) -> Outcome {
    let n = 300;
    let input = Inputs::new(114).i32s(n, -100, 100);
    let (di, out) = (t.upload(&input)?, t.output::<i32>(n)?);
    t.launch("functors", 2, 64, args![di, out, n as i32, 3i32, -40i32, 120i32])?;
    let want: Vec<i32> = input.iter().map(|x| ((x + 40) * 3).clamp(-40, 120)).collect();
    same("out", &t.download(&out)?, &want)
}

pub(crate) fn device_globals(t: &mut Trial<'_>) -> Outcome {
    let out = t.output::<i32>(16)?;
    t.launch("device_globals", 1, 32, args![out])?;
    let word = |s: &str| s.len() as i32 + i32::from(s.as_bytes()[0]) * 1000;
    let entry = |key: i32, quarters: i32, name: &str| key * 100 + quarters + name.len() as i32 * 10000;
    let want = [
        -42,
        1,
        2,
        3,
        250,
        255, // the scalar through its pointer, and the bytes
        2,
        -5, // the doubles through a pointer into their middle
        word("loom"),
        word("broad"),
        word("warp and weft"),
        entry(7, 10, "seven"),
        entry(-3, -3, "minus three"),
        20,
        30,
        40,
    ];
    same("values", &t.download(&out)?, &want)?;

    // The counter starts at 5 and keeps its value between launches; the host may write it.
    for (launch, first) in [(0, 5), (1, 5 + 64)] {
        let seen = t.output::<u32>(2)?;
        t.launch("bump_counter", 2, 32, args![seen])?;
        let seen = t.download(&seen)?;
        holds("each block saw the counter in this launch", seen.iter().all(|s| (first..first + 64).contains(s)))?;
        same("counter", &t.read_variable::<u32>("counter", 1)?, &[5 + 64 * (launch + 1)])?;
    }
    t.write_variable("counter", &[1000u32])?;
    let seen = t.output::<u32>(1)?;
    t.launch("bump_counter", 1, 1, args![seen])?;
    same("written counter", &t.download(&seen)?, &[1000])
}

/// Runs the stack machine of the kernel on an input.
fn stack_machine(program: &[i32], input: i32) -> i32 {
    let (mut stack, mut pc) = (Vec::new(), 0);
    loop {
        let op = program[pc];
        pc += 1;
        match op {
            0 => return stack.pop().unwrap_or_default(),
            1 | 16 => {
                let operand = program[pc];
                pc += 1;
                if op == 1 {
                    stack.push(operand);
                } else if stack.pop() == Some(0) {
                    pc = operand as usize;
                }
            }
            2 => stack.push(input),
            11..=13 => {
                let a: i32 = stack.pop().unwrap_or_default();
                match op {
                    11 => stack.push(!a),
                    12 => stack.push(a.wrapping_neg()),
                    _ => stack.extend([a, a]),
                }
            }
            14 => {
                let top = stack.len();
                stack.swap(top - 1, top - 2);
            }
            15 => drop(stack.pop()),
            _ => {
                let (a, b) = (stack.pop().unwrap_or_default(), stack.pop().unwrap_or_default());
                stack.push(match op {
                    3 => b.wrapping_add(a),
                    4 => b.wrapping_sub(a),
                    5 => b.wrapping_mul(a),
                    6 => b & a,
                    7 => b | a,
                    8 => b ^ a,
                    9 => b << (a & 31),
                    _ => b >> (a & 31),
                });
            }
        }
    }
}

pub(crate) fn switch_dispatch(t: &mut Trial<'_>) -> Outcome {
    let n = 100;
    let mut r = Inputs::new(115);
    let input = r.i32s(n, -20, 20);
    // acc = 1; for (k = input & 7; k != 0; --k) acc = ((acc * 3) ^ input) + (input >> 2) | 5 ...; every
    // opcode occurs.
    let program = [
        1, 1, // push 1: acc
        2, 1, 7, 6, // input & 7: k
        // 6: the loop, with acc and k on the stack
        13, 16, 34, // dup, jump to 34 if k is zero
        14, 1, 3, 5, // swap, acc * 3
        2, 8, // xor input
        2, 1, 2, 10, 3, // + (input >> 2)
        1, 5, 7, // | 5
        11, 12, // ~acc, -acc
        14, 1, 1, 4, // swap, k - 1
        1, 0, 16, 6, 0, // jump back to 6
        // 34: the end
        15, 1, 4, 9, // drop k, acc << 4
        0,
    ];
    let (dp, di, out) = (t.upload(&program)?, t.upload(&input)?, t.output::<i32>(n)?);
    t.launch("switch_dispatch", 4, 32, args![dp, di, out, n as i32])?;
    let want: Vec<i32> = input.iter().map(|i| stack_machine(&program, *i)).collect();
    same("results", &t.download(&out)?, &want)?;

    let bytes: Vec<u8> = (0..=255).collect();
    let (di, out) = (t.upload(&bytes)?, t.output::<i32>(256)?);
    t.launch("switch_values", 2, 128, args![di, out, 256i32])?;
    let mut want = vec![0; 256];
    want[..10].copy_from_slice(&[11, 7, 5, 300, -1, 13, 1 << 20, 6, 99, 99]);
    want[200] = 4;
    same("values", &t.download(&out)?, &want)
}

pub(crate) fn goto_machine(t: &mut Trial<'_>) -> Outcome {
    let n = 128;
    let input: Vec<u32> = Inputs::new(116).many(n, |r| r.below(1, 500) as u32);
    let (di, out) = (t.upload(&input)?, t.output::<u32>(n)?);
    t.launch("goto_machine", 2, 64, args![di, out, n as i32])?;
    let collatz = |mut v: u32| {
        let mut steps = 0;
        while v != 1 && steps <= 200 {
            if v % 2 == 1 {
                v = 3 * v + 1;
            } else {
                v /= 2;
            }
            steps += 1;
        }
        (v, steps)
    };
    // States: in the left one a multiple of three passes unchanged.
    let automaton = |mut v: u32| {
        let (mut steps, mut left) = (0u32, true);
        loop {
            if left && !v.is_multiple_of(3) {
                v = v.wrapping_mul(5).wrapping_add(1);
                steps += 1;
                if steps > 40 {
                    return (v, steps);
                }
            }
            v = v / 2 + 7;
            steps += 1;
            if steps > 50 {
                return (v, steps);
            }
            left = v & 2 != 0;
            if !left {
                v += steps;
                if v.is_multiple_of(7) {
                    return (v, steps);
                }
            }
        }
    };
    let want: Vec<u32> = values_at(0..n, |i| {
        let (v, steps) = if i % 2 == 0 { collatz(input[i]) } else { automaton(input[i]) };
        v.wrapping_mul(1000).wrapping_add(steps)
    });
    same("out", &t.download(&out)?, &want)
}

pub(crate) fn device_assert(t: &mut Trial<'_>) -> Outcome {
    let input: Vec<i32> = (0..50).collect();
    let (di, out) = (t.upload(&input)?, t.output::<i32>(50)?);
    t.launch("device_assert", 1, 64, args![di, out, 50i32, 50i32])?;
    same("out", &t.download(&out)?, &input.iter().map(|v| 50 - v).collect::<Vec<i32>>())?;
    t.fails("device_assert", FaultKind::Assert, 1, 64, args![di, out, 50i32, 49i32])
}

pub(crate) fn device_trap(t: &mut Trial<'_>) -> Outcome {
    let input: Vec<i32> = (0..50).collect();
    let (di, out) = (t.upload(&input)?, t.output::<f32>(50)?);
    t.launch("device_trap", 1, 64, args![di, out, 50i32])?;
    same("out", &t.download(&out)?, &input.iter().map(|v| (*v as f32).sqrt()).collect::<Vec<f32>>())?;
    let negative = t.upload(&[4i32, 9, -1])?;
    t.fails("device_trap", FaultKind::Trap, 1, 32, args![negative, out, 3i32])
}

pub(crate) fn clocks(t: &mut Trial<'_>) -> Outcome {
    let ordered = t.output::<i32>(64)?;
    t.launch("clocks", 2, 32, args![ordered, 100u32])?;
    same("ordered", &t.download(&ordered)?, &[1; 64])
}

pub(crate) fn managed_variables(t: &mut Trial<'_>) -> Outcome {
    t.launch("managed_variables", 2, 32, args![])?;
    let sum = 64 * 65 / 2;
    same("total", &t.read_variable::<i64>("managed_total", 1)?, &[100 + 3 * sum])?;
    t.write_variable("factor", &[-1i32])?;
    t.launch("managed_variables", 2, 32, args![])?;
    same("total after", &t.read_variable::<i64>("managed_total", 1)?, &[100 + 3 * sum - sum])?;
    same("launches", &t.read_variable::<i32>("managed_launches", 1)?, &[2])
}

pub(crate) fn device_malloc(t: &mut Trial<'_>) -> Outcome {
    let n = 100;
    let out = t.output::<i32>(n)?;
    t.launch("list_sum", 2, 64, args![out, n as i32])?;
    let want: Vec<i32> =
        (0..n as i32).map(|i| (0..=i % 16).rev().fold(0i32, |sum, k| sum.wrapping_mul(3).wrapping_add(i + k))).collect();
    same("list_sum", &t.download(&out)?, &want)?;

    let out = t.output::<i64>(4)?;
    t.launch("shared_array", 4, 64, args![out])?;
    let want: Vec<i64> = (1..=4).map(|block| block * (0..64).sum::<i64>()).collect();
    same("shared_array", &t.download(&out)?, &want)?;

    let (live, out) = (t.zeros::<i32>(1)?, t.output::<i32>(n)?);
    t.launch("object_heap", 2, 64, args![live, out, n as i32])?;
    same("live objects", &t.download(&live)?, &[0])?;
    same_set("squares", &t.download(&out)?, &(0..n as i32).map(|i| i * i).collect::<Vec<i32>>())
}
