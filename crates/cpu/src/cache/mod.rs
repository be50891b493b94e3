//! Compiled kernels, kept in memory and on disk.
//!
//! A kernel is found by its content: the key is a hash of everything that its code depends on, down to the build of this crate. On disk
//! each kernel is a file that is written aside and renamed, so that processes may share the folder; it carries a checksum, and whatever is
//! not whole is as good as not there. The folder is bounded: the files that were not used for the longest time go first. **Nothing that
//! happens to the folder is an error: without it, kernels are compiled again.**

mod content;
mod contents;
mod entry;

pub use contents::Contents;

use crate::code::Code;
use crate::compile;
use crate::grid::Ready;
use crate::options::CacheFolder;
use broadloom_ptx::{Base, Callee, Func, Function, Item, Module, Operand, Symbol};
use broadloom_transform::return_exits::{addressed, call_of};
use content::Content;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::hash::Hash as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

/// Changes when entries or keys do.
const FORMAT: u32 = 2;
/// Most bytes of code that are kept in memory for modules that are loaded again.
const MEMORY_BYTES: usize = 256 << 20;
/// The folder is looked over after so many new files.
const SWEEP_EVERY: u64 = 64;
/// Files under construction are left alone so long.
const ABANDONED: Duration = Duration::from_secs(3600);
/// The time of a file's last use is kept this exactly.
const USE_GRAIN: Duration = Duration::from_secs(3600);
/// Ends of the names of files.
const ENDING: &str = "kernel";
const UNFINISHED: &str = "unfinished";

/// What a kernel is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key([u8; 32]);

impl Key {
    fn file_name(&self) -> String {
        let mut name = String::with_capacity(72);
        for byte in self.0 {
            let _ = write!(name, "{byte:02x}");
        }
        name.push('.');
        name.push_str(ENDING);
        name
    }
}

#[derive(Debug)]
struct Kept {
    ready: Arc<Ready>,
    used: u64,
}

#[derive(Debug, Default)]
struct InMemory {
    kernels: HashMap<Key, Kept>,
    bytes: usize,
    clock: u64,
}

/// Compiled kernels.
#[derive(Debug)]
pub(crate) struct Cache {
    folder: Option<PathBuf>,
    most_bytes: u64,
    memory: Mutex<InMemory>,
    stored: AtomicU64,
}

impl Cache {
    pub(crate) fn new(folder: &CacheFolder, most_bytes: u64) -> Cache {
        Cache { folder: folder.path(), most_bytes, memory: Mutex::new(InMemory::default()), stored: AtomicU64::new(0) }
    }

