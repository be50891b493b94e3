//! Ranges of registers in loops, and the cost of asking for a launch.

use crate::testing::checks::{Kernel, params};
use broadloom_analysis::{Assume, Facts};

fn bounds(text: &str, n: u32, names: &[&str]) -> Vec<(i64, i64)> {
    let body = text.replace("BEGIN", ".reg .pred p, q; .reg .b32 nn, t, i, j, k, r; ld.param.u32 nn, [n]; mov.u32 t, %tid.x;");
    let kernel = Kernel::new(&format!(".entry k(.param .u32 n, .param .u32 m, .param .u64 base) {{ {body} }}"));
    let facts = Facts::new([64, 1, 1]).with_grid([4, 1, 1]).with_params(params(n, 0, 0));
    let ranges = kernel.plan.ranges(&facts);
    names.iter().map(|name| ranges.range(kernel.reg(name)).signed()).collect()
}

#[test]
fn loops_are_bounded_by_their_counters() {
    let up = "BEGIN mov.u32 i, 0; mov.u32 k, 5;
        L: add.s32 j, i, t; add.s32 r, k, 1; add.s32 i, i, 1; add.s32 k, k, 3; setp.ne.s32 p, i, nn; @p bra L; ret;";
    assert_eq!(bounds(up, 100, &["j", "r"]), [(0, 162), (6, 303)]);
    let down = "BEGIN and.b32 i, nn, -4; L: add.s32 j, i, t; add.s32 i, i, -4; setp.ne.s32 p, i, 0; @p bra L; ret;";
    assert_eq!(bounds(down, 103, &["j"]), [(4, 163)]);
    let tested_first =
        "BEGIN mov.u32 i, t; L: setp.ge.s32 p, i, nn; @p bra E; mul.lo.s32 j, i, 2; add.s32 i, i, 64; bra L; E: ret;";
    assert_eq!(bounds(tested_first, 1000, &["j"]), [(0, 1998)]);
    let nested = "BEGIN mov.u32 i, 0;
        L: mov.u32 k, 0; M: mad.lo.s32 j, i, 10, k; add.s32 k, k, 1; setp.lt.s32 p, k, 10; @p bra M;
        add.s32 i, i, 1; setp.lt.s32 q, i, nn; @q bra L; ret;";
    assert_eq!(bounds(nested, 7, &["j"]), [(0, 69)]);
    let endless = "BEGIN mov.u32 i, 0; L: add.s32 j, i, 1; mov.u32 i, j; setp.ne.s32 p, t, nn; @p bra L; ret;";
    assert_eq!(bounds(endless, 7, &["j"]), [(i64::from(i32::MIN), i64::from(i32::MAX))]);
}

/// Checks the order of magnitude of the cost per launch on a slow machine.
#[test]
fn asking_for_a_launch_is_quick() {
    let mut text = String::from(".reg .b32 a<9>; .reg .b64 d<9>; mov.u32 a0, %tid.x;\n");
    for index in 0..500 {
        let (from, to) = (index % 8, (index + 1) % 8);
        text += &match index % 4 {
            0 => format!("add.s32 a{to}, a{from}, {index};\n"),
            1 => format!("and.b32 a{to}, a{from}, 1023;\n"),
            2 => format!("mul.wide.s32 d{from}, a{from}, 4; shl.b32 a{to}, a{from}, 1;\n"),
            _ => format!("mad.lo.s32 a{to}, a{from}, 3, a0;\n"),
        };
    }
    let kernel = Kernel::new(&format!(".entry k(.param .u32 n, .param .u32 m, .param .u64 base) {{ {text} ret; }}"));
    let found = kernel.shapes(&Facts::new([48, 1, 1]), Assume::NoWrap);
    let facts = Facts::new([48, 1, 1]).with_grid([4, 1, 1]).with_params(params(5, 0, 0));
    let start = std::time::Instant::now();
    let rounds = 20;
    for _ in 0..rounds {
        assert!(kernel.plan.ranges(&facts).proves(found.obligations()));
    }
    let each = start.elapsed() / rounds;
    assert!(each.as_millis() < 50, "{each:?}");
}
