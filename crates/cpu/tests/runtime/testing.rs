//! Small kernels for tests, from LLVM's own text.

use broadloom_cpu::abi::{Kind, offset};
use broadloom_cpu::code::{Accesses, Code};
use broadloom_cpu::grid::Ready;
use broadloom_cpu::{CacheFolder, Cpu, Options};
use broadloom_device::{Launch, Result};
use broadloom_diag::Sources;
use broadloom_ptx::Verified;
use inkwell::OptimizationLevel;
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::targets::{CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetMachine, TargetTriple};
use std::sync::Arc;

/// Compiles LLVM text to an object file for this machine.
pub(crate) fn object(text: &str) -> Vec<u8> {
    let triple = TargetMachine::get_default_triple();
    object_for(text, triple.as_str().to_str().unwrap(), "", RelocMode::PIC)
}

/// Compiles LLVM text to an object file for a machine.
pub(crate) fn object_for(text: &str, triple: &str, features: &str, relocations: RelocMode) -> Vec<u8> {
    let every = InitializationConfig { asm_printer: true, base: true, info: true, ..InitializationConfig::default() };
    Target::initialize_x86(&every);
    Target::initialize_aarch64(&every);
    let context = Context::create();
    // LLVM expects a zero after the text.
    let buffer = MemoryBuffer::create_from_memory_range_copy(format!("{text}\0").as_bytes(), "kernel");
    let module = context.create_module_from_ir(buffer).unwrap_or_else(|error| panic!("{}", error.to_string_lossy()));
    let triple = TargetTriple::create(triple);
    let target = Target::from_triple(&triple).unwrap();
    let machine =
        target.create_target_machine(&triple, "", features, OptimizationLevel::Default, relocations, CodeModel::Small).unwrap();
    let object = machine.write_to_memory_buffer(&module, FileType::Object).unwrap();
    object.as_slice().to_vec()
}

/// Parses and verifies a module.
pub(crate) fn module(text: &str) -> Arc<Verified> {
    let mut sources = Sources::new();
    let id = sources.add("test.ptx", text);
    let module = broadloom_ptx::parse(&sources, id).unwrap_or_else(|errors| panic!("{errors:?}"));
    Arc::new(broadloom_ptx::verify(module).unwrap_or_else(|errors| panic!("{errors:?}")))
}

/// Creates a device without a disk cache, with some threads.
pub(crate) fn device(threads: usize) -> Cpu {
    device_with(threads, |_| {})
}

/// Creates a device without a disk cache, with changed options.
pub(crate) fn device_with(threads: usize, set: impl FnOnce(&mut Options)) -> Cpu {
    let mut options = Options { threads, cache: CacheFolder::Nowhere, memory_bytes: 1 << 30, ahead: false, ..Options::default() };
    set(&mut options);
    Cpu::new(options).unwrap()
}

/// LLVM text for every kernel: the state of its warp and the services by number.
const PRELUDE: &str = r#"
define internal ptr @service(ptr %w, i64 %i) alwaysinline {
  %s = load ptr, ptr %w
  %p = getelementptr ptr, ptr %s, i64 %i
  %f = load ptr, ptr %p
  ret ptr %f
}
define internal i64 @param(ptr %w, i64 %i) alwaysinline {
  %pp = getelementptr ptr, ptr %w, i64 1
  %p = load ptr, ptr %pp
  %q = getelementptr i64, ptr %p, i64 %i
  %v = load i64, ptr %q
  ret i64 %v
}
define internal ptr @shared(ptr %w) alwaysinline {
  %pp = getelementptr ptr, ptr %w, i64 2
  %p = load ptr, ptr %pp
  ret ptr %p
}
define internal i32 @ctaid(ptr %w) alwaysinline {
  %p = getelementptr i8, ptr %w, i64 CTAID
  %v = load i32, ptr %p
  ret i32 %v
}
define internal i32 @first(ptr %w) alwaysinline {
  %p = getelementptr i8, ptr %w, i64 FIRST
  %v = load i32, ptr %p
  ret i32 %v
}
define internal void @pause(ptr %w) alwaysinline {
  %f = call ptr @service(ptr %w, i64 1)
  call void %f(ptr %w)
  ret void
}
define internal i32 @barrier(ptr %w, i32 %id, i32 %threads, i32 %kind, i32 %mask, i32 %preds) alwaysinline {
  %f = call ptr @service(ptr %w, i64 0)
  %r = call i32 %f(ptr %w, i32 %id, i32 %threads, i32 %kind, i32 %mask, i32 %preds)
  ret i32 %r
}
"#;

/// Compiles a kernel from LLVM text: the function `void @kernel(ptr %w)` and its helpers.
pub(crate) fn code(kind: Kind, text: &str) -> Code {
    let prelude = PRELUDE.replace("CTAID", &offset::CTAID.to_string()).replace("FIRST", &offset::FIRST.to_string());
    Code {
        object: object(&format!("{prelude}\n{text}")),
        kind,
        local_bytes: 0,
        kept_bytes: 0,
        stream_bytes: 0,
        shared_bytes: 0,
        variables: vec![],
        operations: vec![],
        sites: vec![],
        not_vectorised: None,
        loads: Accesses::default(),
        stores: Accesses::default(),
        proof: None,
        apart: vec![],
    }
}

/// Launches hand-written code.
pub(crate) fn launch(cpu: &Cpu, code: &Code, launch: &Launch, params: &[u64]) -> Result<()> {
    // SAFETY: the kernels of the tests follow the interface.
    unsafe { cpu.launch_code(&Arc::new(Ready::new("kernel", code.clone()).unwrap()), launch, params) }
}
