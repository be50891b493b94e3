//! Compiled kernels in the cache that all devices share: keys and entries.
//!
//! The key is everything that the code depends on, including the build of this crate. The spans of
//! instructions are not part of it: an entry names instructions by number, and the reader inserts the spans
//! of its own text.

mod content;
pub mod entry;
mod places;

use crate::code::Code;
use crate::compile;
use crate::grid::Ready;
use crate::signals::without_file_size_signal;
use broadloom_device::CacheFolder;
use broadloom_device::cache::{Key, Miss, Origin, digest};
use broadloom_ptx::{Callee, Func, Item, Module, Symbol};
use broadloom_transform::return_exits::addressed;
use content::Content;
pub use places::Places;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::hash::Hash as _;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// Version number; changes when entries or keys change.
const FORMAT: u32 = 5;
/// Maximum bytes of code kept in memory for modules that are loaded again.
const MEMORY_BYTES: usize = 256 << 20;

/// Compiled kernels.
#[derive(Debug)]
pub struct Cache(broadloom_device::cache::Cache<Ready>);

/// Lookup request for a kernel.
#[derive(Debug)]
pub struct LookupRequest {
    /// Keys of the code without assumptions, and of the code that assumes that index arithmetic does not
    /// wrap.
    pub keys: [Key; 2],
    name: String,
    pub places: Places,
}

impl Cache {
    pub fn new(folder: &CacheFolder, most_bytes: u64) -> Cache {
        Cache(broadloom_device::cache::Cache::new("cpu", folder, most_bytes, MEMORY_BYTES))
    }

    /// Returns the lookup request of a kernel for a block shape. It does not depend on the option
    /// `assume_no_wrap`.
    pub fn request(module: &Module, kernel: Func, block: [u32; 3], options: &compile::CompileOptions) -> LookupRequest {
        let compile::CompileOptions { machine, optimise, vectorise, assume_no_wrap: _, assume_apart, stack_bytes, checks } =
            options;
        let mut code = vec![];
        let mut put = |text: &str| {
            code.extend((text.len() as u64).to_le_bytes());
            code.extend(text.as_bytes());
        };
        put(&format!("{} {:?} {}", module.version, module.target, module.address_size));
        for item in &module.items {
            match item {
                Item::Alias(alias) => put(&format!("{:?} {:?}", alias.alias, alias.aliasee)),
                Item::File(file) => put(&format!("{} {}", file.number, file.name)),
                // Source positions name inlined functions by the texts in this section.
                Item::Section(section) if section.name == ".debug_str" => section.lines.iter().for_each(|line| put(line)),
                Item::Variable(_) | Item::Declaration(_) | Item::Definition(_) | Item::Section(_) | Item::Pragma(_) => {}
            }
        }
        let reachable = reachable(module, kernel);
        let calls = reachable.iter().flat_map(|func| module.functions[*func].instructions()).filter_map(|(_, inst)| inst.call());
        if calls.into_iter().any(|call| matches!(call.callee, Callee::Indirect { .. })) {
            // Other functions also determine where pointers may lead.
            put(&format!("{:?}", addressed(module)));
        }
        // Addresses are looked up by the numbers of variables and functions, so these are part of the key.
        let mut content = Content::default();
        module.variables.len().hash(&mut content);
        module.variables.values().for_each(|variable| content.variable(variable));
        for func in &reachable {
            func.hash(&mut content);
            content.function(&module.functions[*func]);
            content.called(module, *func);
        }
        code.extend(content.bytes());
        let code = digest(&code);
        let version = format!("{FORMAT} {} {}", env!("CARGO_PKG_VERSION"), build());
        let machine = format!("{:?} {machine:?}", inkwell::support::get_llvm_version());
        let keys = [false, true].map(|fast| {
            let options = format!("{block:?} {optimise} {vectorise} {stack_bytes} {assume_apart} {checks:?} {fast}");
            Key::new(&Origin { device: "cpu", code, version: &version, machine: &machine, options: &options })
        });
        LookupRequest { keys, name: module.functions[kernel].name.clone(), places: Places::of(module, &reachable) }
    }

    /// Finds a compiled kernel, in its fast or its general form.
    pub fn find(&self, request: &LookupRequest, fast: bool) -> Result<Arc<Ready>, Miss> {
        self.0.find(&request.keys[usize::from(fast)], request.places.variant(), |body| {
            let ready = Ready::new(&request.name, entry::decode(body, &request.places)?).ok()?;
            let bytes = ready.object.bytes();
            Some((ready, bytes))
        })
    }

    /// Keeps a kernel in memory.
    pub(crate) fn keep(&self, request: &LookupRequest, fast: bool, ready: &Arc<Ready>) {
        self.0.keep(&request.keys[usize::from(fast)], request.places.variant(), ready, ready.object.bytes());
    }

    /// Writes a kernel to disk, if possible.
    pub fn store(&self, request: &LookupRequest, fast: bool, code: &Code) {
        let entry = entry::encode(code, &request.places);
        without_file_size_signal(|| self.0.store(&request.keys[usize::from(fast)], &entry));
    }

    /// Counts a hit, or the reason of a miss.
    pub(crate) fn count(&self, outcome: Result<(), Miss>) {
        self.0.count(outcome);
    }
}

/// Returns the identity of this build: the file that contains this code, its length and its modification
/// time.
fn build() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    BUILD.get_or_init(|| {
        let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
        let here = build as fn() -> &'static str as usize;
        // SAFETY: dladdr fills the structure when it returns a value other than 0. The returned name lives as
        // long as the file is loaded, and this code is part of that file.
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

/// Returns the kernel and all functions that it can reach: those it names, and all functions if it calls
/// through pointers. Named kernels are not called; only their addresses matter.
pub(crate) fn reachable(module: &Module, kernel: Func) -> Vec<Func> {
    let aliases: HashMap<Func, Func> = module
        .items
        .iter()
        .filter_map(|item| if let Item::Alias(alias) = item { Some((alias.alias, alias.aliasee)) } else { None })
        .collect();
    let mut found = vec![kernel];
    let mut seen = HashSet::from([kernel]);
    let (mut next, mut all) = (0, false);
    while next < found.len() {
        let function = &module.functions[found[next]];
        next += 1;
        let mut named = vec![];
        let mut indirect = false;
        for (_, inst) in function.instructions() {
            inst.each_symbol(|symbol| {
                if let Symbol::Func(func) = symbol {
                    named.push(func);
                }
            });
            match inst.callee() {
                Some(Callee::Direct(func)) => named.push(func),
                Some(Callee::Indirect { .. }) => indirect = true,
                None => {}
            }
        }
        if indirect && !all {
            all = true;
            named.extend(module.functions.keys());
        }
        for func in named.into_iter().map(|func| aliases.get(&func).copied().unwrap_or(func)) {
            let function = &module.functions[func];
            if !function.is_kernel && function.has_body && seen.insert(func) {
                found.push(func);
            }
        }
    }
    found[1..].sort();
    found
}
