//! Functions printed and read back.

use crate::functions::blur;
use broadloom_diag::Sources;
use broadloom_scalar::text::{Lines, function};
use broadloom_scalar::{
    BinaryOp, Builder, CompareOp, Element, Function, Literal, MathFunction, Precision, Type, UnaryOp, Unroll, Value,
};

fn read(text: &str) -> Result<Function, String> {
    let mut sources = Sources::new();
    let id = sources.add("text", text);
    let mut lines = Lines::new(&sources, id);
    let read = function(&mut lines).map_err(|wrong| sources.render(&wrong))?;
    assert_eq!(lines.next(), None, "{text}");
    Ok(read)
}

/// Checks that a function prints as the same text after it was read back.
fn reads_back(function: &Function) {
    let text = function.to_string();
    let again = read(&text).unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
    assert_eq!(again.to_string(), text);
}

#[test]
fn code_with_loops_arrays_and_accessors_reads_back() {
    reads_back(&blur());
    reads_back(&blur().simplify().unwrap());
    reads_back(&blur().settle_products().unwrap());
}

#[test]
fn every_operation_reads_back() {
    for element in Element::ALL {
        let ty = Type::of(element);
        let b = Builder::function("all");
        let (x, y, c) = (b.parameter("x", ty), b.parameter("y", ty), b.parameter("t1", Type::BOOL));
        let literal = b.literal(Literal::from_i128(element, 1));
        let mut results =
            vec![b.select(c, x, y), b.compare(CompareOp::Eq, x, y), b.convert(x, Type::F64), b.select(c, literal, literal)];
        for op in CompareOp::ALL.iter().filter(|_| element != Element::Bool) {
            results.push(b.compare(*op, literal, y));
        }
        let takes = |write: &dyn Fn(&Builder) -> Value| {
            let probe = Builder::function("probe");
            write(&probe);
            !probe.has_failed()
        };
        for op in UnaryOp::ALL {
            if takes(&|b| b.unary(*op, b.parameter("x", ty))) {
                results.extend([b.unary(*op, x), b.unary(*op, literal)]);
            }
        }
        for op in BinaryOp::ALL {
            if takes(&|b| b.binary(*op, b.parameter("x", ty), b.parameter("y", ty))) {
                results.push(b.binary(*op, x, y));
                results.push(b.binary(*op, literal, y));
            }
        }
        if element.is_float() {
            results.push(b.fma(x, literal, y));
            for function in MathFunction::ALL {
                let arguments = [x, y];
                for precision in [Precision::Accurate, Precision::Fast] {
                    results.push(b.math(*function, precision, &arguments[..function.arguments()]));
                }
            }
        }
        reads_back(&b.finish_function(&results).unwrap());
    }
}

#[test]
fn vectors_tables_and_loops_read_back() {
    let b = Builder::function("mixed");
    let (v, n) = (b.parameter("v", Type::vector(Element::F32, 4).unwrap()), b.parameter("n", Type::I64));
    let table = b.table(&[Literal::from(1.5f32), Literal::from(-0.0f32), Literal::from(f32::NAN)]);
    let sum = b.variable(Type::vector(Element::F32, 4).unwrap());
    let count = b.variable(Type::U8);
    b.for_step(0, n, 3, Unroll::By(2), |i| {
        b.if_else(
            b.lt(i, 5),
            || b.set(sum, b.add(b.get(sum), v)),
            || {
                b.set(sum, b.mul(b.get(sum), b.lookup(table, b.convert(b.assume(i, 0, 100), Type::U32))));
                b.continue_loop();
            },
        );
    });
    b.while_loop(|| b.lt(b.get(count), 7), || b.set(count, b.add(b.get(count), 1)));
    let bits = b.bitcast(b.lane(v, 2), Type::U32);
    let results = [b.get(sum), bits, b.vector(&[b.lane(v, 0), b.lane(v, 3)]), b.literal(3u8)];
    reads_back(&b.finish_function(&results).unwrap());
}

#[test]
fn names_that_are_taken_are_replaced() {
    let b = Builder::function("names");
    let values: Vec<_> =
        ["x", "x", "return", "a b", "", "7", "v0"].into_iter().map(|name| b.parameter(name, Type::I32)).collect();
    let sum = values.iter().skip(1).fold(values[0], |sum, value| b.add(sum, *value));
    reads_back(&b.finish_function(&[sum]).unwrap());
}

#[test]
fn operators_bind_as_in_rust() {
    let text = read("fn f(x: i32, y: i32) -> (bool)\n  return x + y * 2 << 1 & 7 == y\n").unwrap().to_string();
    assert_eq!(text, "fn f(x: i32, y: i32) -> (bool)\n  return ((((x + (y * 2)) << 1) & 7) == y)\n");
}

#[test]
fn mistakes_have_places() {
    for (text, place, part) in [
        ("fn f(x: f32) -> (f32)\n  return x + y\n", "2:14", "`y` is not known"),
        ("fn f(x: f32) -> (f32)\n  return x + true\n", "2:14", "`true` is not a value of `f32`"),
        ("fn f(x: f32) -> (f32)\n  return sin(x, x)\n", "2:10", "takes 1 arguments, not 2"),
        ("fn f(x: f33) -> (f32)\n  return x\n", "1:9", "is not a type"),
        ("fn f(x: f32) -> (i32)\n  return x\n", "2:3", "result 0 is `f32`"),
        ("fn f(x: i32) -> (i32)\n  y = x.2\n  return y\n", "2:3", ""),
        ("fn f(x: i32) -> (i32)\n  if x\n    y = x\n  return x\n", "2:3", "bool"),
        ("fn f(x: i32) -> (i32)\n  for i in 0..x by 0\n    y = i\n  return x\n", "2:3", "counts by 0"),
        ("fn f(x: i32) -> (i32)\n  loop\n    y = x\n  return x\n", "2:3", "no `while`"),
        ("fn f(x: i32) -> (i32)\n  break\n  return x\n", "2:3", "outside of loops"),
        ("fn f(x: i32) -> (i32)\n  y = x\n   z = y\n  return x\n", "3:4", "column"),
        ("fn f(x: i32) -> (i32)\n  var x: i32\n  return x\n", "2:7", "something else already"),
    ] {
        let wrong = read(text).expect_err(text);
        assert!(wrong.contains(&format!("text:{place}")) && wrong.contains(part), "{text}{wrong}");
    }
}

/// No text overflows the stack or causes a panic.
#[test]
fn hostile_texts_are_refused() {
    let open = "(".repeat(100_000);
    assert!(read(&format!("fn f(x: f32) -> (f32)\n  return {open}x\n")).is_err());
    let mut deep = String::from("fn f(x: bool) -> (bool)\n");
    for depth in 1..500 {
        deep.push_str(&format!("{:depth$}if x\n", ""));
    }
    assert!(read(&deep).is_err());
    let text = blur().to_string();
    for cut in (0..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
        let _ = read(&text[..cut]);
        let _ = read(&text[cut..]);
        let _ = read(&format!("{}é{}", &text[..cut], &text[cut..]));
    }
}
