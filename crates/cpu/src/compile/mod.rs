//! Compilation of a kernel to machine code for one block shape.
//!
//! Passes convert the kernel to SSA form and make all its branches uniform. A kernel that cannot run in
//! lockstep takes the slow path, one thread at a time. Then each instruction becomes LLVM code, and LLVM
//! produces an object file. Every verified kernel whose instructions the table calls general is translated. A
//! failure here is an internal error and is reported as one.
//!
//! The files form layers; each uses only those before it:
//!
//! | layer | files |
//! | --- | --- |
//! | LLVM, and facts about a function | `llvm`, `layout`, `lanes`, `nans`, `plan`, `state` |
//! | state of the function under translation, and the values of its registers | `emitter` |
//! | vectors, the runtime, operands | `vectors`, `lane_loop`, `runtime`, `special`, `operand`, `pieces` |
//! | instructions on registers | `integer`, `float`, `math`, `bits`, `compare`, `convert`, `evaluate`, `pure` |
//! | addresses | `address`, `pattern`, `roots`, `moves`, `bounds`, `far` |
//! | accesses to memory | `rows`, `quads`, `scattered`, `window`, `groups`, `pairs`, `compact`, `undivided`, `memory` |
//! | other instructions | `conflict`, `counters`, `atomic`, `cluster`, `warp`, `matrix`, `image`, `in_step`, `call` |
//! | functions | `instruction`, `product`, `abreast`, `blocks`, `warps`, `function` |

mod abreast;
mod address;
mod alike;
mod atomic;
mod bits;
mod blocks;
mod bounds;
mod call;
mod calls;
mod cluster;
mod compact;
mod compare;
mod conflict;
mod convert;
mod counters;
mod cpus;
mod emitter;
#[doc(hidden)]
pub mod ending;
mod error;
mod evaluate;
mod far;
mod float;
mod function;
mod groups;
mod image;
mod in_step;
mod instruction;
mod integer;
mod lane_loop;
mod lanes;
mod layout;
mod llvm;
mod machine;
mod math;
mod matrix;
mod memory;
mod moves;
mod nans;
mod operand;
mod options;
mod pairs;
mod pattern;
mod pieces;
mod plan;
mod prepare;
mod product;
mod progress;
mod pure;
mod quads;
mod roots;
mod rows;
mod runtime;
mod scattered;
mod special;
mod state;
mod undivided;
mod unit;
mod vectors;
mod warp;
mod warps;
mod window;

pub(crate) use ending::AbandonableCompilation;
pub use ending::{before_leaving, is_over, thread_ends};
pub use error::{CompileError, CompileFailure};
pub use machine::{Machine, MachineError};
pub use options::{Checks, CompileOptions};
pub(crate) use progress::Progress;

use crate::abi::Kind;
use crate::code::{AddressedItem, Code};
use broadloom_analysis::Proof;
use broadloom_ptx::{Func, Item, Module, Printer, Symbol};
use broadloom_transform::return_exits::addressed;
use calls::Frames;
use emitter::CallTarget;
use function::{EmitterOutput, Input};
use inkwell::context::Context;
use inkwell::module::Module as LlvmModule;
use layout::Layout;
use llvm::{Ir, Val};
use prepare::PreparedKernel;
use std::collections::BTreeMap;
use unit::Unit;

/// Stage of compilation, shown as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Kernel in SSA form with uniform branches. If it is not vectorised, the form that each of its threads
    /// runs.
    Linearised,
    /// LLVM code before its passes.
    Llvm,
    /// LLVM code after its passes.
    Optimised,
    /// Assembly code.
    Assembly,
}

/// Kernel for a block shape after Broadloom's own passes, ready for translation.
#[derive(Clone, Debug)]
pub struct Draft(PreparedKernel);

impl Draft {
    /// Runs the passes. The module's static variables stand at its top: see
    /// [`broadloom_transform::hoist_statics`].
    pub fn new(module: &Module, kernel: Func, block: [u32; 3], options: &CompileOptions) -> Result<Draft, CompileError> {
        let broken = |source| CompileError { kernel: module.functions[kernel].name.clone(), source };
        prepare::prepare(module, kernel, block, options).map(Draft).map_err(broken)
    }

    /// Returns the condition on launches that the code will assume.
    pub fn proof(&self) -> Option<&Proof> {
        self.0.proof.as_ref()
    }

