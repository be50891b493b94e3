//! The verifier: properties that executors may rely on.
//!
//! [`verify`] takes a module, whoever made it, and gives back a [`Verified`] one or everything that is wrong with it. Executors
//! take nothing else. NVIDIA's assembler is the judge of what is right: what it assembles is accepted, but for the oddities
//! named below.
//!
//! # What is checked
//!
//! Structure (`ids`, `names`, `blocks`):
//! - every id points into its table; parameters are variables in `.param` or registers; no instruction or block stands twice;
//! - the items of the module name every variable once, every body once, and nothing else;
//! - names are written as PTX can write them; no two things of the module, and none of a function, share one;
//! - a control instruction ends its block; what is branched to is in the layout and has a label; a function with a body has a
//!   block, one without has none. Control may fall off the end: that is a `ret`.
//!
//! Header (`header`): the version has the target; forms and special registers are no newer than the version and the target has
//! them; addresses have 32 or 64 bits.
//!
//! Instructions (`instruction`, `operand`, `agree`, `memory`, `call`, `range`):
//! - modifiers stand in the slots of the form and are among their choices; operands have the shapes of the form;
//! - registers have the kind and width of the operand: bits go with everything as wide, signed and unsigned with each other,
//!   floats with floats of the same format, predicates with predicates alone; wider registers only where the form says so;
//! - immediates are of the operand's kind: integers of any size for integers and bits, `f32` for `f32` and `b32`, `f64` for `f64`
//!   and `b64`, none for halves and packed types; numbers of barriers, bit fields and events are in their range;
//! - vectors have as many elements as the form says, all as wide as each other; parts together are as wide as the whole;
//! - `_` and special registers stand only where the form has a mark for them, special registers with their own width;
//! - guards are predicates; parts of registers (`.b0`) and minus signs stand in video instructions only;
//! - an address is a variable of the instruction's space, or an integer register as wide as the space needs; a bare number only
//!   in `.local`; a constant offset keeps the access aligned where the variable's alignment decides it;
//! - inputs of a function are not written, its results not read, addresses of arguments not taken;
//! - calls: the callee is a function and no kernel, an indirect one has a prototype; arguments and results agree with it in
//!   number, kind, size and alignment;
//! - textures and surfaces have a handle and coordinates.
//!
//! Functions (`function`): a kernel's parameters are in memory, complete, and within 4,352 bytes, from version 8.1 and sm_70 on
//! 32,764; several results of a function are registers; directives are known, positive, and allowed for a kernel or function;
//! `.extern` has no body; aliases lead from a declaration to a function of the same signature.
//!
//! Variables (`variable`): space, type, vector length, dimensions, alignment, linkage and attributes go together; first contents
//! have the shape and type of the variable and stand in `.global` or `.const` alone.
//!
//! Memory: constants within 64 KiB; static shared memory that one kernel names itself within 48 KiB, all of a module within
//! [`MAX_SHARED`]; local memory of a function within [`MAX_LOCAL`]; `.param` variables of a function within [`MAX_PARAM`];
//! global memory within [`MAX_GLOBAL`].
//!
//! [`verify_function`] checks a function alone, in the form that it claims, as passes leave it. In SSA form (`ssa`) also: edges
//! agree with the code and arguments with parameters of blocks; each register is written once, but for those that are results of
//! the function, which nobody reads; each use is dominated by the definition. Versions and targets of instructions do not count.
//!
//! # What is not checked
//!
//! - Whether registers are set before they are read, whether addresses in registers are right, whether offsets stay inside of a
//!   variable, barriers and shuffles reach all their threads: the interpreter's checking mode finds these.
//! - Opaque instructions beyond their ids: executors refuse them.
//! - Shapes of matrix fragments and number of texture coordinates; debug sections; `.loc` naming a `.file`; `.pragma`.
//! - Shared memory that a kernel reaches through the functions it calls.
//!
//! # Where the assembler takes more
//!
//! 16-bit registers and numbers with a decimal point as addresses or bits, predicates in braces of `mov`, floats among the
//! integers of a stored vector.

mod agree;
mod blocks;
mod call;
pub mod codes;
mod function;
mod header;
mod ids;
mod instruction;
mod memory;
mod names;
mod operand;
mod range;
mod ssa;
mod variable;

