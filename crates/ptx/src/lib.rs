//! PTX in memory and as text: the waist of Broadloom.
//!
//! Every front end emits a [`Module`], every executor runs one. The pieces:
//!
//! - [`table`]: one row per instruction, from which everything else that knows instructions derives;
//! - [`Module`], [`Function`], [`InstData`]: the code in memory, typed ids into tables, in one of two forms ([`BodyForm`]);
//! - [`parse`]: text to module, with several diagnostics and never a panic;
//! - [`print`](print()): module to text that NVIDIA's tools take; `parse ∘ print = id`;
//! - [`verify`](verify::verify): the checks that executors rely on; they take nothing but a [`Verified`] module;
//! - [`builder`]: how front ends write kernels.
//!
//! Invariants: this crate knows no device, no LLVM and no front end. A [`Verified`] module never makes an executor panic:
//! executors may refuse an instruction with its place, nothing else.

pub mod builder;
mod inst;
mod lines;
mod literal;
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

pub use inst::{
    Address, Base, Call, Callee, Guard, Imm, InstData, Mnemonic, Modifiers, Operand, Selector, Symbol, TextureOperand,
};
pub use lines::{Line, Lines};
pub use module::{
    Alias, Block, BlockData, BodyForm, Directive, Edge, FileEntry, Func, Function, Init, Inlined, Inst, Item, Linkage, Loc,
    LocData, Module, Param, PointerInfo, Proto, Reg, RegData, Section, Signature, Target, TargetList, Targets, Var, Variable,
};
pub use operands::{Mention, MentionMut};
pub use parse::parse;
pub use print::{Printer, print};
pub use reach::Reach;
pub use reference::reference_page;
pub use table::{Class, Effects, Exactness, Form, FormId, Modifier, Opcode, Row, Scope, Special};
pub use types::{IsaVersion, Space, Type, TypeKind};
pub use verify::{Verified, verify, verify_function};
