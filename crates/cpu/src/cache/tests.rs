//! Entries that are kept, shared, broken and refused.

use super::*;
use crate::abi::Kind;
use crate::code::{Accesses, Named, Rare, RareOperand, Site};
use crate::testing::{code, module};
use broadloom_diag::{Sources, Span};
use broadloom_ptx::{Selector, Var};
use std::process::Command;

/// A folder of its own, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("broadloom-cache-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Folder(path)
    }

    fn cache(&self, bytes: u64) -> Cache {
        Cache::new(&CacheFolder::At(self.0.clone()), bytes)
    }

    fn files(&self) -> Vec<PathBuf> {
        fs::read_dir(&self.0).map(|entries| entries.flatten().map(|entry| entry.path()).collect()).unwrap_or_default()
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
    Code {
        kind: Kind::Warps,
        local_bytes: 48,
        kept_bytes: 64,
        stream_bytes: 0,
        shared_bytes: 1 << 33,
        variables: vec![
            Named::Variable(Var::from_u32(3)),
            Named::Function(Func::from_u32(1)),
            Named::Local(Func::from_u32(0), Var::from_u32(2)),
        ],
        operations: vec![Rare {
            mnemonic: "vadd4.u32.u32.u32".into(),
            operands: vec![RareOperand::Sink, part, RareOperand::Vector(vec![RareOperand::Value, RareOperand::Absent])],
        }],
        sites: vec![
            Site { instruction: "trap;".into(), span: Some(Span { source, start: 3, end: 7 }), source: Some("k.cu:7".into()) },
            Site { instruction: String::new(), span: None, source: None },
        ],
        not_vectorised: Some("because".into()),
        loads: Accesses { uniform: 1, contiguous: 2, strided: 3, scattered: 4 },
        stores: Accesses { uniform: 5, contiguous: 6, strided: 7, scattered: 8 },
        ..small()
    }
}

#[test]
fn an_entry_is_the_kernel_it_was_made_from() {
    let code = everything();
    let source = code.sites[0].span.unwrap().source;
    assert_eq!(entry::decode(&entry::encode(&code), source), Some(code));
    assert_eq!(entry::decode(&entry::encode(&small()), source), Some(small()));
}

#[test]
fn a_broken_entry_is_none() {
    let code = everything();
    let source = code.sites[0].span.unwrap().source;
    let whole = entry::encode(&code);
    for at in 0..whole.len() {
        assert_eq!(entry::decode(&whole[..at], source), None, "cut to {at} bytes");
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        assert_eq!(entry::decode(&bytes, source), None, "byte {at} changed");
    }
    // With a checksum that fits, what is inside is still looked at.
    for at in 44..whole.len() {
        for flip in [1, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= flip;
            let checksum = *blake3::hash(&bytes[44..]).as_bytes();
            bytes[12..44].copy_from_slice(&checksum);
            let _ = entry::decode(&bytes, source);
        }
    }
}

#[test]
fn the_key_holds_all_that_code_depends_on() {
    let folder = Folder::new("key");
    let cache = folder.cache(1 << 20);
    let options = compile::Options::default();
    let key = |text: &str, kernel: &str, block: [u32; 3], options: &compile::Options| {
        let module = module(text);
        cache.keys(&module, module.function(kernel).unwrap(), block, options)
    };
    let base = key(TEXT, "k", [32, 1, 1], &options);
    assert_eq!(base, key(TEXT, "k", [32, 1, 1], &options));
    assert_ne!(base, key(TEXT, "l", [32, 1, 1], &options));
    assert_ne!(base, key(TEXT, "k", [1, 32, 1], &options));
    assert_ne!(base, key(TEXT, "k", [32, 1, 1], &compile::Options { optimise: false, ..options.clone() }));
    let machine = compile::Machine { features: "-avx".into(), ..options.machine.clone() };
    assert_ne!(base, key(TEXT, "k", [32, 1, 1], &compile::Options { machine, ..options.clone() }));
    for (from, to) in [("%tid.x", "%tid.y"), ("helper() { ret", "helper() { exit"), (".global .u32", ".global .align 8 .u32")] {
        assert_ne!(base, key(&TEXT.replace(from, to), "k", [32, 1, 1], &options), "{to}");
    }
    // What the kernel does not reach does not matter.
    assert_eq!(base, key(&TEXT.replace("l() { ret;", "l() { exit;"), "k", [32, 1, 1], &options));
}

