//! LLVM side of the compiler: the target machine, the passes, and the resulting object file.

use super::cpus;
use super::error::CompileFailure;
use inkwell::OptimizationLevel;
use inkwell::llvm_sys::support::LLVMParseCommandLineOptions;
#[cfg(any(debug_assertions, target_arch = "aarch64"))]
use inkwell::llvm_sys::target::{
    LLVMInitializeAArch64AsmPrinter, LLVMInitializeAArch64Target, LLVMInitializeAArch64TargetInfo, LLVMInitializeAArch64TargetMC,
};
#[cfg(any(debug_assertions, target_arch = "x86_64"))]
use inkwell::llvm_sys::target::{
    LLVMInitializeX86AsmPrinter, LLVMInitializeX86Target, LLVMInitializeX86TargetInfo, LLVMInitializeX86TargetMC,
};
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{CodeModel, FileType, RelocMode, Target, TargetMachine, TargetMachineOptions, TargetTriple};
use std::ffi::CStr;
use std::sync::OnceLock;

/// Machine that code is compiled for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Machine {
    /// LLVM's target triple: `x86_64-unknown-linux-gnu`.
    pub triple: String,
    /// LLVM's name of the processor.
    pub cpu: String,
    /// LLVM's list of features: `+avx2,-avx512f`.
    pub features: String,
}

/// Invalid name of a machine, or machine that is not the host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MachineError {
    /// Invalid value of the environment variable.
    #[error("{VARIABLE}={0}: {1}")]
    Variable(String, #[source] Box<MachineError>),
    /// Host of another architecture.
    #[error("this host is not an x86-64 CPU; unset the variable")]
    OtherHost,
    /// LLVM knows no processor of this name.
    #[error("no CPU `{0}` is known; known are {known}", known = cpus::names().collect::<Vec<_>>().join(", "))]
    UnknownCpu(String),
    /// LLVM knows no feature of this name.
    #[error("no feature `{0}` is known")]
    UnknownFeature(String),
    /// Feature without a sign.
    #[error("`{0}` is not a feature with `+` or `-` before it")]
    Sign(String),
    /// Features that the host lacks: CPU and list.
    #[error("code for `{0}` needs {1}, which this host lacks")]
    MissingFeatures(String, String),
}

/// Environment variable that names the CPU to compile for: see [`Machine::named`].
const VARIABLE: &str = "BROADLOOM_CPU";

