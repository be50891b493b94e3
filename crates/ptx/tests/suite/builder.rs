//! Tests that the builder emits the requested code in canonical form and collects every mistake.

use broadloom_diag::Sources;
use broadloom_ptx::Modifier::{
    Add, And, B32, B64, Bfly, Cas, F32, F64, Ftz, Global, Gt, Le, Lo, Lt, Param, Rn, S32, Shared, Sync, U8, U32, U64, Uni, V4,
    Wide,
};
use broadloom_ptx::builder::{FunctionBuilder, Instructions, ModuleBuilder, codes};
use broadloom_ptx::{Guard, IsaVersion, LocData, Module, Operand, Special, Target, Type, parse, print};

fn module() -> ModuleBuilder {
    ModuleBuilder::new(IsaVersion::new(7, 0), Target::sm(75))
}

fn kernel(write: impl FnOnce(&mut FunctionBuilder)) -> Module {
    let mut m = module();
    let mut b = m.kernel("k");
    write(&mut b);
    m.define(b);
    m.finish().expect("no mistake was made")
}

/// Prints a module after checking that the text parses to the same module.
#[track_caller]
fn canonical(module: &Module) -> String {
    let text = print(module);
    let mut sources = Sources::new();
    let id = sources.add("built.ptx", text.as_str());
    let mut again = parse(&sources, id).unwrap_or_else(|d| panic!("{}\n{text}", sources.render_all(&d)));
    again.strip_spans();
    assert!(again == *module, "the print does not stand for the same module:\n{text}");
    text
}

/// Returns codes and messages of the mistakes in `write`.
fn mistakes(write: impl FnOnce(&mut FunctionBuilder)) -> Vec<(&'static str, String)> {
    let mut m = module();
    let mut b = m.kernel("k");
    write(&mut b);
    m.define(b);
    let found = m.finish().expect_err("a mistake was made");
    found.iter().map(|d| (d.code.0, d.message.clone())).collect()
}

/// Returns the body of the only kernel, one instruction per line.
fn body(text: &str) -> Vec<&str> {
    let start = text.find("\n{\n").expect("a body") + 3;
    let lines = text[start..].lines().map(str::trim).take_while(|line| *line != "}");
    lines.filter(|line| !line.starts_with('.')).collect()
}

#[test]
fn instructions_read_like_ptx() {
    let module = kernel(|b| {
        let p = b.arg("p", Type::U64);
        let [x, y, z, w] = b.vector().ld((Global, V4, F32), p.offset(16));
        let sum = b.add((Rn, Ftz, F32), x, y);
        let more = b.fma((Rn, F32), z, w, sum);
        let small = b.setp((Lt, F32), more, 1.5);
        b.guard(!small).st((Global, F32), p, more);
        b.ret(());
    });
    let text = canonical(&module);
    assert_eq!(
        body(&text),
        [
            "ld.param.u64 %ud0, [p];",
            "ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%ud0+16];",
            "add.rn.ftz.f32 %f4, %f0, %f1;",
            "fma.rn.f32 %f5, %f2, %f3, %f4;",
            "setp.lt.f32 %p0, %f5, 0f3FC00000;",
            "@!%p0 st.global.f32 [%ud0], %f5;",
            "ret;"
        ]
    );
}

#[test]
fn results_take_the_type_of_the_form() {
    kernel(|b| {
        let p = b.arg("p", Type::U64);
        let byte = b.ld((Global, U8), p);
        assert_eq!(b.type_of(byte), Some(Type::U16));
        let wide = b.mul((Wide, U32), 3, 4);
        assert_eq!(b.type_of(wide), Some(Type::U64));
        let less = b.setp((Lt, U64), wide, p);
        assert_eq!(b.type_of(less), Some(Type::Pred));
        let half = b.cvt((Rn, broadloom_ptx::Modifier::F16, F32), 1.0f32);
        assert_eq!(b.type_of(half), Some(Type::B16));
        b.ret(());
    });
}

