//! Threads that wait in a loop yield to those that they wait for: later blocks, other warps of the block,
//! other lanes of the warp.

use broadloom_cpu::{CacheFolder, Cpu, Options};
use broadloom_device::{Device, Launch};
use broadloom_diag::Sources;
use broadloom_ptx::{Verified, parse, verify};
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Loops that end when the word at `[FLAG]`, in the space `.SPACE`, is no longer zero. Labels end in `#`.
const LOOPS: [&str; 19] = [
    "L#: atom.SPACE.add.u32 %x, [FLAG], 0; setp.eq.u32 %p, %x, 0; @%p bra L#;",
    "L#: atom.SPACE.add.u32 %x, [FLAG], %zero; setp.eq.u32 %p, %x, 0; @%p bra L#;",
    "L#: atom.SPACE.or.b32 %x, [FLAG], 0; setp.eq.u32 %p, %x, 0; @%p bra L#;",
    "L#: atom.SPACE.and.b32 %x, [FLAG], -1; setp.eq.u32 %p, %x, 0; @%p bra L#;",
    "L#: atom.SPACE.xor.b32 %x, [FLAG], 0; setp.eq.u32 %p, %x, 0; @%p bra L#;",
    "L#: atom.SPACE.max.s32 %x, [FLAG], 0; setp.eq.u32 %p, %x, 0; @%p bra L#;",
    "L#: atom.SPACE.min.u32 %x, [FLAG], -1; setp.eq.u32 %p, %x, 0; @%p bra L#;",
    "L#: atom.SPACE.cas.b32 %x, [FLAG], 1, 1; setp.eq.u32 %p, %x, 0; @%p bra L#;",
    "L#: atom.SPACE.add.f32 %f, [FLAG], 0f00000000; setp.eq.f32 %p, %f, 0f00000000; @%p bra L#;",
    "L#: ld.volatile.SPACE.u32 %x, [FLAG]; setp.eq.u32 %p, %x, 0; @%p bra L#;",
    "L#: ld.relaxed.gpu.SPACE.u32 %x, [FLAG]; setp.eq.u32 %p, %x, 0; @%p bra L#;",
    "L#: ld.acquire.gpu.SPACE.u32 %x, [FLAG]; setp.eq.u32 %p, %x, 0; @%p bra L#;",
    "L#: ld.SPACE.u32 %x, [FLAG]; setp.eq.u32 %p, %x, 0; @%p bra L#;",
    "L#: ld.u32 %x, [%generic]; setp.eq.u32 %p, %x, 0; @%p bra L#;",
    // Loop over the words of an array, all of which are the flag.
    "mov.u32 %i, 0; L#: add.u32 %i, %i, 1; and.b32 %i, %i, 3; mad.wide.u32 %d, %i, %zero, %generic; ld.volatile.u32 %x, [%d]; setp.eq.u32 %p, %x, 0; @%p bra L#;",
    // Result of an inner loop.
    "L#: mov.u32 %i, 0; mov.u32 %y, 1;
     I#: mul.wide.u32 %d, %i, %zero; add.u64 %d, %d, %generic; ld.u32 %x, [%d]; and.b32 %y, %y, %x; add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 3; @%p bra I#;
     setp.eq.u32 %p, %y, 0; @%p bra L#;",
    // Own condition combined with the flag.
    "mov.u32 %i, 0; L#: add.u32 %i, %i, 1; ld.SPACE.u32 %x, [FLAG]; setp.ne.u32 %p, %x, 0; setp.gt.and.u32 %p, %i, 5, %p; @!%p bra L#;",
    // Loop with two entries.
    "setp.eq.u32 %p, %zero, 0; @%p bra M#; L#: add.u32 %i, %i, 1; M#: atom.SPACE.or.b32 %x, [FLAG], 0; setp.eq.u32 %p, %x, 0; @%p bra L#;",
    // Read in a called function.
    "L#: { .param .b64 at; .param .b32 seen; st.param.b64 [at], %generic; call (seen), look, (at); ld.param.b32 %x, [seen]; }
     setp.eq.u32 %p, %x, 0; @%p bra L#;",
];

/// Waiting threads and the threads that they wait for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Parties {
    /// The first thread of each block waits for the last block.
    Blocks,
    /// The first warp of the block waits for the last.
    Warps,
    /// The first lane waits for another one of its warp.
    Lanes,
}