impl Machine {
    /// Returns the machine that code is compiled for by default: the CPU of `BROADLOOM_CPU` without the
    /// features that this host lacks, or this host.
    pub fn host() -> &'static Machine {
        static HOST: OnceLock<Machine> = OnceLock::new();
        HOST.get_or_init(|| match Machine::told() {
            Ok(Some(told)) => told.within(Machine::detected()),
            Ok(None) | Err(_) => Machine::detected().clone(),
        })
    }

    /// Returns the machine that this process runs on.
    pub fn detected() -> &'static Machine {
        static DETECTED: OnceLock<Machine> = OnceLock::new();
        DETECTED.get_or_init(|| {
            let _inside = super::ending::enter();
            Machine {
                triple: TargetMachine::get_default_triple().as_str().to_string_lossy().into_owned(),
                cpu: TargetMachine::get_host_cpu_name().to_string(),
                features: TargetMachine::get_host_cpu_features().to_string(),
            }
        })
    }

    /// Returns the CPU that `BROADLOOM_CPU` names, with all its features.
    pub fn told() -> Result<Option<&'static Machine>, MachineError> {
        static TOLD: OnceLock<Result<Option<Machine>, MachineError>> = OnceLock::new();
        let told = TOLD.get_or_init(|| match std::env::var_os(VARIABLE) {
            Some(text) if !text.is_empty() => {
                let text = text.to_string_lossy();
                let named = if Machine::detected().is_x86() { Machine::named(&text) } else { Err(MachineError::OtherHost) };
                named.map(Some).map_err(|error| MachineError::Variable(text.into_owned(), Box::new(error)))
            }
            Some(_) | None => Ok(None),
        });
        told.as_ref().map(Option::as_ref).map_err(Clone::clone)
    }

    /// Returns an x86-64 CPU by LLVM's name, with features added or removed: `haswell`, `znver4,-sse4a`.
    pub fn named(text: &str) -> Result<Machine, MachineError> {
        let mut words = text.split(',').map(str::trim);
        let cpu = words.next().unwrap_or_default();
        let mut features = cpus::features(cpu).ok_or_else(|| MachineError::UnknownCpu(cpu.to_owned()))?;
        let mut absent = vec![];
        for word in words {
            let feature = |name: &str| cpus::feature(name).ok_or_else(|| MachineError::UnknownFeature(name.to_owned()));
            if let Some(name) = word.strip_prefix('+') {
                cpus::add(&mut features, feature(name)?);
                absent.retain(|absent| !features.contains(absent));
            } else if let Some(name) = word.strip_prefix('-') {
                absent.extend(cpus::remove(&mut features, feature(name)?));
            } else {
                return Err(MachineError::Sign(word.to_owned()));
            }
        }
        Ok(Machine::x86(cpu, &features, &absent))
    }

    /// Builds a machine. Removed features stand last, because an added feature brings along those that it
    /// requires.
    fn x86(cpu: &str, features: &[&str], absent: &[&str]) -> Machine {
        let detected = Machine::detected();
        let triple = if detected.is_x86() { detected.triple.clone() } else { "x86_64-unknown-linux-gnu".into() };
        let words = features.iter().map(|name| format!("+{name}")).chain(absent.iter().map(|name| format!("-{name}")));
        Machine { triple, cpu: cpu.into(), features: words.collect::<Vec<_>>().join(",") }
    }

    fn is_x86(&self) -> bool {
        self.triple.starts_with("x86_64")
    }

    /// Returns whether code may use a feature, by its LLVM name.
    pub fn has(&self, feature: &str) -> bool {
        let word = self.features.split(',').rev().find(|word| word.strip_prefix(['+', '-']) == Some(feature));
        word.is_some_and(|word| word.starts_with('+'))
    }

    /// Returns the features that code for this machine may use and `host` lacks.
    pub fn beyond(&self, host: &Machine) -> Vec<&str> {
        let present = self.features.split(',').filter_map(|word| word.strip_prefix('+')).filter(|name| self.has(name));
        present.filter(|name| !host.has(name)).collect()
    }

    /// Returns an error if code for this machine cannot run on this host, or if `BROADLOOM_CPU` names no
    /// machine.
    pub fn runs_here(&self) -> Result<(), MachineError> {
        Machine::told()?;
        match self.beyond(Machine::detected()).as_slice() {
            [] => Ok(()),
            missing => Err(MachineError::MissingFeatures(self.cpu.clone(), missing.join(", "))),
        }
    }

    /// Returns this x86-64 CPU without the features that `host` lacks.
    #[doc(hidden)]
    pub fn within(&self, host: &Machine) -> Machine {
        let present = self.features.split(',').filter_map(|word| cpus::feature(word.strip_prefix('+')?));
        let mut features: Vec<&str> = present.filter(|name| self.has(name)).collect();
        let mut absent: Vec<&str> = self.features.split(',').filter_map(|word| word.strip_prefix('-')).collect();
        for name in self.beyond(host).into_iter().filter_map(cpus::feature) {
            absent.extend(cpus::remove(&mut features, name));
        }
        absent.retain(|name| !features.contains(name));
        Machine::x86(&self.cpu, &features, &absent)
    }

    /// Returns the CPU of `BROADLOOM_CPU` with the features that this host lacks, if `self` is that CPU
    /// without them. Code for it can be compiled and inspected, but not run.
    pub(crate) fn whole(&self) -> Option<&'static Machine> {
        let told = Machine::told().ok()??;
        (self == Machine::host() && self != told).then_some(told)
    }

    /// Returns a machine with vectors of at most 256 bits, for any host that has them.
    pub fn avx2() -> Machine {
        Machine::level("x86-64-v3")
    }

    /// Returns a machine with vectors of 128 bits and nothing newer than SSE 4.2, for any host that has them.
    pub fn sse() -> Machine {
        Machine::level("x86-64-v2")
    }

    fn level(name: &str) -> Machine {
        Machine::x86(name, &cpus::features(name).unwrap_or_default(), &[])
    }

    /// Returns a 64-bit ARM machine, to check that code can be compiled for it.
    pub fn aarch64() -> Machine {
        Machine { triple: "aarch64-unknown-linux-gnu".into(), cpu: "generic".into(), features: "+neon".into() }
    }

    #[doc(hidden)]
    pub fn facts(&self) -> Host {
        let x86 = self.is_x86();
        Host {
            avx512: x86 && ["avx512f", "avx512bw", "avx512vl", "avx512dq"].iter().all(|name| self.has(name)),
            conflicts: x86 && ["avx512f", "avx512cd", "avx512vpopcntdq"].iter().all(|name| self.has(name)),
            wide_atomics: x86 && self.has("cx16"),
        }
    }

    pub(super) fn target_machine(&self, optimise: bool) -> Result<TargetMachine, CompileFailure> {
        static READY: OnceLock<()> = OnceLock::new();
        READY.get_or_init(|| {
            initialise();
            set_up();
        });
        let triple = TargetTriple::create(&self.triple);
        let target = Target::from_triple(&triple).map_err(CompileFailure::llvm)?;
        let level = if optimise { OptimizationLevel::Default } else { OptimizationLevel::None };
        let options = TargetMachineOptions::default()
            .set_cpu(&self.cpu)
            .set_features(&self.features)
            .set_level(level)
            .set_reloc_mode(RelocMode::PIC)
            .set_code_model(CodeModel::Small);
        target
            .create_target_machine_from_options(&triple, options)
            .ok_or_else(|| CompileFailure::UnknownMachine(self.cpu.clone()))
    }
}

