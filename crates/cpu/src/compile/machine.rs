//! LLVM's side of the compiler: which host it compiles for, which passes it runs, and the object file that comes out.

use super::emit::Host;
use inkwell::OptimizationLevel;
use inkwell::llvm_sys::support::LLVMParseCommandLineOptions;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{
    CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetMachine, TargetMachineOptions, TargetTriple,
};
use std::ffi::CStr;
use std::sync::OnceLock;

/// The machine that code is made for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Machine {
    /// LLVM's name of the system: `x86_64-unknown-linux-gnu`.
    pub triple: String,
    /// LLVM's name of the processor.
    pub cpu: String,
    /// LLVM's list of features: `+avx2,-avx512f`.
    pub features: String,
}

impl Machine {
    /// The machine that this runs on.
    pub fn host() -> &'static Machine {
        static HOST: OnceLock<Machine> = OnceLock::new();
        HOST.get_or_init(|| {
            let _inside = super::ending::enter();
            Machine {
                triple: TargetMachine::get_default_triple().as_str().to_string_lossy().into_owned(),
                cpu: TargetMachine::get_host_cpu_name().to_string(),
                features: TargetMachine::get_host_cpu_features().to_string(),
            }
        })
    }

    /// The host with vectors of at most 256 bits.
    pub fn avx2() -> Machine {
        Machine { cpu: "x86-64-v3".into(), features: String::new(), ..Machine::host().clone() }
    }

    /// The host with vectors of 128 bits and nothing newer than SSE 4.2.
    pub fn sse() -> Machine {
        Machine { cpu: "x86-64-v2".into(), features: String::new(), ..Machine::host().clone() }
    }

    /// A 64-bit ARM machine, to see that code can be made for it.
    pub fn aarch64() -> Machine {
        Machine { triple: "aarch64-unknown-linux-gnu".into(), cpu: "generic".into(), features: "+neon".into() }
    }

    pub(crate) fn facts(&self) -> Host {
        let has = |feature: &str| self.features.split(',').any(|word| word.strip_prefix('+') == Some(feature));
        let x86 = self.triple.starts_with("x86_64");
        Host {
            avx512: x86 && has("avx512f") && has("avx512bw") && has("avx512vl") && has("avx512dq"),
            conflicts: x86 && has("avx512f") && has("avx512cd") && has("avx512vpopcntdq"),
            wide_atomics: x86 && (has("cx16") || self.cpu.starts_with("x86-64-v")),
        }
    }

    pub(super) fn target_machine(&self, optimise: bool) -> Result<TargetMachine, String> {
        static READY: OnceLock<()> = OnceLock::new();
        READY.get_or_init(|| {
            Target::initialize_x86(&InitializationConfig::default());
            Target::initialize_aarch64(&InitializationConfig::default());
            set_up();
        });
        let triple = TargetTriple::create(&self.triple);
        let target = Target::from_triple(&triple).map_err(|error| error.to_string())?;
        let level = if optimise { OptimizationLevel::Default } else { OptimizationLevel::None };
        let options = TargetMachineOptions::default()
            .set_cpu(&self.cpu)
            .set_features(&self.features)
            .set_level(level)
            .set_reloc_mode(RelocMode::PIC)
            .set_code_model(CodeModel::Small);
        target.create_target_machine_from_options(&triple, options).ok_or_else(|| format!("LLVM has no machine `{}`", self.cpu))
    }
}

/// What LLVM does to a kernel before it emits it. Masks and shapes are found already; what is left is to combine what was emitted
/// naively, to hoist what does not change between warps, and to clean up.
const PASSES: &str = "function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,\
    loop-mssa(licm),gvn,instcombine<no-verify-fixpoint>,simplifycfg<sink-common-insts>,adce)";

/// What LLVM lets nobody set but by its command line. Its scheduler looks at all pairs of accesses to memory of a block until there are so
/// many: a kernel that stores thousands of single lanes in a row spends most of its time there, for no better order.
const SETTINGS: [&CStr; 3] = [c"broadloom", c"-dag-maps-huge-region=200", c"-dag-maps-reduction-size=100"];

fn set_up() {
    let words = SETTINGS.map(CStr::as_ptr);
    // SAFETY: the words live for ever, and so many are there. This is called once, before any other thread uses what is set.
    unsafe { LLVMParseCommandLineOptions(words.len() as i32, words.as_ptr(), std::ptr::null()) };
}

/// Checks a module, and runs the passes when it is optimised.
pub(crate) fn optimise(module: &Module<'_>, target: &TargetMachine, optimise: bool) -> Result<(), String> {
    module.verify().map_err(|error| format!("LLVM refuses the code made for it: {error}"))?;
    module.set_triple(&target.get_triple());
    module.set_data_layout(&target.get_target_data().get_data_layout());
    if optimise {
        module.run_passes(PASSES, target, PassBuilderOptions::create()).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// The object file of a module, or its assembly.
pub(crate) fn emit(module: &Module<'_>, target: &TargetMachine, assembly: bool) -> Result<Vec<u8>, String> {
    let kind = if assembly { FileType::Assembly } else { FileType::Object };
    let buffer = target.write_to_memory_buffer(module, kind).map_err(|error| error.to_string())?;
    Ok(buffer.as_slice().to_vec())
}
