//! A module of PTX in memory.
//!
//! Typed ids into tables: registers, blocks and instructions belong to a [`Function`], variables and functions to the
//! [`Module`]. Scopes of the text are gone: names are unique within their function, those that were not got a suffix.
//! A block is a run of instructions of which only the last may be a control instruction; control falls from one block to
//! the next in [`Function::layout`] unless the last instruction is a jump, return or exit without a guard. `.loc` and
//! `.pragma` stand beside the code. That is the form of legal PTX; passes work on SSA form, see [`BodyForm`].

use crate::inst::{Imm, InstData, Operand, Symbol};
use crate::types::{IsaVersion, Space, Type};
use broadloom_diag::Span;
use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};
use std::collections::HashMap;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $prefix:literal;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
            pub struct $name(u32);
            entity_impl!($name, $prefix);
        )*
    };
}

ids! {
    /// A register of a function.
    Reg "r";
    /// A block of a function.
    Block "block";
    /// An instruction of a function.
    Inst "inst";
    /// A variable, of the module or of a function.
    Var "var";
    /// A function or kernel of a module.
    Func "func";
    /// A `.callprototype` of a function.
    Proto "proto";
    /// A `.branchtargets` list of a function.
    Targets "targets";
    /// A `.loc` of a function.
    Loc "loc";
}

/// A module.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// `.version`.
    pub version: IsaVersion,
    /// `.target`.
    pub target: Target,
    /// `.address_size`: 32 or 64.
    pub address_size: u8,
    /// Variables of the module.
    pub variables: PrimaryMap<Var, Variable>,
    /// Functions and kernels.
    pub functions: PrimaryMap<Func, Function>,
    /// Everything in the order of the text.
    pub items: Vec<Item>,
}

impl Module {
    /// An empty module.
    pub fn new(version: IsaVersion, target: Target) -> Self {
        Module { version, target, address_size: 64, variables: PrimaryMap::new(), functions: PrimaryMap::new(), items: vec![] }
    }

    /// The kernels that have a body.
    pub fn kernels(&self) -> impl Iterator<Item = (Func, &Function)> {
        self.functions.iter().filter(|(_, function)| function.is_kernel && function.has_body)
    }

    /// The function or kernel of a name.
    pub fn function(&self, name: &str) -> Option<Func> {
        self.functions.iter().find(|(_, function)| function.name == name).map(|(id, _)| id)
    }

    /// The variable of a name.
    pub fn variable(&self, name: &str) -> Option<Var> {
        self.variables.iter().find(|(_, variable)| variable.name == name).map(|(id, _)| id)
    }

    /// The name of a `.file` by its number.
    pub fn file_name(&self, number: u32) -> Option<&str> {
        self.items.iter().find_map(|item| match item {
            Item::File(file) if file.number == number => Some(file.name.as_str()),
            _ => None,
        })
    }
}

/// The machine a module is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The number in `sm_90`.
    pub sm: u16,
    /// The letter behind the number: `a`, `f` or none.
    pub suffix: Option<char>,
    /// The words behind commas: `debug`, `texmode_independent`, …
    pub options: Vec<String>,
}

impl Target {
    /// `sm_N`.
    pub fn sm(sm: u16) -> Self {
        Target { sm, suffix: None, options: vec![] }
    }
}

/// One thing at the top of a module.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A variable.
    Variable(Var),
    /// A function without its body.
    Declaration(Func),
    /// A function with its body.
    Definition(Func),
    /// `.alias new, old;`
    Alias(Alias),
    /// `.file`.
    File(FileEntry),
    /// `.section`.
    Section(Section),
    /// `.pragma`.
    Pragma(String),
}

/// A second name for a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The new name: a function that is declared.
    pub alias: Func,
    /// The function it means.
    pub aliasee: Func,
}

/// A `.file` directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// The number that `.loc` uses.
    pub number: u32,
    /// The path.
    pub name: String,
    /// Time and size, when given.
    pub stamp: Option<(u64, u64)>,
}

/// A `.section` of debug information: kept, not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The name with its dot, `.debug_info`.
    pub name: String,
    /// Its lines, white space made canonical.
    pub lines: Vec<String>,
}

/// Who sees a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Linkage {
    /// This module only.
    Private,
    /// `.visible`: others too.
    Visible,
    /// `.extern`: defined elsewhere.
    Extern,
    /// `.weak`: others may define it too.
    Weak,
    /// `.common`: others may define it too, the largest wins.
    Common,
}

/// A variable in memory, or a parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Where it lives.
    pub space: Space,
    /// The bank of an old-style `.const[3]`.
    pub bank: Option<u8>,
    /// The type of an element.
    pub ty: Type,
    /// Elements per vector: 1, 2 or 4.
    pub vector: u8,
    /// Array dimensions; `None` is `[]`.
    pub dims: Vec<Option<u64>>,
    /// `.align`, when given.
    pub align: Option<u32>,
    /// Who sees it.
    pub linkage: Linkage,
    /// `.attribute(.managed)`.
    pub managed: bool,
    /// `.attribute(.unified(a, b))`.
    pub unified: Option<(u64, u64)>,
    /// The space and alignment that a kernel's parameter points to, when said.
    pub pointer: Option<PointerInfo>,
    /// Its first contents.
    pub init: Option<Init>,
    /// The place in the text.
    pub span: Span,
}