#[test]
fn kernels_are_found_again_and_broken_files_are_not() {
    let folder = Folder::new("found");
    let module = module(TEXT);
    let kernel = module.function("k").unwrap();
    let function = &module.functions[kernel];
    let options = compile::Options::default();
    let [key, fast] = folder.cache(1 << 20).keys(&module, kernel, [32, 1, 1], &options);
    assert_ne!(key, fast);
    assert!(folder.cache(1 << 20).find(&key, "k", function).is_none());
    folder.cache(1 << 20).store(&key, &everything());
    let started = std::time::Instant::now();
    let found = folder.cache(1 << 20).find(&key, "k", function).unwrap();
    let took = started.elapsed();
    assert_eq!(found.code.operations, everything().operations);
    assert!(took < Duration::from_millis(50), "{took:?}");
    // In memory it stays without the file.
    let cache = folder.cache(1 << 20);
    assert!(cache.find(&key, "k", function).is_some());
    let file = folder.files().pop().unwrap();
    fs::remove_file(&file).unwrap();
    assert!(cache.find(&key, "k", function).is_some());
    assert!(folder.cache(1 << 20).find(&key, "k", function).is_none());
    // A broken file is gone once it was met.
    fs::write(&file, b"not a kernel").unwrap();
    assert!(folder.cache(1 << 20).find(&key, "k", function).is_none());
    assert!(folder.files().is_empty());
}

#[test]
fn the_folder_stays_small_and_forgets_the_oldest() {
    let folder = Folder::new("bounded");
    let size = entry::encode(&small()).len() as u64;
    let cache = folder.cache(10 * size);
    for number in 0..200u8 {
        cache.store(&Key([number; 32]), &small());
        if number == 0 {
            let old = SystemTime::now() - Duration::from_secs(1000);
            let file = fs::File::options().append(true).open(folder.0.join(Key([0; 32]).file_name())).unwrap();
            file.set_modified(old).unwrap();
        }
    }
    // It is looked over now and then, not at every file.
    assert!(folder.files().len() as u64 <= 10 + SWEEP_EVERY, "{} files", folder.files().len());
    assert!(!folder.0.join(Key([0; 32]).file_name()).exists());
    assert!(folder.0.join(Key([199; 32]).file_name()).exists());
    let strange = folder.0.join("notes.txt");
    fs::write(&strange, "not ours").unwrap();
    sweep(&folder.0, 0);
    assert_eq!(folder.files(), [strange]);
}

#[test]
fn a_folder_that_cannot_be_written_is_no_error() {
    let folder = Folder::new("readonly");
    // A file where the folder should be: nothing can be created there, whoever asks.
    fs::write(&folder.0, b"").unwrap();
    let cache = folder.cache(1 << 20);
    cache.store(&Key([1; 32]), &small());
    let module = module(TEXT);
    let function = &module.functions[module.function("k").unwrap()];
    assert!(cache.find(&Key([1; 32]), "k", function).is_none());
    fs::remove_file(&folder.0).unwrap();
    // A device whose files take nothing.
    let full = Cache::new(&CacheFolder::At(PathBuf::from("/dev/full")), 1 << 20);
    full.store(&Key([1; 32]), &small());
    assert!(full.find(&Key([1; 32]), "k", function).is_none());
    let nowhere = Cache::new(&CacheFolder::Nowhere, 1 << 20);
    nowhere.store(&Key([1; 32]), &small());
    assert!(nowhere.find(&Key([1; 32]), "k", function).is_none());
}

const CHILD: &str = "BROADLOOM_CACHE_CHILD";

#[test]
fn processes_share_a_folder() {
    let module = module(TEXT);
    let function = &module.functions[module.function("k").unwrap()];
    if let Some(folder) = std::env::var_os(CHILD) {
        // One of several processes: writes and reads the same kernels as the others, and never sees half of one.
        for round in 0..50u8 {
            let cache = Cache::new(&CacheFolder::At(folder.clone().into()), 1 << 20);
            let key = Key([round % 5; 32]);
            match cache.find(&key, "k", function) {
                Some(found) => assert_eq!(found.code.local_bytes, 48),
                None => cache.store(&key, &everything()),
            }
        }
        return;
    }
    let folder = Folder::new("shared");
    let program = std::env::current_exe().unwrap();
    let name = "cache::tests::processes_share_a_folder";
    let start = || Command::new(&program).args([name, "--exact", "--quiet"]).env(CHILD, &folder.0).spawn().unwrap();
    let children: Vec<_> = (0..3).map(|_| start()).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let files = folder.files();
    assert_eq!(files.len(), 5, "{files:?}");
    for number in 0..5 {
        assert!(folder.cache(1 << 20).find(&Key([number; 32]), "k", function).is_some());
    }
}
