//! The verifier: properties that executors may rely on.
//!
//! [`verify`] takes any module and returns a [`Verified`] one or all errors. Executors accept only verified
//! modules. NVIDIA's assembler is the reference: code that it accepts is accepted here, except for the cases
//! listed below.
//!
//! # What is checked
//!
//! Structure (`ids`, `names`, `blocks`):
//! - every ID is valid; parameters are variables in `.param` or registers; no instruction or block occurs
//!   twice;
//! - the items of the module name every variable once, every body once, and nothing else;
//! - names can be written in PTX; no two objects of the module share a name, nor two objects of a function;
//! - a control instruction ends its block; branch targets are in the layout and have a label; a function with
//!   a body has a block, one without a body has none. Control may fall off the end, which is a `ret`.
//!
//! Header (`header`): the version supports the target; the version and the target support all forms and
//! special registers; addresses have 32 or 64 bits.
//!
//! Instructions (`instruction`, `operand`, `agree`, `memory`, `call`, `range`):
//! - modifiers are in the slots of the form and among their choices; operands have the shapes of the form;
//! - registers have the kind and width of the operand: untyped bits match everything of the same width,
//!   signed and unsigned match each other, floats match floats of the same format, predicates only
//!   predicates; wider registers are allowed only where the form says so;
//! - immediates are of the operand's kind: integers of any size for integers and bits, `f32` for `f32` and
//!   `b32`, `f64` for `f64` and `b64`, none for halves and packed types; numbers of barriers, bit fields and
//!   events are in their range;
//! - vectors have the form's number of elements, all of the same width; parts together are as wide as the
//!   whole;
//! - `_` and special registers occur only where the form allows them, special registers with their own width;
//! - guards are predicates; parts of registers (`.b0`) and minus signs occur only in video instructions;
//! - an address is a variable of the instruction's space, or an integer register as wide as the space needs;
//!   a number alone is allowed only in `.local`; a constant offset keeps the access aligned where the
//!   variable's alignment decides it;
//! - inputs of a function are not written, its results not read, addresses of arguments not taken;
//! - calls: the callee is a function, not a kernel; an indirect callee has a prototype; arguments and results
//!   agree with it in number, kind, size and alignment;
//! - textures and surfaces have a handle and coordinates.
//!
//! Functions (`function`): a kernel's parameters are in memory, complete, and within 4,352 bytes, or 32,764
//! bytes from version 8.1 and sm_70 on; several results of a function are in registers; directives are known,
//! positive, and allowed for the kernel or function; `.extern` has no body; an alias leads from a declaration
//! to a function of the same signature.
//!
//! Variables (`variable`): space, type, vector length, dimensions, alignment, linkage and attributes are
//! compatible; initialisers have the shape and type of the variable and occur only in `.global` and `.const`.
//!
//! Memory: constants within 64 KiB; static shared memory that one kernel names itself within 48 KiB, all of a
//! module within [`MAX_SHARED`]; local memory of a function within [`MAX_LOCAL`]; `.param` variables of a
//! function within [`MAX_PARAM`]; global memory within [`MAX_GLOBAL`].
//!
//! [`verify_function`] checks a single function, in the form that it claims, as passes produce it. In SSA
//! form (`ssa`) it also checks that edges agree with the code and arguments with block parameters; that each
//! register is written once, except for results of the function, which are never read; and that each use is
//! dominated by its definition. Versions and targets of instructions are not checked.
//!
//! # What is not checked
//!
//! - Initialisation of registers before reads, addresses in registers, offsets beyond the end of a variable,
//!   participation of all threads in barriers and shuffles: the interpreter's checking mode finds these.
//! - Opaque instructions beyond their IDs: executors refuse them.
//! - Shapes of matrix fragments and number of texture coordinates; debug sections; the `.file` of a `.loc`;
//!   `.pragma`.
//! - Shared memory that a kernel reaches through called functions.
//!
//! # Where the assembler takes more
//!
//! 16-bit registers and numbers with a decimal point as addresses or bits, predicates in braces of `mov`,
//! floats among the integers of a stored vector.

