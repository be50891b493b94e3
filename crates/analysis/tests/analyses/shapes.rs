//! Shapes of values, compared with the values of all threads of random programs.

use crate::testing::Random;
use crate::testing::checks::{Kernel, params};
use crate::testing::programs::program;
use crate::testing::threads::Launch;
use broadloom_analysis::Facts;
use broadloom_analysis::shapes::Assume;

const ROUNDS: usize = 12;
const BLOCKS: [[u32; 3]; 10] =
    [[64, 1, 1], [32, 2, 1], [16, 4, 1], [8, 8, 1], [48, 1, 1], [12, 6, 1], [4, 4, 4], [33, 1, 1], [24, 2, 1], [2, 3, 8]];

fn shapes_of(text: &str, block: [u32; 3], names: &[&str]) -> Vec<String> {
    let kernel = Kernel::new(text);
    let facts = Facts::new(block);
    let found = kernel.shapes(&facts, Assume::Nothing);
    names.iter().map(|name| format!("{:?}", found.shape(kernel.reg(name)))).collect()
}

#[test]
fn thread_numbers_and_what_is_made_of_them() {
    let text = ".entry k() { .reg .b32 t, w, l, h, g, y, f; .reg .pred p, q, r, s;
        mov.u32 t, %tid.x; mov.u32 y, %tid.y;
        shr.u32 w, t, 5; and.b32 l, t, 31; shr.u32 h, t, 4; div.u32 g, t, 8; mad.lo.s32 f, y, 16, t;
        setp.lt.u32 p, t, 64; setp.gt.u32 q, t, 63; setp.lt.u32 r, t, 65; setp.gt.s32 s, t, 15; ret; }";
    let names = ["t", "y", "w", "l", "h", "g", "f", "p", "q", "r", "s"];
    assert_eq!(
        shapes_of(text, [256, 1, 1], &names),
        [
            "+1 per lane of 32, first a multiple of 2^5",
            "uniform, first 0",
            "uniform",
            "+1 per lane of 32, first 0",
            "+0 per lane of 16, steps [0, 0, 0, 0, 1], first a multiple of 2^1",
            "+0 per lane of 8, steps [0, 0, 0, 1, 2], first a multiple of 2^2",
            "+1 per lane of 32, first a multiple of 2^5",
            "uniform",
            "uniform",
            "varying",
            "+0 per lane of 16",
        ]
    );
    assert_eq!(
        shapes_of(text, [16, 16, 1], &names)[..7],
        [
            "+1 per lane of 16, steps [1, 2, 4, 8, 0], first 0",
            "+0 per lane of 16, steps [0, 0, 0, 0, 1], first a multiple of 2^1",
            "uniform, first 0",
            "+1 per lane of 16, steps [1, 2, 4, 8, 0], first 0",
            "uniform, first 0",
            "+0 per lane of 8, steps [0, 0, 0, 1, 0], first 0",
            "+1 per lane of 32, first a multiple of 2^5",
        ]
    );
    assert_eq!(shapes_of(text, [12, 4, 1], &names)[..2], ["+1 per lane of 4, first a multiple of 2^2", "+0 per lane of 4"]);
    assert_eq!(shapes_of(text, [96, 2, 1], &names)[..2], ["+1 per lane of 32, first a multiple of 2^5", "uniform"]);
}

/// `for (i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) a[i] = 2 * a[i]`,
/// as a compiler emits it.
const GRID_STRIDE: &str = ".entry k(.param .u32 n, .param .u32 m, .param .u64 base) {
    .reg .pred p; .reg .b32 nn, c, b, t, i, g, s, v; .reg .b64 a, o, x;
    ld.param.u32 nn, [n]; ld.param.u64 a, [base];
    mov.u32 b, %ntid.x; mov.u32 c, %ctaid.x; mov.u32 t, %tid.x; mad.lo.s32 i, c, b, t;
    setp.ge.s32 p, i, nn; @p bra END;
    mov.u32 g, %nctaid.x; mul.lo.s32 s, b, g; cvta.to.global.u64 a, a;
    LOOP: mul.wide.s32 o, i, 4; add.s64 x, a, o; ld.global.u32 v, [x]; shl.b32 v, v, 1; st.global.u32 [x], v;
    add.s32 i, i, s; setp.lt.s32 p, i, nn; @p bra LOOP;
    END: ret; }";

