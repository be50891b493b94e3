//! Cache entries and keys of kernels.

use crate::testing::{code, module};
use broadloom_cpu::abi::Kind;
use broadloom_cpu::cache::{Cache, Places, entry};
use broadloom_cpu::code::Code;
use broadloom_cpu::code::{Accesses, AddressedItem, FaultSite, RareInstruction, RareOperand};
use broadloom_cpu::compile;
use broadloom_device::CacheFolder;
use broadloom_device::cache::Miss;
use broadloom_device::place::{FileLine, InlinedCall, SourcePlace};
use broadloom_diag::Sources;
use broadloom_diag::Span;
use broadloom_ptx::Func;
use broadloom_ptx::{Selector, Var};
use std::fs;
use std::path::PathBuf;

/// Temporary folder, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("broadloom-kernels-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Folder(path)
    }

    fn cache(&self) -> Cache {
        Cache::new(&CacheFolder::At(self.0.clone()), 1 << 20)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const TEXT: &str = ".version 8.0 .target sm_80 .address_size 64
.global .u32 counter;
.func helper() { ret; }
.func other() { ret; }
.visible .entry k() { .reg .b32 %r<2>; mov.u32 %r1, %tid.x; st.global.u32 [counter], %r1; call.uni helper, (); ret; }
.visible .entry l() { ret; }";

fn small() -> Code {
    code(Kind::Block, "define void @kernel(ptr %w) { ret void }")
}

fn everything() -> Code {
    let mut sources = Sources::new();
    let source = sources.add("k.ptx", "some text that is long enough");
    let part = RareOperand::Part(true, Some(Selector::Lanes(0x3210)));
    let line = |file: &str, line: u32| FileLine { file: file.into(), line };
    let call = InlinedCall { function: "f".into(), at: line("f.h", 3), from: line("k.cu", 7) };
    let source_place = SourcePlace { line: line("k.cu", 7), calls: vec![call] };
    Code {
        kind: Kind::Warps,
        local_bytes: 48,
        kept_bytes: 64,
        stream_bytes: 0,
        shared_bytes: 1 << 33,
        variables: vec![
            AddressedItem::Variable(Var::from_u32(3)),
            AddressedItem::Function(Func::from_u32(1)),
            AddressedItem::Local(Func::from_u32(0), Var::from_u32(2)),
        ],
        operations: vec![RareInstruction {
            mnemonic: "vadd4.u32.u32.u32".into(),
            operands: vec![RareOperand::Sink, part, RareOperand::Vector(vec![RareOperand::Value, RareOperand::Absent])],
        }],
        sites: vec![
            FaultSite { instruction: "trap;".into(), span: Some(Span { source, start: 3, end: 7 }), source: Some(source_place) },
            FaultSite { instruction: String::new(), span: None, source: None },
        ],
        not_vectorised: Some("because".into()),
        loads: Accesses { uniform: 1, contiguous: 2, strided: 3, scattered: 4 },
        stores: Accesses { uniform: 5, contiguous: 6, strided: 7, scattered: 8 },
        ..small()
    }
}

/// Returns spans, the first of which is that of the site in [`everything`].
fn places() -> Places {
    let span = everything().sites[0].span.unwrap();
    Places(vec![span, Span { start: span.end, end: span.end + 3, ..span }])
}

#[test]
fn an_entry_is_the_kernel_it_was_made_from() {
    let code = everything();
    assert_eq!(entry::decode(&entry::encode(&code, &places()), &places()), Some(code));
    assert_eq!(entry::decode(&entry::encode(&small(), &places()), &Places::default()), Some(small()));
    // If the text has changed, the spans are those of the current text.
    let mut moved = places();
    moved.0[0].start += 5;
    let found = entry::decode(&entry::encode(&everything(), &places()), &moved).unwrap();
    assert_eq!(found.sites[0].span, Some(moved.0[0]));
    assert_eq!(entry::decode(&entry::encode(&everything(), &places()), &Places::default()), None);
}

#[test]
fn a_broken_entry_is_none_or_a_kernel() {
    let (code, places) = (everything(), places());
    let whole = entry::encode(&code, &places);
    for at in 0..whole.len() {
        assert_eq!(entry::decode(&whole[..at], &places), None, "cut to {at} bytes");
        for flip in [1, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= flip;
            let _ = entry::decode(&bytes, &places);
        }
    }
}

#[test]
fn the_key_holds_all_that_code_depends_on() {
    let options = compile::CompileOptions::default();
    let key = |text: &str, kernel: &str, block: [u32; 3], options: &compile::CompileOptions| {
        let module = module(text);
        Cache::request(&module, module.function(kernel).unwrap(), block, options).keys
    };
    let base = key(TEXT, "k", [32, 1, 1], &options);
    assert_ne!(base[0], base[1]);
    assert_eq!(base, key(TEXT, "k", [32, 1, 1], &options));
    assert_ne!(base, key(TEXT, "l", [32, 1, 1], &options));
    assert_ne!(base, key(TEXT, "k", [1, 32, 1], &options));
    assert_ne!(base, key(TEXT, "k", [32, 1, 1], &compile::CompileOptions { optimise: false, ..options.clone() }));
    let machine = compile::Machine { features: "-avx".into(), ..options.machine.clone() };
    assert_ne!(base, key(TEXT, "k", [32, 1, 1], &compile::CompileOptions { machine, ..options.clone() }));
    // Two CPUs with equal features: LLVM schedules instructions differently for them.
    let [a, b] = ["haswell", "x86-64-v3"].map(|name| {
        let machine = compile::Machine::named(name).unwrap();
        key(TEXT, "k", [32, 1, 1], &compile::CompileOptions { machine, ..options.clone() })
    });
    assert_ne!(a, b);
    for (from, to) in [("%tid.x", "%tid.y"), ("helper() { ret", "helper() { exit"), (".global .u32", ".global .align 8 .u32")] {
        assert_ne!(base, key(&TEXT.replace(from, to), "k", [32, 1, 1], &options), "{to}");
    }
    // Code that the kernel does not reach does not matter, nor does the layout of the text.
    assert_eq!(base, key(&TEXT.replace("l() { ret;", "l() { exit;"), "k", [32, 1, 1], &options));
    assert_eq!(base, key(&TEXT.replace("{ ", "{ // a comment\n\t"), "k", [32, 1, 1], &options));
}

#[test]
fn kernels_are_found_again_with_the_reason_when_not() {
    let folder = Folder::new("found");
    let options = compile::CompileOptions::default();
    let request = |text: &str, block: [u32; 3]| {
        let module = module(text);
        Cache::request(&module, module.function("k").unwrap(), block, &options)
    };
    let plain = request(TEXT, [32, 1, 1]);
    assert_eq!(folder.cache().find(&plain, false).unwrap_err(), Miss::Unseen);
    let mut stored = everything();
    stored.sites[0].span = Some(plain.places.0[1]);
    folder.cache().store(&plain, false, &stored);
    let cache = folder.cache();
    let found = cache.find(&plain, false).unwrap();
    assert_eq!(found.code.operations, stored.operations);
    assert_eq!(found.code.sites, stored.sites);
    assert_eq!(cache.find(&plain, true).unwrap_err(), Miss::OtherOptions);
    assert_eq!(cache.find(&request(TEXT, [64, 1, 1]), false).unwrap_err(), Miss::OtherOptions);
    assert_eq!(cache.find(&request(&TEXT.replace("%tid.x", "%tid.y"), [32, 1, 1]), false).unwrap_err(), Miss::Unseen);
    // A text with another layout finds the entry too, in memory and on disk, with its own spans.
    let text = format!("// a comment\n{TEXT}");
    let other = request(&text, [32, 1, 1]);
    for cache in [cache, folder.cache()] {
        let again = cache.find(&other, false).unwrap();
        assert_eq!(again.code.sites[0].span, Some(other.places.0[1]));
        assert_ne!(again.code.sites[0].span, found.code.sites[0].span);
    }
}
