//! Stores at `n + __popc(mask & lanemask_lt)`: lanes of the mask are adjacent, and are stored as a row.

use crate::support::{for_avx512, parsed};
use broadloom_cpu::compile::{Stage, show};
use broadloom_cpu::{CacheFolder, Cpu, Options};
use broadloom_device::{Argument, Device, Launch};

/// Form of a compacting store.
#[derive(Clone, Copy, Debug)]
struct Form {
    /// Element type, its register, the number of elements in a store, and the bytes between two.
    ty: &'static str,
    reg: &'static str,
    count: u32,
    stride: u32,
    /// Instructions that compute the lanes below, into `%r5`.
    below: &'static str,
    /// Instructions that compute the address of a lane, into `%rd4`, from its rank `%r7` and the offset of
    /// the row `%r8`.
    place: &'static str,
    /// Guard of the store.
    guard: &'static str,
}

const PLAIN: Form = Form {
    ty: "b32",
    reg: "%r9",
    count: 1,
    stride: 4,
    below: "mov.u32 %r5, %lanemask_lt;",
    place: "add.u32 %r7, %r7, %r8; mad.wide.u32 %rd4, %r7, STRIDE, %rd2;",
    guard: "@%p1",
};

impl Form {
    fn bytes(&self) -> u32 {
        self.ty[1..].parse::<u32>().unwrap() / 8
    }

    /// Returns a kernel in which thread `i` keeps `i` if the bit of its lane is set in the word of its warp.
    /// A warp has 40 slots.
    fn text(&self) -> String {
        let Form { ty, reg, below, guard, .. } = self;
        let value = match self.count {
            1 => reg.to_string(),
            count => format!("{{{}}}", vec![*reg; count as usize].join(", ")),
        };
        let vector = if self.count == 1 { String::new() } else { format!(".v{}", self.count) };
        let place = self.place.replace("STRIDE", &self.stride.to_string());
        format!(
            ".version 8.0 .target sm_80 .address_size 64
.visible .entry keep(.param .u64 masks, .param .u64 out)
.reqntid 64, 1, 1
{{
    .reg .pred %p<4>; .reg .b16 %h<2>; .reg .b32 %r<20>; .reg .b64 %rd<12>;
    ld.param.u64 %rd1, [masks]; ld.param.u64 %rd2, [out];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r9, %r1, 64, %r2;
    cvt.u16.u32 %h1, %r9; cvt.u64.u32 %rd5, %r9;
    shr.u32 %r3, %r9, 5; and.b32 %r4, %r2, 31;
    mad.wide.u32 %rd3, %r3, 4, %rd1; ld.global.u32 %r10, [%rd3];
    mul.lo.u32 %r8, %r3, 40;
    shl.b32 %r11, 1, %r4; and.b32 %r12, %r10, %r11; setp.ne.u32 %p1, %r12, 0; setp.ge.u32 %p2, %r4, 3; and.pred %p3, %p1, %p2;
    {below}
    vote.sync.ballot.b32 %r6, %p1, -1;
    and.b32 %r7, %r6, %r5;
    popc.b32 %r7, %r7;
    {place}
    {guard} st.global{vector}.{ty} [%rd4], {value};
    ret;
}}"
        )
    }
}

fn forms() -> Vec<Form> {
    let widths = [("b8", "%h1", 1), ("b16", "%h1", 2), ("b32", "%r9", 4), ("b64", "%rd5", 8)];
    let mut forms = vec![];
    for (ty, reg, bytes) in widths {
        for count in [1, 2, 4].into_iter().filter(|count| count * bytes <= 16) {
            forms.push(Form { ty, reg, count, stride: count * bytes, ..PLAIN });
        }
    }
    let shifted = "shl.b32 %r5, 1, %r4; sub.u32 %r5, %r5, 1;";
    let wide = "cvt.u64.u32 %rd6, %r7; cvt.u64.u32 %rd7, %r8; add.u64 %rd6, %rd7, %rd6; shl.b64 %rd6, %rd6, 2; add.u64 %rd4, %rd2, %rd6;";
    let product = "add.u32 %r7, %r8, %r7; mul.wide.s32 %rd6, %r7, STRIDE; add.s64 %rd4, %rd6, %rd2;";
    forms.push(Form { below: shifted, ..PLAIN });
    forms.push(Form { place: wide, ..PLAIN });
    forms.push(Form { place: product, ..PLAIN });
    // Similar forms that are not compact: gaps between elements, one more lane counted, other lanes that
    // store.
    forms.push(Form { stride: 8, ..PLAIN });
    forms.push(Form { below: "mov.u32 %r5, %lanemask_le;", ..PLAIN });
    forms.push(Form { guard: "@%p3", ..PLAIN });
    forms
}

#[test]
fn lanes_of_a_mask_store_side_by_side() {
    let device = Device::new(Cpu::new(Options { threads: 2, cache: CacheFolder::Nowhere, ..Options::default() }).unwrap());
    let words = [0, u32::MAX, 1, 1 << 31, 0xffff_0000, 0x0000_ffff, 0xaaaa_aaaa, 0x8001_7ffe, 0xdead_beef, 0x0f0f_1234];
    for form in forms() {
        let module = std::sync::Arc::new(broadloom_ptx::verify(parsed(form.text())).unwrap());
        let kernel = device.load(&module).unwrap().kernel("keep").unwrap();
        let masks = device.upload(&words).unwrap();
        let (bytes, room) = (form.bytes() as usize, words.len() * 40 * form.stride as usize);
        let out = device.upload(&vec![0x5au8; room]).unwrap();
        let launch = Launch::new([words.len() as u32 / 2, 1, 1], [64, 1, 1]);
        kernel.launch(&launch, &[Argument::from(&masks), Argument::from(&out)]).unwrap();
        let mut want = vec![0x5au8; room];
        for (warp, word) in words.into_iter().enumerate() {
            for lane in (0..32).filter(|lane| word >> lane & 1 == 1 && (form.guard == "@%p1" || *lane >= 3)) {
                let counted = if form.below.contains("_le") { 2u64 << lane } else { 1 << lane } - 1;
                let rank = (word & counted as u32).count_ones() as usize;
                let at = (warp * 40 + rank) * form.stride as usize;
                for element in 0..form.count as usize {
                    let value = ((warp * 32 + lane) as u64).to_le_bytes();
                    want[at + element * bytes..][..bytes].copy_from_slice(&value[..bytes]);
                }
            }
        }
        assert!(out.read().unwrap() == want, "{form:?}");
    }
}

/// The form is found in the code, and the adjacency is checked at run time.
#[test]
fn rows_are_brought_together_in_registers() {
    for form in forms() {
        let module = parsed(form.text());
        let (kernel, _) = module.kernels().next().unwrap();
        let code = show(&module, kernel, [64, 1, 1], &for_avx512(), Stage::Llvm).unwrap();
        assert!(code.contains("avx512.mask.compress"), "{form:?}: {code}");
    }
}
