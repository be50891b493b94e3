//! Pipeline: the passes in order, from PTX as written to simplified SSA form, and back to registers.
//!
//! A stage is a few passes with a name for their result, under which `broadloom explain --emit` shows it.
//! After every pass the function is verified, always in debug builds and on request in others, and a pass
//! that breaks it is named.

use crate::facts::Facts;
use crate::{
    Broken, check, fold, fold_ranges, from_ssa, if_convert, inline_calls, linearise, lower_branches, lower_carry, lower_copies,
    nest_loops, promote_locals, remove_dead, share, sink_stores, split_at_barriers, store_results, to_ssa, unify_exits,
};
use broadloom_diag::Diagnostics;
use broadloom_ptx::{Func, Function, Module};

/// Pass: its name, and the function that runs it on a function of a module.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Name, which is that of its file.
    pub name: &'static str,
    /// Runs the pass. It rejects unknown instructions; `linearise` also rejects code that cannot run in
    /// lockstep.
    pub run: fn(&Module, &mut Function, &Facts) -> Result<(), Diagnostics>,
}

/// Group of passes, with a name for their result.
#[derive(Clone, Copy, Debug)]
pub struct Stage {
    /// Name of the result.
    pub name: &'static str,
    /// Summary of the result, in one line.
    pub summary: &'static str,
    /// Passes in order.
    pub passes: &'static [Pass],
}

/// Defines a pass that never fails.
macro_rules! always {
    ($pass:ident($($facts:ident)?)) => {
        Pass {
            name: $pass::NAME,
            run: |module, function, _facts| {
                $pass::run(module, function $(, { let $facts = _facts; $facts })?);
                Ok(())
            },
        }
    };
}

/// Defines the passes and the list of all of them.
macro_rules! passes {
    ($($constant:ident = $pass:expr;)*) => {
        $(const $constant: Pass = $pass;)*

        /// All passes, for lookup by name.
        pub const PASSES: &[Pass] = &[$($constant),*];
    };
}

passes! {
    INLINE_CALLS = always!(inline_calls());
    PROMOTE_LOCALS = always!(promote_locals());
    LOWER_CARRY = always!(lower_carry());
    LOWER_COPIES = always!(lower_copies());
    LOWER_BRANCHES = always!(lower_branches());
    TO_SSA = Pass { name: to_ssa::NAME, run: |module, function, _| to_ssa::run(module, function) };
    FOLD = always!(fold(facts));
    FOLD_RANGES = always!(fold_ranges(facts));
    SHARE = always!(share());
    IF_CONVERT = always!(if_convert());
    REMOVE_DEAD = always!(remove_dead());
    SINK_STORES = always!(sink_stores());
    UNIFY_EXITS = always!(unify_exits());
    NEST_LOOPS = always!(nest_loops());
    LINEARISE = Pass { name: linearise::NAME, run: linearise::run_with };
    SPLIT_AT_BARRIERS = always!(split_at_barriers());
    STORE_RESULTS = always!(store_results());
    FROM_SSA = always!(from_ssa());
}

/// Stages from PTX to the SSA form that code is generated from.
pub const STAGES: &[Stage] = &[
    Stage { name: "inlined", summary: "few calls, little local memory", passes: &[INLINE_CALLS, PROMOTE_LOCALS] },
    Stage {
        name: "lowered",
        summary: "no carry flag, no copy that goes on, no branch but to one label",
        passes: &[LOWER_CARRY, LOWER_COPIES, LOWER_BRANCHES],
    },
    Stage { name: "ssa", summary: "every register written once", passes: &[TO_SSA] },
    Stage {
        name: "folded",
        summary: "what is known is computed, what is dead is gone",
        passes: &[FOLD, FOLD_RANGES, FOLD, REMOVE_DEAD],
    },
    Stage { name: "shared", summary: "nothing computed twice", passes: &[SHARE] },
    Stage { name: "converted", summary: "small branches are selections", passes: &[IF_CONVERT] },
    Stage { name: "cleaned", summary: "what that left over folded and shared again", passes: &[FOLD, SHARE, REMOVE_DEAD] },
];

/// Stage back to PTX that can be printed, parsed and run.
pub const BACK: Stage = Stage { name: "registers", summary: "legal PTX again", passes: &[FROM_SSA] };

/// Returns the passes of [`STAGES`], in order. For a function that vector code calls, its results are stored
/// to memory right after the conversion to SSA form, and it has one exit.
pub fn passes(called: bool) -> impl Iterator<Item = Pass> {
    let behind = move |pass: &Pass| (called && pass.name == TO_SSA.name).then_some(STORE_RESULTS);
    let stages = STAGES.iter().flat_map(|stage| stage.passes);
    stages.flat_map(move |pass| [Some(*pass), behind(pass)]).flatten().chain(called.then_some(UNIFY_EXITS))
}

/// Returns the pass with a name.
pub fn pass(name: &str) -> Option<Pass> {
    PASSES.iter().copied().find(|pass| pass.name == name)
}

/// Reason why a pipeline failed.
#[derive(Clone, Debug)]
pub enum Failure {
    /// Code that a pass rejects, each with its span.
    Refused(Diagnostics),
    /// A pass left the function invalid: an internal error.
    Broken(Broken),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Refused(diagnostics) => diagnostics
                .iter()
                .enumerate()
                .try_for_each(|(index, diagnostic)| write!(f, "{}{}", if index > 0 { "\n" } else { "" }, diagnostic.message)),
            Failure::Broken(broken) => broken.fmt(f),
        }
    }
}

impl std::error::Error for Failure {}

/// Passes that are verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verification {
    /// All in debug builds, none in others.
    #[default]
    InDebug,
    /// All.
    Always,
}

impl Verification {
    fn wanted(self) -> bool {
        match self {
            Verification::InDebug => cfg!(debug_assertions),
            Verification::Always => true,
        }
    }
}

/// Runs one pass and verifies its result.
pub fn run_pass(
    pass: Pass,
    module: &Module,
    function: &mut Function,
    facts: &Facts,
    verify: Verification,
) -> Result<(), Failure> {
    (pass.run)(module, function, facts).map_err(Failure::Refused)?;
    if verify.wanted() { check(pass.name, module, function).map_err(Failure::Broken) } else { Ok(()) }
}

/// Runs stages on a function of a module and returns the result. `see` is called with the result of each
/// stage.
pub fn run_pipeline(
    module: &Module,
    func: Func,
    stages: &[Stage],
    facts: &Facts,
    verify: Verification,
    mut see: impl FnMut(&Stage, &Function),
) -> Result<Function, Failure> {
    let mut function = module.functions[func].clone();
    for stage in stages {
        for pass in stage.passes {
            run_pass(*pass, module, &mut function, facts, verify)?;
        }
        see(stage, &function);
    }
    Ok(function)
}

/// Runs one pass of a pipeline over several functions that are compiled together: calls to inline are
/// selected for all of them.
pub fn run_pass_with(
    pass: Pass,
    module: &Module,
    function: &mut Function,
    facts: &Facts,
    verify: Verification,
    choice: &mut inline_calls::Choice,
) -> Result<(), Failure> {
    if pass.name != inline_calls::NAME {
        return run_pass(pass, module, function, facts, verify);
    }
    inline_calls::run_chosen(module, function, choice);
    if verify.wanted() { check(pass.name, module, function).map_err(Failure::Broken) } else { Ok(()) }
}