    fn memory(&self) -> MutexGuard<'_, InMemory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The keys of a kernel for a shape of block: of code that takes nothing for granted, and of code that takes for granted that index
    /// arithmetic does not wrap, whatever the options say of that.
    pub(crate) fn keys(&self, module: &Module, kernel: Func, block: [u32; 3], options: &compile::Options) -> [Key; 2] {
        let compile::Options { machine, optimise, vectorise, assume_no_wrap: _, stack_bytes } = options;
        let mut hasher = blake3::Hasher::new();
        let mut put = |text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        };
        put(&format!("{FORMAT} {} {}", env!("CARGO_PKG_VERSION"), build()));
        put(&format!("{:?} {block:?} {machine:?} {optimise} {vectorise} {stack_bytes}", inkwell::support::get_llvm_version()));
        put(&format!("{} {:?} {}", module.version, module.target, module.address_size));
        for item in &module.items {
            match item {
                Item::Alias(alias) => put(&format!("{:?} {:?}", alias.alias, alias.aliasee)),
                Item::File(file) => put(&format!("{} {}", file.number, file.name)),
                Item::Variable(_) | Item::Declaration(_) | Item::Definition(_) | Item::Section(_) | Item::Pragma(_) => {}
            }
        }
        let reachable = reachable(module, kernel);
        let calls =
            reachable.iter().flat_map(|func| module.functions[*func].instructions()).filter_map(|(_, inst)| call_of(inst));
        if calls.into_iter().any(|call| matches!(call.callee, Callee::Indirect { .. })) {
            // Where pointers may lead is said by others too.
            put(&format!("{:?}", addressed(module)));
        }
        // Addresses are found by the numbers of variables and functions, so those belong to it.
        let mut content = Content::default();
        module.variables.len().hash(&mut content);
        module.variables.values().for_each(|variable| content.variable(variable));
        for func in reachable {
            func.hash(&mut content);
            content.function(&module.functions[func]);
            content.called(module, func);
        }
        hasher.update(content.bytes());
        [0, 1].map(|fast| Key(*hasher.clone().update(&[fast]).finalize().as_bytes()))
    }

    /// A kernel that was compiled before.
    pub(crate) fn find(&self, key: &Key, name: &str, function: &Function) -> Option<Arc<Ready>> {
        {
            let mut memory = self.memory();
            memory.clock += 1;
            let now = memory.clock;
            if let Some(kept) = memory.kernels.get_mut(key) {
                kept.used = now;
                return Some(kept.ready.clone());
            }
        }
        let path = self.folder.as_ref()?.join(key.file_name());
        let bytes = fs::read(&path).ok()?;
        let ready = entry::decode(&bytes, function.span.source).and_then(|code| Ready::new(name, code).ok());
        let Some(ready) = ready else {
            // It will be written again; where it cannot be removed, it is found broken again.
            let _ = fs::remove_file(&path);
            return None;
        };
        touch(&path);
        let ready = Arc::new(ready);
        self.keep(key, &ready);
        Some(ready)
    }

    /// Keeps a kernel in memory.
    pub(crate) fn keep(&self, key: &Key, ready: &Arc<Ready>) {
        let mut memory = self.memory();
        memory.clock += 1;
        let used = memory.clock;
        memory.bytes += ready.object.bytes();
        if let Some(before) = memory.kernels.insert(*key, Kept { ready: ready.clone(), used }) {
            memory.bytes -= before.ready.object.bytes();
        }
        while memory.bytes > MEMORY_BYTES && memory.kernels.len() > 1 {
            let Some(oldest) = memory.kernels.iter().min_by_key(|(_, kept)| kept.used).map(|(key, _)| *key) else { break };
            if let Some(gone) = memory.kernels.remove(&oldest) {
                memory.bytes -= gone.ready.object.bytes();
            }
        }
    }

    /// Writes a kernel to disk, if that can be done.
    pub(crate) fn store(&self, key: &Key, code: &Code) {
        let Some(folder) = &self.folder else { return };
        let bytes = entry::encode(code);
        if bytes.len() as u64 > self.most_bytes || fs::create_dir_all(folder).is_err() {
            return;
        }
        let count = self.stored.fetch_add(1, Ordering::Relaxed);
        if count.is_multiple_of(SWEEP_EVERY) {
            sweep(folder, self.most_bytes.saturating_sub(bytes.len() as u64));
        }
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let aside = folder.join(format!("{}-{serial}.{UNFINISHED}", std::process::id()));
        let written = fs::write(&aside, &bytes).and_then(|()| fs::rename(&aside, folder.join(key.file_name())));
        if written.is_err() {
            let _ = fs::remove_file(&aside);
        }
    }
}

/// `$BROADLOOM_CACHE`, or `broadloom` in `$XDG_CACHE_HOME` or `~/.cache`.
fn default_folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("BROADLOOM_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").filter(|path| path.is_absolute()).map(|path| path.join("broadloom")))
        .or_else(|| set("HOME").map(|path| path.join(".cache").join("broadloom")))
}

/// What tells this build from others: the file that this code is in, its length and its time.
fn build() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    BUILD.get_or_init(|| {
        let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
        let here = build as fn() -> &'static str as usize;
        // SAFETY: dladdr fills the structure when it returns something else than 0; the name it gives lives as long as the file is
        // loaded, which this code is part of.
        let path = unsafe {
            if libc::dladdr(here as *const libc::c_void, info.as_mut_ptr()) != 0 {
                let name = info.assume_init().dli_fname;
                (!name.is_null()).then(|| std::ffi::CStr::from_ptr(name).to_string_lossy().into_owned())
            } else {
                None
            }
        };
        let file = path.map(PathBuf::from).filter(|path| path.is_absolute()).or_else(|| std::env::current_exe().ok());
        let facts = file.and_then(|file| fs::metadata(file).ok());
        format!("{:?}", facts.map(|facts| (facts.len(), facts.modified().ok())))
    })
}