    /// Returns the pairs of pointer parameters, by offset, that the code will assume to point to different
    /// buffers.
    pub fn apart(&self) -> Vec<(u64, u64)> {
        self.0.apart.iter().copied().collect()
    }

    /// Returns the reason why the kernel will not be vectorised; `None` if it will.
    pub fn not_vectorised(&self) -> Option<&str> {
        self.0.not_vectorised.as_deref()
    }

    /// Compiles the code. `module` and `options` are those that the passes were run with.
    pub fn compile(self, module: &Module, options: &CompileOptions) -> Result<Code, CompileError> {
        let name = &module.functions[self.0.kernel.func].name;
        let broken = |source| CompileError { kernel: name.clone(), source };
        let over = || broken(CompileFailure::ProcessEnds);
        // Entering may take until the process ends.
        let _inside = if is_over() { None } else { Some(ending::enter()) };
        if is_over() {
            return Err(over());
        }
        let context = Context::create();
        let has_one_thread = self.0.has_one_thread();
        progress::begin("translation to LLVM");
        let (llvm, mut code) = translate(&context, module, self.0, options).map_err(broken)?;
        progress::begin("LLVM's passes");
        let target = options.machine.target_machine(options.optimise).map_err(broken)?;
        machine::optimise(&llvm, &target, options.optimise, has_one_thread).map_err(broken)?;
        progress::begin("LLVM's machine code");
        code.object = machine::emit(&llvm, &target, false).map_err(broken)?;
        Ok(code)
    }
}

/// Compiles a kernel for a block shape. The module's static variables stand at its top: see
/// [`broadloom_transform::hoist_statics`].
pub fn compile(module: &Module, kernel: Func, block: [u32; 3], options: &CompileOptions) -> Result<Code, CompileError> {
    Draft::new(module, kernel, block, options)?.compile(module, options)
}

/// Returns the reason why a kernel is not vectorised; `None` if it is.
pub fn not_vectorised(
    module: &Module,
    kernel: Func,
    block: [u32; 3],
    options: &CompileOptions,
) -> Result<Option<String>, CompileError> {
    Ok(Draft::new(module, kernel, block, options)?.0.not_vectorised)
}

/// Returns a stage of a kernel's compilation as text.
pub fn show(
    module: &Module,
    kernel: Func,
    block: [u32; 3],
    options: &CompileOptions,
    stage: Stage,
) -> Result<String, CompileError> {
    let _inside = ending::enter();
    let context = Context::create();
    let name = &module.functions[kernel].name;
    let broken = |source| CompileError { kernel: name.clone(), source };
    let Draft(prepared) = Draft::new(module, kernel, block, options)?;
    if stage == Stage::Linearised {
        let changed = prepared.module.clone();
        let module = changed.as_ref().unwrap_or(module);
        return Ok(prepared.units().iter().map(|unit| Printer::new(module).body(&unit.function)).collect());
    }
    let has_one_thread = prepared.has_one_thread();
    let (llvm, _) = translate(&context, module, prepared, options).map_err(broken)?;
    if stage == Stage::Llvm {
        return Ok(llvm.print_to_string().to_string());
    }
    let target = options.machine.target_machine(options.optimise).map_err(broken)?;
    machine::optimise(&llvm, &target, options.optimise, has_one_thread).map_err(broken)?;
    match stage {
        Stage::Linearised | Stage::Llvm | Stage::Optimised => Ok(llvm.print_to_string().to_string()),
        Stage::Assembly => {
            let text = machine::emit(&llvm, &target, true).map_err(broken)?;
            Ok(String::from_utf8_lossy(&text).trim_end_matches('\0').to_owned())
        }
    }
}