/// Initialises LLVM's targets. Parsers and disassemblers are not linked. Code for 64-bit ARM can be compiled
/// on that machine, and in debug builds, whose tests check it.
fn initialise() {
    #[cfg(any(debug_assertions, target_arch = "x86_64"))]
    // SAFETY: may be called at any time; this is called once.
    unsafe {
        LLVMInitializeX86TargetInfo();
        LLVMInitializeX86Target();
        LLVMInitializeX86TargetMC();
        LLVMInitializeX86AsmPrinter();
    }
    #[cfg(any(debug_assertions, target_arch = "aarch64"))]
    // SAFETY: as above.
    unsafe {
        LLVMInitializeAArch64TargetInfo();
        LLVMInitializeAArch64Target();
        LLVMInitializeAArch64TargetMC();
        LLVMInitializeAArch64AsmPrinter();
    }
}

/// LLVM passes that run on a kernel. Masks and shapes are already computed. The passes combine naively
/// emitted code, hoist what does not change between warps, and clean up.
const PASSES: &str = "function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,\
    loop-mssa(licm),gvn,instcombine<no-verify-fixpoint>,simplifycfg<sink-common-insts>,adce)";

/// LLVM passes that run on a kernel for blocks of one thread, which is scalar code with plain loops and calls. These
/// are LLVM's own: loops are turned, unrolled and vectorised, and arguments of functions are passed in registers.
const PASSES_FOR_ONE_THREAD: &str = "default<O2>";

/// Settings that LLVM accepts only on its command line.
///
/// - The scheduler compares all pairs of memory accesses of a block, up to a limit on their number. A kernel
///   that stores thousands of single lanes in a row would spend most of its compile time there, without a
///   better order.
/// - `CodeGenPrepare` restarts at the first block after each change, unless a function has more blocks than
///   this. It then visits only what it has changed, with the same resulting code. A kernel of Thrust has
///   hundreds of blocks and would spend a quarter of its compile time there.
const SETTINGS: [&CStr; 4] = [c"broadloom", c"-dag-maps-huge-region=200", c"-dag-maps-reduction-size=100", c"-cgpp-huge-func=40"];

fn set_up() {
    let words = SETTINGS.map(CStr::as_ptr);
    // SAFETY: the words live for ever and `words.len()` is their number. This is called once, before any
    // other thread uses the settings.
    unsafe { LLVMParseCommandLineOptions(words.len() as i32, words.as_ptr(), std::ptr::null()) };
}

/// Verifies a module, and runs the passes if it is to be optimised. `has_one_thread` is set for a kernel on the slow path
/// whose blocks have one thread.
pub(crate) fn optimise(
    module: &Module<'_>,
    target: &TargetMachine,
    optimise: bool,
    has_one_thread: bool,
) -> Result<(), CompileFailure> {
    module.verify().map_err(CompileFailure::llvm)?;
    module.set_triple(&target.get_triple());
    module.set_data_layout(&target.get_target_data().get_data_layout());
    if optimise {
        let passes = if has_one_thread { PASSES_FOR_ONE_THREAD } else { PASSES };
        module.run_passes(passes, target, PassBuilderOptions::create()).map_err(CompileFailure::llvm)?;
    }
    Ok(())
}

/// Returns the object file of a module, or its assembly.
pub(crate) fn emit(module: &Module<'_>, target: &TargetMachine, assembly: bool) -> Result<Vec<u8>, CompileFailure> {
    let kind = if assembly { FileType::Assembly } else { FileType::Object };
    let buffer = target.write_to_memory_buffer(module, kind).map_err(CompileFailure::llvm)?;
    Ok(buffer.as_slice().to_vec())
}

/// Host features that LLVM does not use by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// 512-bit vectors with masks.
    pub avx512: bool,
    /// Detection of equal lanes in a vector with one instruction.
    pub conflicts: bool,
    /// Atomics of 128 bits.
    pub wide_atomics: bool,
}