impl Variable {
    /// A variable of one element.
    pub fn new(name: impl Into<String>, space: Space, ty: Type) -> Self {
        Variable {
            name: name.into(),
            space,
            bank: None,
            ty,
            vector: 1,
            dims: vec![],
            align: None,
            linkage: Linkage::Private,
            managed: false,
            unified: None,
            pointer: None,
            init: None,
            span: Span::default(),
        }
    }

    /// Bytes of an element, vectors counted whole.
    pub fn element_bytes(&self) -> u64 {
        u64::from(self.ty.bytes()) * u64::from(self.vector)
    }

    /// Bytes of the whole. An open dimension takes what the initialiser holds; without one it counts as zero.
    /// `None` when that exceeds 64 bits.
    pub fn bytes(&self) -> Option<u64> {
        let mut total = self.element_bytes();
        for (index, dim) in self.dims.iter().enumerate() {
            let count = match (dim, &self.init) {
                (Some(count), _) => *count,
                (None, Some(Init::List(list))) if index == 0 => list.len() as u64,
                (None, _) => 0,
            };
            total = total.checked_mul(count)?;
        }
        Some(total)
    }

    /// Alignment in bytes: as given, or that of an element.
    pub fn alignment(&self) -> u64 {
        self.align.map_or_else(|| self.element_bytes().next_power_of_two(), u64::from)
    }
}

/// The space and alignment that a pointer parameter points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointerInfo {
    /// The space, generic when not said.
    pub space: Space,
    /// The alignment, when said.
    pub align: Option<u32>,
}

/// First contents of a variable.
#[derive(Clone, Debug, PartialEq)]
pub enum Init {
    /// A number.
    Imm(Imm),
    /// An address.
    Address {
        /// Of what.
        symbol: Symbol,
        /// The offset that is added.
        offset: i64,
        /// Whether it is a generic address, `generic(x)`.
        generic: bool,
        /// Which byte of it, as a mask `0xFF00(x)`.
        mask: Option<u64>,
    },
    /// Several.
    List(Vec<Init>),
    /// Settings of a texture, sampler or surface: `{addr_mode_0 = wrap}`.
    Settings(Vec<(String, String)>),
}

/// A parameter or result of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Param {
    /// Passed in `.param` memory; one of [`Function::variables`].
    Memory(Var),
    /// Passed in a register.
    Reg(Reg),
}

/// The signature of a called function (`.callprototype`).
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    /// The name of the prototype.
    pub name: String,
    /// Its results; only space, type, dimensions and alignment count.
    pub results: Vec<Variable>,
    /// Its parameters.
    pub params: Vec<Variable>,
    /// `.noreturn` and ABI directives.
    pub directives: Vec<Directive>,
    /// The place in the text.
    pub span: Span,
}

/// A directive between the head and the body of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Directive {
    /// A word with numbers: `.maxntid 256, 1, 1`, `.minnctapersm 2`, `.maxnreg 64`, `.noreturn`, …
    Words(&'static str, Vec<u32>),
    /// `.pragma "…";`
    Pragma(String),
}

/// A register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegData {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
}

/// The form of a function's body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BodyForm {
    /// Legal PTX: registers are written as often as one likes, control falls from block to block.
    #[default]
    Registers,
    /// Every register is written once, by an instruction or as a parameter of a block, and that dominates its uses. Where
    /// control goes stands in [`BlockData::edges`]; the order of the blocks means nothing but for the first. Results of a
    /// guarded instruction are unspecified where the guard does not hold.
    Ssa,
}

/// Where control may go behind a block, in SSA form, with the values of the parameters there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The block.
    pub target: Block,
    /// One register per parameter of the block.
    pub args: Vec<Reg>,
}

impl Edge {
    /// An edge that passes nothing.
    pub fn to(target: Block) -> Self {
        Edge { target, args: vec![] }
    }
}

/// A block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockData {
    /// Its label, if it has one.
    pub label: Option<String>,
    /// `.pragma` before its first instruction.
    pub pragmas: Vec<String>,
    /// In SSA form, the registers that whoever comes here gives a value.
    pub params: Vec<Reg>,
    /// In SSA form, where control goes: the target of a `bra`, or each of the list of a `brx.idx`, and last, when the block
    /// does not end in an instruction without a guard that leaves it, where control goes on.
    pub edges: Vec<Edge>,
    /// Its instructions.
    pub insts: Vec<Inst>,
}

/// A list of labels (`.branchtargets`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetList {
    /// Its name.
    pub name: String,
    /// The blocks.
    pub blocks: Vec<Block>,
}

/// A line of the high-level source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LocData {
    /// The number of a `.file`.
    pub file: u32,
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
    /// Where it was inlined.
    pub inlined: Option<Inlined>,
}

/// The place a line was inlined at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Inlined {
    /// The label that names the inlined function, with an offset.
    pub function: (String, u64),
    /// The line it was inlined at, which stands before this one among the lines of the function and may be inlined itself.
    pub at: Loc,
}