fn translate<'c>(
    context: &'c Context,
    module: &Module,
    mut prepared: PreparedKernel,
    options: &CompileOptions,
) -> Result<(LlvmModule<'c>, Code), CompileFailure> {
    let (kind, kernel, block) = (prepared.kind, prepared.kernel.func, prepared.runs);
    let (not_vectorised, changed, proof) = (prepared.not_vectorised.take(), prepared.module.take(), prepared.proof.take());
    let apart = prepared.apart.iter().copied().collect();
    let (module, vector) = (changed.as_ref().unwrap_or(module), kind != Kind::Threads);
    let units = prepared.units();
    let mut table: Vec<Symbol> = vec![];
    let mut shared = layout::SharedVariables::default();
    let mut layouts: Vec<Layout> =
        units.iter().map(|unit| Layout::new(module, &unit.function, vector, &mut table, &mut shared)).collect();
    let frames =
        if vector { Frames::new(module, &units, &layouts, options.stack_bytes) } else { Frames { bytes: 0, limit: None } };
    if vector {
        layouts.iter_mut().for_each(|layout| layout.local_bytes = frames.bytes);
    }
    let llvm = context.create_module("kernel");
    let ir = Ir::new(context.raw(), llvm.as_mut_ptr());
    let functions = declare(&ir, &units, vector);
    let callees = callees(module, &units, &layouts, &functions);
    let cluster = crate::cluster::ClusterShape::of(&module.functions[kernel]);
    let mut output = EmitterOutput::default();
    let begin = |function: Val| {
        ir.begin(function);
        for (name, value) in [("target-cpu", &options.machine.cpu), ("target-features", &options.machine.features)] {
            ir.attribute(name, value);
        }
        ir.attribute("prefer-vector-width", "512");
        ir.attribute("probe-stack", "inline-asm");
        ir.attribute("no-builtins", "");
        if vector {
            // Spilled vectors lie within cache lines.
            ir.attribute("stackrealign", "");
        }
        if kind == Kind::Threads {
            // The runtime identifies the calls that a thread is in by its frame pointers.
            ir.attribute("frame-pointer", "all");
        }
        ir.known_attribute("nounwind");
        // An access to address 0 is an access like any other. Without this, LLVM removes the branch that
        // leads to it.
        ir.known_attribute("null_pointer_is_valid");
    };
    for ((function, unit), layout) in functions.iter().zip(&units).zip(&layouts) {
        begin(*function);
        let input = Input {
            ir: &ir,
            module,
            function: &unit.function,
            shapes: &unit.shapes,
            host: options.machine.facts(),
            block,
            kind,
            layout,
            callees: &callees,
            cluster,
            stack_limit: frames.limit,
            polls: &unit.polls,
            checks: options.checks,
        };
        output = function::emit(input, output).map_err(|error| CompileFailure::Untranslated(error.0))?;
    }
    for (product, function) in &output.products {
        begin(*function);
        ir.known_attribute("noinline");
        product::emit(&ir, product);
    }
    let named = |symbol: Symbol| match symbol {
        Symbol::Var(var) => AddressedItem::Variable(var),
        Symbol::Local(var) => AddressedItem::Local(kernel, var),
        Symbol::Func(func) => AddressedItem::Function(func),
    };
    let code = Code {
        object: vec![],
        kind,
        local_bytes: frames.bytes,
        kept_bytes: output.kept_bytes,
        stream_bytes: output.stream_bytes,
        shared_bytes: shared.bytes(),
        variables: table.into_iter().map(named).collect(),
        operations: output.rare,
        sites: output.sites,
        not_vectorised,
        loads: output.loads,
        stores: output.stores,
        proof,
        apart,
    };
    drop(ir);
    Ok((llvm, code))
}

/// Declares the kernel, under its exported name, and the functions that it calls.
fn declare(ir: &Ir, units: &[Unit], vector: bool) -> Vec<Val> {
    let declare = |(index, unit): (usize, &Unit)| {
        let name = format!("f{}", unit.func.as_u32());
        match (index, vector) {
            (0, _) => ir.declare("kernel", 1, true),
            (_, true) => ir.declare_in_step(&name),
            (_, false) => ir.declare(&name, 3, false),
        }
    };
    units.iter().enumerate().map(declare).collect()
}

/// Returns the functions that can be called, under all their names.
fn callees(module: &Module, units: &[Unit], layouts: &[Layout], functions: &[Val]) -> BTreeMap<Func, CallTarget> {
    if units.len() < 2 {
        return BTreeMap::new();
    }
    let addressed = addressed(module);
    let target = |((unit, layout), function): ((&Unit, &Layout), &Val)| {
        let is_addressed = addressed.contains(&unit.func);
        (unit.func, CallTarget { function: *function, frame_bytes: layout.frame_bytes, is_addressed })
    };
    let mut callees: BTreeMap<Func, CallTarget> = units.iter().zip(layouts).zip(functions).skip(1).map(target).collect();
    for item in &module.items {
        if let Item::Alias(alias) = item
            && let Some(target) = callees.get(&alias.aliasee).copied()
        {
            callees.insert(alias.alias, target);
        }
    }
    callees
}
