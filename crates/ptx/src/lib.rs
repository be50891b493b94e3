//! PTX in memory and as text: the waist of Broadloom.
//!
//! Every front end emits a [`Module`], and every executor runs one. The parts:
//!
//! - [`table`]: one row per instruction, from which all other knowledge of instructions derives;
//! - [`Module`], [`Function`], [`InstData`]: the code in memory, typed IDs into tables, in one of two forms
//!   ([`BodyForm`]);
//! - [`parse`]: converts text to a module, reports several diagnostics and never panics;
//! - [`print`](print()): converts a module to text that NVIDIA's tools accept; `parse ∘ print = id`;
//! - [`verify`](verify::verify): the checks that executors rely on; they accept only a [`Verified`] module;
//! - [`builder`]: the interface with which front ends emit kernels.
//!
//! Invariants: this crate knows no device, no LLVM and no front end. A [`Verified`] module never makes an
//! executor panic. An executor may only refuse an instruction with its location.
//!
//! Hidden modules are public for the tests of this crate alone.

pub mod builder;
mod ids;
mod inst;
mod lines;
#[doc(hidden)]
pub mod literal;
mod module;
mod operands;
pub mod parse;
mod print;
mod reach;
mod reference;
pub mod select;
pub mod table;
mod types;
pub mod verify;

pub use ids::{Block, Func, Inst, Loc, Proto, Reg, Targets, Var};
pub use inst::{
    Address, Base, Call, Callee, Guard, Imm, InstData, Mnemonic, Modifiers, Operand, Selector, Symbol, TextureOperand,
};
pub use lines::{Line, Lines};
pub use module::{
    Alias, BlockData, BodyForm, Directive, Edge, FileEntry, Function, Init, Inlined, Item, Linkage, LocData, Module, Param,
    PointerInfo, RegData, Section, Signature, Target, TargetList, Variable,
};
pub use operands::{Mention, MentionMut};
pub use parse::parse;
pub use print::{Printer, print};
pub use reach::Reach;
pub use reference::reference_page;
pub use table::{Class, Effects, Exactness, Form, FormId, Modifier, Opcode, Row, Scope, Special};
pub use types::{IsaVersion, Space, Type, TypeKind};
pub use verify::{Verified, verify, verify_function};