/// Returns a kernel with some of the loops, one of which a parameter selects. Threads that waited store 7.
fn text(parties: Parties, loops: &Range<usize>) -> String {
    let (space, flag) = if parties == Parties::Warps { ("shared", "shared_flag") } else { ("global", "%flag") };
    let mut text = "
.version 7.5 .target sm_75 .address_size 64
.func (.param .b32 seen) look(.param .b64 at) {
    .reg .b64 %at; .reg .b32 %x;
    ld.param.u64 %at, [at]; ld.volatile.u32 %x, [%at]; st.param.b32 [seen], %x; ret;
}
.visible .entry k(.param .u64 flag, .param .u64 out, .param .u32 which, .param .u32 zero) {
    .shared .align 4 .u32 shared_flag;
    .reg .pred %p; .reg .b32 %x, %y, %i, %t, %b, %n, %which, %zero; .reg .b64 %d, %flag, %generic, %out; .reg .f32 %f;
    ld.param.u64 %flag, [flag]; ld.param.u64 %out, [out]; ld.param.u32 %which, [which]; ld.param.u32 %zero, [zero];
    mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x;
"
    .to_owned();
    text += match parties {
        Parties::Blocks => {
            "mov.b64 %generic, %flag; mov.u32 %n, %nctaid.x; sub.u32 %n, %n, 1; setp.eq.u32 %p, %b, %n; @%p bra WRITE;
             setp.ne.u32 %p, %t, 0; @%p bra END;"
        }
        Parties::Warps => {
            "cvta.shared.u64 %generic, shared_flag; setp.eq.u32 %p, %t, 0; @%p st.shared.u32 [shared_flag], %zero; bar.sync 0;
             mov.u32 %n, %ntid.x; sub.u32 %n, %n, 1; setp.eq.u32 %p, %t, %n; @%p bra WRITE; setp.ne.u32 %p, %t, 0; @%p bra END;"
        }
        Parties::Lanes => "mov.b64 %generic, %flag; setp.eq.u32 %p, %t, 1; @%p bra WRITE; setp.ne.u32 %p, %t, 0; @%p bra END;",
    };
    for number in loops.clone() {
        let code = LOOPS[number].replace("SPACE", space).replace("FLAG", flag).replace('#', &number.to_string());
        let _ = writeln!(text, "setp.ne.u32 %p, %which, {number}; @%p bra NOT{number};\n{code}\nbra WAITED;\nNOT{number}:");
    }
    // Float that is not subnormal, and odd as an integer.
    let write = format!("atom.{space}.exch.b32 %x, [{flag}], 0x3f800001;");
    text + &format!(
        "bra END;\nWAITED: mul.wide.u32 %d, %b, 4; add.u64 %out, %out, %d; mov.u32 %x, 7; st.global.u32 [%out], %x; bra END;
         WRITE: {write}\nEND: ret;\n}}"
    )
}

fn module(text: &str) -> Arc<Verified> {
    let mut sources = Sources::new();
    let id = sources.add("waiting.ptx", text.to_owned());
    let module = parse(&sources, id).and_then(verify);
    Arc::new(module.unwrap_or_else(|wrong| panic!("{}", sources.render_all(&wrong))))
}

fn device(threads: usize, vectorise: bool) -> Device {
    let mut options = Options { threads, memory_bytes: 1 << 26, cache: CacheFolder::Nowhere, ..Options::default() };
    options.compile.vectorise = vectorise;
    Device::new(Cpu::new(options).unwrap())
}

/// Runs the loops of a kernel, one after the other.
fn run(device: &Device, parties: Parties, loops: Range<usize>, blocks: u32) {
    let kernel = device.load(&module(&text(parties, &loops))).unwrap().kernel("k").unwrap();
    let (blocks, threads) = match parties {
        Parties::Blocks => (blocks, 40),
        Parties::Warps => (1, 128),
        Parties::Lanes => (1, 32),
    };
    let out = device.zeros::<u32>(blocks as usize).unwrap();
    for number in loops {
        let flag = device.zeros::<u32>(1).unwrap();
        out.fill_bytes(0).unwrap();
        let launch = Launch { time_limit: Some(Duration::from_secs(20)), ..Launch::linear(blocks, threads) };
        let arguments = [(&flag).into(), (&out).into(), (number as u32).into(), 0u32.into()];
        let outcome = kernel.launch(&launch, &arguments).and_then(|()| device.synchronise());
        if let Err(error) = outcome {
            panic!("{parties:?}, `{}`: {error}", LOOPS[number]);
        }
        let waited = if parties == Parties::Blocks { blocks as usize - 1 } else { 1 };
        let expected: Vec<u32> = (0..blocks as usize).map(|block| if block < waited { 7 } else { 0 }).collect();
        assert_eq!(out.read().unwrap(), expected, "{parties:?}, `{}`", LOOPS[number]);
    }
}

/// Groups of loops: those that run as vectors, and those that do not, because lanes could wait for each other
/// or there are two entries.
const GROUPS: [Range<usize>; 4] = [0..9, 9..17, 17..18, 18..19];

#[test]
fn blocks_wait_for_later_ones() {
    let (one, two) = (device(1, true), device(2, true));
    for group in GROUPS {
        run(&one, Parties::Blocks, group.clone(), 6);
        run(&two, Parties::Blocks, group, 9);
    }
}

/// Kernels with nothing else in them, so that nothing else makes them yield.
#[test]
fn a_kernel_with_one_loop_yields() {
    let device = device(1, true);
    for number in [0, 2, 12, 14, 16] {
        run(&device, Parties::Blocks, number..number + 1, 4);
        run(&device, Parties::Warps, number..number + 1, 1);
    }
}

/// More blocks than a worker usually has resident.
#[test]
fn many_blocks_wait_for_the_last() {
    run(&device(1, true), Parties::Blocks, 9..10, 150);
}

#[test]
fn warps_wait_for_later_ones() {
    let device = device(1, true);
    GROUPS.into_iter().for_each(|group| run(&device, Parties::Warps, group, 1));
}

#[test]
fn lanes_wait_for_each_other() {
    let device = device(1, true);
    GROUPS.into_iter().for_each(|group| run(&device, Parties::Lanes, group, 1));
}

#[test]
fn threads_wait_one_at_a_time() {
    let device = device(1, false);
    for parties in [Parties::Blocks, Parties::Warps, Parties::Lanes] {
        run(&device, parties, 0..LOOPS.len(), 5);
    }
}