#[test]
fn pairs_vectors_and_optional_sources() {
    let module = kernel(|b| {
        let v = b.special(Special::TidX);
        let (other, valid) = b.pair().shfl_sync((Bfly, B32), v, 1, 31, -1);
        let both = b.setp_with((Gt, And, U32), (other, v, !valid));
        b.guard(both).bar(Sync, 0);
        b.bar_with(Sync, (1, 64));
        let long = b.mov(B64, [v, other]);
        let [low, high] = b.vector().mov(B64, long);
        let old = b.atom_with((Global, Cas, B32), (long, low, high));
        b.guard(both).red((Shared, Add, U32), long.offset(-4), old);
        b.ret(());
    });
    let text = canonical(&module);
    assert_eq!(
        body(&text),
        [
            "mov.u32 %u0, %tid.x;",
            "shfl.sync.bfly.b32 %r0|%p0, %u0, 1, 31, -1;",
            "setp.gt.and.u32 %p1, %r0, %u0, !%p0;",
            "@%p1 bar.sync 0;",
            "bar.sync 1, 64;",
            "mov.b64 %rd0, {%u0, %r0};",
            "mov.b64 {%r1, %r2}, %rd0;",
            "atom.global.cas.b32 %r3, [%rd0], %r1, %r2;",
            "@%p1 red.shared.add.u32 [%rd0+-4], %r3;",
            "ret;"
        ]
    );
}

#[test]
fn loops_and_conditions_nest() {
    let module = kernel(|b| {
        let n = b.arg("n", Type::U32);
        let total = b.mov(U32, 0);
        b.for_range(Type::U32, 0, n, 2, |b, i| {
            let even = b.setp((Lt, U32), i, 8);
            b.if_else(
                even,
                |b| {
                    b.to(total).add(U32, total, i);
                },
                |b| b.exit(()),
            );
        });
        b.do_while(|b| {
            b.to(total).sub(U32, total, 1);
            Guard::from(b.setp((Gt, U32), total, 0))
        });
        b.ret(());
    });
    let text = canonical(&module);
    for label in ["$while:", "$end_while:", "$else:", "$end_if:", "$do:"] {
        assert!(text.contains(label), "{label} is missing:\n{text}");
    }
    // The second body ends the thread, so only the first one needs a jump over it.
    assert_eq!(text.matches("bra.uni $end_if;").count(), 1, "{text}");
}

#[test]
fn a_type_or_a_space_or_nothing_is_a_modifier() {
    for (ftz, expected) in [(true, "mul.rn.ftz.f32"), (false, "mul.rn.f32")] {
        let module = kernel(|b| {
            let x = b.mov(Type::F32, 2.0);
            b.mul((Rn, ftz.then_some(Ftz), Type::F32), x, x);
            b.ret(());
        });
        assert!(print(&module).contains(expected));
    }
    let module = kernel(|b| {
        let p = b.arg("p", Type::U64);
        b.ld((broadloom_ptx::Space::Generic, Type::F32), p);
        b.ld((broadloom_ptx::Space::Shared, Type::F32), p);
        b.ret(());
    });
    let text = print(&module);
    assert!(text.contains("ld.f32") && text.contains("ld.shared.f32"), "{text}");
}

#[test]
fn calls_pass_params_and_recursion_works() {
    let mut m = module();
    let printf = m.external("vprintf", &[Type::B32], &[Type::B64, Type::B64]);
    let mut f = m.function("factorial");
    let result = f.result("out", Type::U32);
    let n = f.arg("n", Type::U32);
    let own = f.callable();
    let last = f.setp((Le, U32), n, 1);
    f.if_then(last, |f| {
        f.st((Param, U32), result, 1);
        f.ret(Uni);
    });
    let less = f.sub(U32, n, 1);
    let below = f.call(&own, &[less.into()])[0];
    let product = f.mul((Lo, U32), n, below);
    f.st((Param, U32), result, product);
    f.ret(());

    // The kernel calls a function that is defined after it.
    let mut b = m.kernel("k");
    let text = m.global("text", Type::B8, &[16]);
    let value = b.call(&own, &[5.into()])[0];
    let address = b.mov(U64, text);
    b.call(&printf, &[address.into(), 0u64.into()]);
    let pointer = b.mov(U64, own.symbol());
    let again = b.call_indirect(pointer, &own, &[value.into()])[0];
    b.call_indirect(pointer, &own, &[again.into()]);
    b.ret(());
    m.define(b);
    m.define(f);
    let module = m.finish().unwrap();
    let text = canonical(&module);
    assert!(text.contains("call.uni (retval), factorial, (param);"), "{text}");
    assert_eq!(text.matches(".callprototype").count(), 1, "one prototype serves both calls:\n{text}");
    assert!(text.find(".func (").unwrap() < text.find(".entry").unwrap(), "declared before its use:\n{text}");
}