/// A function or kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Who sees it.
    pub linkage: Linkage,
    /// Whether it is an `.entry`.
    pub is_kernel: bool,
    /// Results.
    pub results: Vec<Param>,
    /// Parameters.
    pub params: Vec<Param>,
    /// `.maxntid` and kin.
    pub directives: Vec<Directive>,
    /// Whether it has a body here.
    pub has_body: bool,
    /// The form of the body.
    pub form: BodyForm,
    /// Parameters in memory and variables of the body.
    pub variables: PrimaryMap<Var, Variable>,
    /// Registers.
    pub regs: PrimaryMap<Reg, RegData>,
    /// Prototypes of indirect calls.
    pub protos: PrimaryMap<Proto, Signature>,
    /// Lists of labels.
    pub targets: PrimaryMap<Targets, TargetList>,
    /// Lines of the high-level source.
    pub locs: PrimaryMap<Loc, LocData>,
    /// Instructions.
    pub insts: PrimaryMap<Inst, InstData>,
    /// Blocks.
    pub blocks: PrimaryMap<Block, BlockData>,
    /// The order of the blocks; the first is the entry.
    pub layout: Vec<Block>,
    /// The place of the name in the text.
    pub span: Span,
}

impl Function {
    /// A function without parameters and body.
    pub fn new(name: impl Into<String>, is_kernel: bool) -> Self {
        Function {
            name: name.into(),
            linkage: Linkage::Private,
            is_kernel,
            results: vec![],
            params: vec![],
            directives: vec![],
            has_body: false,
            form: BodyForm::Registers,
            variables: PrimaryMap::new(),
            regs: PrimaryMap::new(),
            protos: PrimaryMap::new(),
            targets: PrimaryMap::new(),
            locs: PrimaryMap::new(),
            insts: PrimaryMap::new(),
            blocks: PrimaryMap::new(),
            layout: vec![],
            span: Span::default(),
        }
    }

    /// The parameters that live in memory, in order.
    pub fn memory_params(&self) -> impl Iterator<Item = &Variable> {
        self.params.iter().filter_map(|param| match param {
            Param::Memory(var) => Some(&self.variables[*var]),
            Param::Reg(_) => None,
        })
    }

    /// All instructions in layout order.
    pub fn instructions(&self) -> impl Iterator<Item = (Inst, &InstData)> {
        self.layout.iter().flat_map(|block| &self.blocks[*block].insts).map(|inst| (*inst, &self.insts[*inst]))
    }

    /// The numbers behind a directive such as `reqntid`.
    pub fn directive(&self, name: &str) -> Option<&[u32]> {
        self.directives.iter().find_map(|directive| match directive {
            Directive::Words(word, numbers) if *word == name => Some(numbers.as_slice()),
            Directive::Words(..) | Directive::Pragma(_) => None,
        })
    }

    /// The block at which control starts. A function without a body has none.
    pub fn entry(&self) -> Option<Block> {
        self.layout.first().copied()
    }

    /// Where control may go behind each block, in the order of [`BlockData::edges`], whatever the form. Control that falls off
    /// the end of the function returns.
    pub fn successors(&self) -> SecondaryMap<Block, Vec<Block>> {
        let mut all = SecondaryMap::new();
        let next = self.next_blocks();
        for block in &self.layout {
            let data = &self.blocks[*block];
            all[*block] = match self.form {
                BodyForm::Ssa => data.edges.iter().map(|edge| edge.target).collect(),
                BodyForm::Registers => {
                    let mut targets = self.jump_targets(*block);
                    if data.insts.last().is_none_or(|last| !self.insts[*last].is_terminator()) {
                        targets.extend(next.get(block));
                    }
                    targets
                }
            };
        }
        all
    }

    /// The blocks that the last instruction of a block names.
    pub fn jump_targets(&self, block: Block) -> Vec<Block> {
        let Some(last) = self.blocks[block].insts.last() else { return vec![] };
        let operands = self.insts[*last].operands.iter();
        operands
            .flat_map(|operand| match operand {
                Operand::Label(block) => vec![*block],
                Operand::Targets(targets) => self.targets[*targets].blocks.clone(),
                _ => vec![],
            })
            .collect()
    }

    /// The block behind each block in layout order, for falling through.
    pub fn next_blocks(&self) -> HashMap<Block, Block> {
        self.layout.windows(2).map(|pair| (pair[0], pair[1])).collect()
    }
}

impl Module {
    /// Forgets all places in the text, so that modules from different texts can be compared.
    pub fn strip_spans(&mut self) {
        self.variables.values_mut().for_each(|variable| variable.span = Span::default());
        for function in self.functions.values_mut() {
            function.span = Span::default();
            function.variables.values_mut().for_each(|variable| variable.span = Span::default());
            function.insts.values_mut().for_each(|inst| inst.span = Span::default());
            for proto in function.protos.values_mut() {
                proto.span = Span::default();
                proto.params.iter_mut().chain(&mut proto.results).for_each(|variable| variable.span = Span::default());
            }
        }
    }
}