#[test]
fn a_grid_stride_loop_is_contiguous_and_proved_at_launch() {
    let kernel = Kernel::new(GRID_STRIDE);
    let (block, store) = kernel.inst("st.global");
    let address = |facts: &Facts, assume: Assume| {
        let found = kernel.shapes(facts, assume);
        (found.address(&kernel.function, block, store).unwrap(), found)
    };
    // Warps that start at multiples of 32 never wrap in the middle.
    let (shape, found) = address(&Facts::new([256, 1, 1]), Assume::Nothing);
    assert_eq!((shape.group(), shape.stride()), (5, 4));
    assert!(found.is_partial(block) && found.divergent_branches().count() == 2);
    // Others may, depending on the launch.
    let facts = Facts::new([48, 1, 1]);
    assert!(address(&facts, Assume::Nothing).0.group() < 5);
    let (shape, found) = address(&facts, Assume::NoWrap);
    assert_eq!((shape.group(), shape.stride(), found.obligations().len()), (5, 4, 1));
    let proves = |grid: u32, n: u32| {
        let facts = Facts::new([48, 1, 1]).with_grid([grid, 1, 1]).with_params(params(n, 0, 4096));
        kernel.plan.ranges(&facts).proves(found.obligations())
    };
    assert!(proves(1, 1) && proves(1000, 1 << 20) && proves(1 << 16, 1 << 30) && proves(4, 0));
    // The counter of lanes that are still in range would wrap.
    assert!(!proves(1 << 22, 0x7fff_fff0) && !proves(1 << 27, 5));
    let full = Facts::new([48, 1, 1]).with_grid([100, 1, 1]).with_params(params(1 << 20, 0, 4096));
    assert_eq!(address(&full, Assume::Nothing).0.stride(), 4);
}

#[test]
fn lanes_that_vote_on_going_on_are_bounded_too() {
    let kernel = Kernel::new(
        ".entry k(.param .u32 n, .param .u32 m, .param .u64 base) {
         .reg .pred p, q, r, l; .reg .b32 nn, c, b, t, i, j, g, s, v; .reg .b64 a, o, x;
         ld.param.u32 nn, [n]; ld.param.u64 a, [base];
         mov.u32 b, %ntid.x; mov.u32 c, %ctaid.x; mov.u32 t, %tid.x; mad.lo.s32 i, c, b, t; setp.lt.s32 l, i, nn;
         mov.u32 g, %nctaid.x; mul.lo.s32 s, b, g;
         LOOP: mul.lo.s32 j, i, 3; mul.wide.s32 o, j, 4; add.s64 x, a, o; @l st.global.u32 [x], j;
         add.s32 i, i, s; setp.lt.s32 p, i, nn; and.pred l, l, p; vote.sync.any.pred r, l, 0xffffffff; @r bra LOOP;
         ret; }",
    );
    let found = kernel.shapes(&Facts::new([256, 1, 1]), Assume::NoWrap);
    let (block, store) = kernel.inst("st.global");
    let address = found.address(&kernel.function, block, store).unwrap();
    assert_eq!((address.group(), address.stride(), found.obligations().len()), (5, 12, 1));
    assert_eq!(found.divergent_branches().count(), 0);
    let proves = |grid: u32, n: u32| {
        let facts = Facts::new([256, 1, 1]).with_grid([grid, 1, 1]).with_params(params(n, 0, 4096));
        kernel.plan.ranges(&facts).proves(found.obligations())
    };
    assert!(proves(1, 1) && proves(1000, 1 << 20) && proves(4, 0));
    // Three times the counter, or the counter of a lane that only continues with the others, would wrap.
    assert!(!proves(1000, 0x7000_0000) && !proves(1 << 22, 0x6000_0000) && !proves(1 << 23, 5));
}

#[test]
fn what_memory_holds_is_not_assumed_to_be_small() {
    let kernel = Kernel::new(
        ".entry k(.param .u32 n, .param .u32 m, .param .u64 base) { .reg .b32 s, t, j, v; .reg .b64 a, o, x;
         ld.param.u64 a, [base]; ld.global.u32 s, [a]; mov.u32 t, %tid.x; add.s32 j, s, t;
         mul.wide.s32 o, j, 4; add.s64 x, a, o; ld.global.u32 v, [x]; st.global.u32 [x], v; ret; }",
    );
    let found = kernel.shapes(&Facts::new([64, 1, 1]), Assume::NoWrap);
    assert!(found.obligations().is_empty());
    assert!(found.is_uniform(kernel.reg("s")) && found.shape(kernel.reg("j")).stride() == 1);
    assert!(found.shape(kernel.reg("o")).is_varying());
}