/// Notes that a file was used.
fn touch(path: &Path) {
    let now = SystemTime::now();
    let old = |path: &Path| Some(now.duration_since(fs::metadata(path).ok()?.modified().ok()?).is_ok_and(|age| age > USE_GRAIN));
    if old(path) == Some(true)
        && let Ok(file) = fs::File::options().append(true).open(path)
    {
        let _ = file.set_modified(now);
    }
}

/// Removes the files that were not used for the longest time until the others have room, and what was never finished.
fn sweep(folder: &Path, most_bytes: u64) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let now = SystemTime::now();
    let mut files = vec![];
    for entry in entries.flatten() {
        let (path, Ok(facts)) = (entry.path(), entry.metadata()) else { continue };
        let used = facts.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        match path.extension().and_then(|ending| ending.to_str()) {
            Some(ENDING) => files.push((used, facts.len(), path)),
            Some(UNFINISHED) if now.duration_since(used).is_ok_and(|age| age > ABANDONED) => {
                let _ = fs::remove_file(path);
            }
            // Not ours.
            Some(_) | None => {}
        }
    }
    files.sort();
    let mut bytes: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, length, path) in files {
        if bytes <= most_bytes {
            break;
        }
        if fs::remove_file(path).is_ok() {
            bytes -= length;
        }
    }
}

/// The kernel and all functions that it can reach: those it names, and all when it calls through pointers. Kernels that are named
/// are not called, and only their addresses matter.
pub(crate) fn reachable(module: &Module, kernel: Func) -> Vec<Func> {
    let mut found = vec![kernel];
    let mut next = 0;
    while next < found.len() {
        let function = &module.functions[found[next]];
        next += 1;
        let mut named = vec![];
        let mut indirect = false;
        for (_, inst) in function.instructions() {
            inst.operands.iter().for_each(|operand| names(operand, &mut named, &mut indirect));
        }
        if indirect {
            named.extend(module.functions.keys());
        }
        for item in &module.items {
            if let Item::Alias(alias) = item
                && named.contains(&alias.alias)
            {
                named.push(alias.aliasee);
            }
        }
        for func in named {
            let function = &module.functions[func];
            if !function.is_kernel && function.has_body && !found.contains(&func) {
                found.push(func);
            }
        }
    }
    found[1..].sort();
    found
}

/// The functions that an operand names.
fn names(operand: &Operand, named: &mut Vec<Func>, indirect: &mut bool) {
    let of_symbol = |symbol: &Symbol| match symbol {
        Symbol::Func(func) => Some(*func),
        Symbol::Var(_) | Symbol::Local(_) => None,
    };
    let of_base = |base: &Base| match base {
        Base::Symbol(symbol) => of_symbol(symbol),
        Base::Reg(_) | Base::Absolute => None,
    };
    match operand {
        Operand::Symbol(symbol, _) => named.extend(of_symbol(symbol)),
        Operand::Memory(address) => named.extend(of_base(&address.base)),
        Operand::Vector(list) => list.iter().for_each(|operand| names(operand, named, indirect)),
        Operand::Pair(pair) => pair.iter().for_each(|operand| names(operand, named, indirect)),
        Operand::Call(call) => {
            match call.callee {
                Callee::Direct(func) => named.push(func),
                Callee::Indirect { .. } => *indirect = true,
            }
            call.arguments.iter().for_each(|operand| names(operand, named, indirect));
        }
        Operand::Reg(_)
        | Operand::Not(_)
        | Operand::Part { .. }
        | Operand::Imm(_)
        | Operand::Special(_)
        | Operand::Texture(_)
        | Operand::Label(_)
        | Operand::Targets(_)
        | Operand::Sink
        | Operand::Absent => {}
    }
}

#[cfg(test)]
mod tests;