#[doc(hidden)]
pub mod agree;
mod blocks;
mod call;
pub mod codes;
mod function;
#[doc(hidden)]
pub mod header;
mod ids;
mod instruction;
mod memory;
mod names;
mod operand;
mod range;
mod ssa;
mod variable;

use crate::ids::Inst;
use crate::inst::InstData;
use crate::module::{BodyForm, Function, Module};
use crate::print::Printer;
use crate::table::{FormId, Special};
use broadloom_diag::{Code, Diagnostic, Diagnostics, Span};
use std::collections::HashSet;
use std::ops::Deref;

/// Maximum bytes of `.shared` variables of a module.
pub const MAX_SHARED: u64 = 64 << 20;
/// Maximum bytes of `.local` variables of a function, which is the limit of every GPU.
pub const MAX_LOCAL: u64 = 512 << 10;
/// Maximum bytes of `.param` variables of a function.
pub const MAX_PARAM: u64 = 1 << 20;
/// Maximum bytes of `.global` variables of a module.
pub const MAX_GLOBAL: u64 = 64 << 30;

/// Module that passed [`verify`]. Executors accept nothing else.
#[derive(Clone, Debug)]
pub struct Verified(Module);

impl Deref for Verified {
    type Target = Module;
    fn deref(&self) -> &Module {
        &self.0
    }
}

impl Verified {
    /// Returns the module, which may then be changed again.
    pub fn into_module(self) -> Module {
        self.0
    }
}

/// Verifies a module: see the [list of checks](self).
pub fn verify(module: Module) -> Result<Verified, Diagnostics> {
    let mut checker = Checker::new(&module);
    checker.ids();
    if let Some(function) = module.functions.values().find(|function| function.form != BodyForm::Registers) {
        let message = format!("`{}` is not in the form of registers", function.name);
        checker.report(codes::BAD_SSA, message, function.span, "");
    }
    // All checks after this line index tables without checking IDs.
    if !checker.diagnostics.has_errors() {
        checker.header();
        checker.names();
        checker.variables();
        checker.functions();
    }
    if checker.diagnostics.has_errors() { Err(checker.diagnostics) } else { Ok(Verified(module)) }
}

/// Verifies a function derived from one of a module: see the [list of checks](self).
pub fn verify_function(module: &Module, function: &Function) -> Result<(), Diagnostics> {
    let mut checker = Checker::new(module);
    checker.any_version = true;
    checker.function_ids(function);
    if !checker.diagnostics.has_errors() {
        checker.function(function);
    }
    if checker.diagnostics.has_errors() { Err(checker.diagnostics) } else { Ok(()) }
}

/// State of a module's verification.
struct Checker<'m> {
    module: &'m Module,
    diagnostics: Diagnostics,
    /// Forms and special registers whose version was already reported.
    told_forms: HashSet<FormId>,
    told_specials: HashSet<Special>,
    /// True if instructions may be newer than the module's version.
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

    /// Reports an error at a location of the text, if it has one.
    fn report(&mut self, code: Code, message: String, span: Span, label: &str) {
        self.push(Diagnostic::error(code, message), span, label);
    }

    fn push(&mut self, diagnostic: Diagnostic, span: Span, label: &str) {
        let placed = if span.is_synthetic() { diagnostic } else { diagnostic.at(span, label) };
        self.diagnostics.push(placed);
    }
}

/// State of a function's verification.
struct BodyChecker<'c, 'm> {
    checker: &'c mut Checker<'m>,
    module: &'m Module,
    function: &'m Function,
}

impl BodyChecker<'_, '_> {
    /// Reports an error of an instruction. Without a location in the text, the instruction itself is shown.
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

/// Returns `a` or `an` according to the pronunciation of a word: `.f32` is "eff", `.u32` is "you".
fn article(word: &str) -> &'static str {
    match word.trim_start_matches('.').chars().next() {
        Some('f' | 's' | 'a' | 'e' | 'i' | 'o') => "an",
        _ => "a",
    }
}