#[test]
fn lanes_that_leave_a_loop_apart_take_different_values_along() {
    let kernel = Kernel::new(
        ".entry k(.param .u32 n, .param .u32 m, .param .u64 base) { .reg .b32 t, i, u, v, w; .reg .pred p;
         mov.u32 t, %laneid; mov.u32 i, 0;
         LOOP: add.s32 u, i, 7; add.s32 i, i, 1; setp.lt.u32 p, i, t; @p bra LOOP;
         add.s32 v, u, 1; mov.u32 w, 5; ret; }",
    );
    let facts = Facts::new([32, 1, 1]);
    let found = kernel.shapes(&facts, Assume::Nothing);
    let (u, v, i) = (kernel.reg("u"), kernel.reg("v"), kernel.reg("i"));
    let (inside, _) = kernel.inst("setp");
    assert!(found.is_uniform_in(u, inside) && !found.is_uniform(u) && found.is_uniform(i));
    assert!(found.shape(v).is_varying() && found.is_uniform(kernel.reg("w")));
    let (id, _) = kernel.loops.iter().next().unwrap();
    assert!(found.is_divergent_loop(id) && found.is_divergent_branch(inside));
    let alone = kernel.shapes(&Facts { lanes: 1, ..facts }, Assume::Nothing);
    assert!(alone.is_uniform(v) && alone.divergent_branches().count() == 0 && !alone.is_partial(inside));
}

#[test]
fn what_lanes_exchange() {
    let kernel = Kernel::new(
        ".entry k(.param .u32 n, .param .u32 m, .param .u64 base) { .reg .b32 t, b, mm, r, i, j, x, y, z, l; .reg .pred p, q; .reg .b64 a;
         mov.u32 t, %tid.x; setp.eq.u32 p, t, 3;
         vote.sync.ballot.b32 b, p, 0xffffffff; vote.sync.any.pred q, p, 0xffffffff; activemask.b32 mm;
         redux.sync.add.u32 r, t, 0xffffffff; shfl.sync.idx.b32 i, t, 0, 31, -1; shfl.sync.idx.b32 j, t, 3, 6175, -1;
         shfl.sync.down.b32 x, t, 1, 31, -1; match.any.sync.b32 y, t, -1; ld.param.u64 a, [base]; atom.global.add.u32 z, [a], 1;
         ld.volatile.global.u32 l, [a]; ret; }",
    );
    let found = kernel.shapes(&Facts::new([64, 1, 1]), Assume::Nothing);
    let group = |name: &str| found.shape(kernel.reg(name)).uniform_group();
    assert_eq!(["b", "q", "mm", "r", "i", "j", "x", "y", "z", "l"].map(group), [5, 5, 5, 5, 5, 3, 0, 0, 0, 0]);
}

#[test]
fn branches_that_rows_take_together_keep_rows_together() {
    let kernel = Kernel::new(
        ".entry k(.param .u32 n, .param .u32 m, .param .u64 base) { .reg .b32 x, y, v, w; .reg .pred p;
         mov.u32 x, %tid.x; mov.u32 y, %tid.y; mov.u32 v, x; setp.lt.u32 p, y, 3; @p bra END; add.s32 v, x, 100;
         END: add.s32 w, v, 1; ret; }",
    );
    let found = kernel.shapes(&Facts::new([16, 16, 1]), Assume::Nothing);
    let shape = found.shape(kernel.reg("w"));
    assert_eq!((shape.group(), shape.stride()), (4, 1));
    assert_eq!(found.divergent_branches().map(|block| found.branch_group(block)).collect::<Vec<_>>(), [4]);
}

#[test]
fn threads_of_random_kernels_agree() {
    let mut random = Random::new(11);
    let (mut known, mut all) = (0, 0);
    for round in 0..ROUNDS {
        let text = program(&mut random, 4 + round % 12);
        let kernel = Kernel::new(&text);
        let pick = |random: &mut Random| [0, 1, 5, 64, 100, 4096, 0x7fff_fff0, 0x8000_0000, u32::MAX - 3][random.below(9)];
        let (n, m) = (pick(&mut random), pick(&mut random));
        let grid = [[1, 1, 1], [3, 1, 1], [1 << 20, 1, 1], [0x7fff_ffff, 1, 1]][random.below(4)];
        let block = BLOCKS[random.below(BLOCKS.len())];
        let launch = Launch { block, grid, params: params(n, m, 0x7f00_0000_1000) };
        let result =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| kernel.check(&launch, &[[0, 0, 0], [grid[0] - 1, 0, 0]])));
        match result {
            Ok(Some(count)) => {
                known += count;
                all += kernel.function.regs.len();
            }
            Ok(None) => {}
            Err(error) => panic!("round {round}: {:?}\n{text}", error.downcast_ref::<String>()),
        }
    }
    assert!(all > 200 && known * 3 > all, "{known} of {all} registers are known");
}