use crate::inst::InstData;
use crate::module::{BodyForm, Function, Inst, Module};
use crate::print::Printer;
use crate::table::{FormId, Special};
use broadloom_diag::{Code, Diagnostic, Diagnostics, Span};
use std::collections::HashSet;
use std::ops::Deref;

/// The most bytes of `.shared` variables of a module.
pub const MAX_SHARED: u64 = 64 << 20;
/// The most bytes of `.local` variables of a function: no GPU gives a thread more.
pub const MAX_LOCAL: u64 = 512 << 10;
/// The most bytes of `.param` variables of a function.
pub const MAX_PARAM: u64 = 1 << 20;
/// The most bytes of `.global` variables of a module.
pub const MAX_GLOBAL: u64 = 64 << 30;

/// A module that passed [`verify`]. Executors take nothing else.
#[derive(Clone, Debug)]
pub struct Verified(Module);

impl Deref for Verified {
    type Target = Module;
    fn deref(&self) -> &Module {
        &self.0
    }
}

impl Verified {
    /// The module, free to be changed again.
    pub fn into_module(self) -> Module {
        self.0
    }
}

/// Checks a module: see the [list of checks](self).
pub fn verify(module: Module) -> Result<Verified, Diagnostics> {
    let mut checker = Checker::new(&module);
    checker.ids();
    if let Some(function) = module.functions.values().find(|function| function.form != BodyForm::Registers) {
        let message = format!("`{}` is not in the form of registers", function.name);
        checker.report(codes::BAD_SSA, message, function.span, "");
    }
    // Everything behind this line follows ids without looking.
    if !checker.diagnostics.has_errors() {
        checker.header();
        checker.names();
        checker.variables();
        checker.functions();
    }
    if checker.diagnostics.has_errors() { Err(checker.diagnostics) } else { Ok(Verified(module)) }
}

/// Checks a function that is made from one of a module: see the [list of checks](self).
pub fn verify_function(module: &Module, function: &Function) -> Result<(), Diagnostics> {
    let mut checker = Checker::new(module);
    checker.any_version = true;
    checker.function_ids(function);
    if !checker.diagnostics.has_errors() {
        checker.function(function);
    }
    if checker.diagnostics.has_errors() { Err(checker.diagnostics) } else { Ok(()) }
}

/// A module while it is checked.
struct Checker<'m> {
    module: &'m Module,
    diagnostics: Diagnostics,
    /// Forms and special registers whose version was complained about: once is enough.
    told_forms: HashSet<FormId>,
    told_specials: HashSet<Special>,
    /// Whether instructions may be newer than the module says.
    any_version: bool,
}

impl<'m> Checker<'m> {
    fn new(module: &'m Module) -> Self {
        Checker {
            module,
            diagnostics: Diagnostics::new(),
            told_forms: HashSet::new(),
            told_specials: HashSet::new(),
            any_version: false,
        }
    }

    /// Notes something wrong at a place of the text, if it came from one.
    fn report(&mut self, code: Code, message: String, span: Span, label: &str) {
        self.push(Diagnostic::error(code, message), span, label);
    }

    fn push(&mut self, diagnostic: Diagnostic, span: Span, label: &str) {
        let placed = if span.is_synthetic() { diagnostic } else { diagnostic.at(span, label) };
        self.diagnostics.push(placed);
    }
}

/// A function while it is checked.
struct Body<'c, 'm> {
    checker: &'c mut Checker<'m>,
    module: &'m Module,
    function: &'m Function,
}

impl Body<'_, '_> {
    /// Notes something wrong with an instruction; without a place in a text, the instruction itself is shown.
    fn report(&mut self, inst: Inst, code: Code, message: String, label: &str) {
        self.push(inst, Diagnostic::error(code, message), label);
    }

    fn push(&mut self, inst: Inst, diagnostic: Diagnostic, label: &str) {
        let data: &InstData = &self.function.insts[inst];
        let diagnostic = if data.span.is_synthetic() {
            let text = Printer::new(self.module).instruction(self.function, inst);
            diagnostic.note(format!("in `{}`: `{text}`", self.function.name))
        } else {
            diagnostic
        };
        self.checker.push(diagnostic, data.span, label);
    }
}

/// `a` or `an` before a word as it is spoken: `.f32` is "eff", `.u32` is "you".
fn article(word: &str) -> &'static str {
    match word.trim_start_matches('.').chars().next() {
        Some('f' | 's' | 'a' | 'e' | 'i' | 'o') => "an",
        _ => "a",
    }
}