#[test]
fn variables_labels_and_lines_stand_where_they_should() {
    let mut m = module();
    m.file(1, "k.cu");
    let dynamic = m.dynamic_shared("dynamic", Type::B8, 16);
    let mut b = m.kernel("k");
    let (tile, stack) = (b.shared("tile", Type::F32, &[8, 8]), b.local("stack", Type::U32, &[4]));
    let unused = b.reg(Type::F64);
    let named = b.named_reg("%counter", Type::S32);
    let (case0, case1) = (b.block("case"), b.block("case"));
    let targets = b.branch_targets("table", &[case0, case1]);
    b.loc(LocData { file: 1, line: 7, column: 3, inlined: None });
    b.to(named).mov(S32, 1);
    b.brx_idx((), named, targets);
    b.place(case1);
    b.pragma("nounroll");
    b.st((Shared, F32), tile.offset(32), 1.0);
    b.place(case0);
    b.st((broadloom_ptx::Modifier::Local, U32), stack, 1);
    b.st((Shared, U32), dynamic, 1);
    b.ret(());
    assert_eq!(b.type_of(unused), Some(Type::F64));
    m.define(b);
    let text = canonical(&m.finish().unwrap());
    assert!(text.contains("table:\t.branchtargets case, case_1;"), "{text}");
    assert!(text.contains(".loc 1 7 3"), "{text}");
    assert!(!text.contains(".f64"), "a register that nothing uses is not declared:\n{text}");
}

#[test]
fn mistakes_are_collected_and_name_their_instruction() {
    let found = mistakes(|b| {
        let x = b.mov(F32, 1.0);
        b.add((Lo, F32), x, x);
        b.add(Type::Tf32, x, x);
        b.effect(broadloom_ptx::Opcode::St, (Global, F32), (x,));
        b.ld((Global, V4, F32), x);
        b.to(x).st((Global, F32), x, x);
        let [_a, _b, _c]: [_; 3] = b.vector().mov(B64, x);
        b.fma((Rn, F64), x, x, Operand::Sink);
        b.ret(());
    });
    assert_eq!(
        found,
        [
            (codes::BAD_MODIFIERS.0, "in `k`: `add.lo.f32` is no form of `add`".to_owned()),
            (codes::BAD_MODIFIERS.0, "in `k`: `add.tf32` is no form of `add`".to_owned()),
            (codes::BAD_OPERANDS.0, "in `k`: `st.global.f32` does not take 1 such sources with no result".to_owned()),
            (codes::BAD_OPERANDS.0, "in `k`: `ld.global.v4.f32` does not take 1 such sources with one result".to_owned()),
            (codes::BAD_OPERANDS.0, "in `k`: `st.global.f32` does not take 2 such sources with 1 result".to_owned()),
            (codes::BAD_OPERANDS.0, "in `k`: `mov.b64` does not take 1 such sources with a vector of 3".to_owned()),
            (codes::BAD_OPERANDS.0, "in `k`: `fma.rn.f64` does not take 3 such sources with one result".to_owned()),
        ]
    );
}

#[test]
fn blocks_and_functions_must_be_whole() {
    let found = mistakes(|b| {
        let (nowhere, twice) = (b.block("nowhere"), b.block("twice"));
        b.bra((), nowhere);
        b.place(twice);
        b.place(twice);
        b.ret(());
    });
    let codes: Vec<_> = found.iter().map(|(code, _)| *code).collect();
    assert_eq!(codes, [codes::BAD_BLOCK.0, codes::BAD_BLOCK.0]);
    assert!(found[1].1.contains("`nowhere` is branched to and never placed"), "{found:?}");

    let mut m = module();
    let left_open = m.kernel("open");
    let mut other = module();
    let foreign = other.kernel("foreign");
    m.define(foreign);
    m.global("open", Type::B8, &[]);
    drop(left_open);
    let found: Vec<_> = m.finish().expect_err("three mistakes").iter().map(|d| d.code).collect();
    assert_eq!(found, [codes::BAD_FUNCTION, codes::BAD_NAME, codes::BAD_FUNCTION]);
}

#[test]
fn a_call_with_too_few_arguments_is_a_mistake() {
    let mut m = module();
    let callee = m.external("f", &[], &[Type::U32, Type::U32]);
    let mut b = m.kernel("k");
    assert!(b.call(&callee, &[1.into()]).is_empty());
    m.define(b);
    let found = m.finish().expect_err("a mistake");
    assert_eq!(found.iter().map(|d| d.code).collect::<Vec<_>>(), [codes::BAD_CALL]);
}
