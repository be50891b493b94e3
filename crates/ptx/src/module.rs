//! PTX module in memory.
//!
//! Typed IDs index tables: registers, blocks and instructions belong to a [`Function`], variables and
//! functions to the [`Module`]. There are no scopes: names are unique within their function, and conflicting
//! names got a suffix. Only the last instruction of a block may be a control instruction. Control falls from
//! one block to the next in [`Function::layout`], unless the last instruction is a jump, return or exit
//! without a guard. `.loc` and `.pragma` are stored beside the code. This is the form of legal PTX. Passes
//! work on SSA form, see [`BodyForm`].

use crate::ids::{Block, Func, Inst, Loc, Proto, Reg, Targets, Var};
use crate::inst::{Imm, InstData, Operand, Symbol};
use crate::types::{IsaVersion, Space, Type};
use broadloom_diag::Span;
use cranelift_entity::{PrimaryMap, SecondaryMap};
use std::collections::HashMap;

/// PTX module.
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
    /// All items in text order.
    pub items: Vec<Item>,
}

impl Module {
    /// Creates an empty module.
    pub fn new(version: IsaVersion, target: Target) -> Self {
        Module { version, target, address_size: 64, variables: PrimaryMap::new(), functions: PrimaryMap::new(), items: vec![] }
    }

    /// Returns the kernels that have a body.
    pub fn kernels(&self) -> impl Iterator<Item = (Func, &Function)> {
        self.functions.iter().filter(|(_, function)| function.is_kernel && function.has_body)
    }

    /// Finds a function or kernel by name.
    pub fn function(&self, name: &str) -> Option<Func> {
        self.functions.iter().find(|(_, function)| function.name == name).map(|(id, _)| id)
    }

    /// Finds a variable by name.
    pub fn variable(&self, name: &str) -> Option<Var> {
        self.variables.iter().find(|(_, variable)| variable.name == name).map(|(id, _)| id)
    }

    /// Returns the name of a `.file` by its number.
    pub fn file_name(&self, number: u32) -> Option<&str> {
        self.items.iter().find_map(|item| match item {
            Item::File(file) if file.number == number => Some(file.name.as_str()),
            _ => None,
        })
    }
}

/// Target machine of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The number in `sm_90`.
    pub sm: u16,
    /// Letter after the number: `a`, `f` or none.
    pub suffix: Option<char>,
    /// Options after commas: `debug`, `texmode_independent`, …
    pub options: Vec<String>,
}

impl Target {
    /// Creates the target `sm_N`.
    pub fn sm(sm: u16) -> Self {
        Target { sm, suffix: None, options: vec![] }
    }
}

/// Item at the top level of a module.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A variable outside of functions.
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

/// Second name of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// New name: a declared function.
    pub alias: Func,
    /// Function that it refers to.
    pub aliasee: Func,
}

/// A `.file` directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// Number used by `.loc`.
    pub number: u32,
    /// The path.
    pub name: String,
    /// Time and size, when given.
    pub stamp: Option<(u64, u64)>,
}

/// `.section` of debug information, stored as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The name with its dot, `.debug_info`.
    pub name: String,
    /// Lines with canonical white space.
    pub lines: Vec<String>,
}

/// Linkage of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Linkage {
    /// Visible in this module only.
    Private,
    /// `.visible`: visible to other modules.
    Visible,
    /// `.extern`: defined elsewhere.
    Extern,
    /// `.weak`: may be defined by other modules too.
    Weak,
    /// `.common`: may be defined by other modules too; the largest definition is used.
    Common,
}

/// Variable in memory, or parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// The name, unique in its scope.
    pub name: String,
    /// State space.
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
    /// Visibility to other modules.
    pub linkage: Linkage,
    /// `.attribute(.managed)`.
    pub managed: bool,
    /// `.attribute(.unified(a, b))`.
    pub unified: Option<(u64, u64)>,
    /// State space and alignment of a kernel's pointer parameter, if given.
    pub pointer: Option<PointerInfo>,
    /// Initialiser.
    pub init: Option<Init>,
    /// Location in the text.
    pub span: Span,
}

impl Variable {
    /// Creates a variable of one element.
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

    /// Returns the size of an element in bytes, including all elements of a vector.
    pub fn element_bytes(&self) -> u64 {
        u64::from(self.ty.bytes()) * u64::from(self.vector)
    }

    /// Returns the total size in bytes. An open dimension has the length of the initialiser, or zero without
    /// one. Returns `None` if the size exceeds 64 bits.
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

    /// Returns the alignment in bytes: the given one, or that of an element.
    pub fn alignment(&self) -> u64 {
        self.align.map_or_else(|| self.element_bytes().next_power_of_two(), u64::from)
    }
}

/// State space and alignment of a pointer parameter's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointerInfo {
    /// State space; generic if not given.
    pub space: Space,
    /// Alignment, if given.
    pub align: Option<u32>,
}

/// Initialiser of a variable.
#[derive(Clone, Debug, PartialEq)]
pub enum Init {
    /// A number.
    Imm(Imm),
    /// The address of a variable or function, plus an offset.
    Address {
        /// Symbol whose address is taken.
        symbol: Symbol,
        /// Constant offset.
        offset: i64,
        /// True for a generic address, `generic(x)`.
        generic: bool,
        /// Selected byte, as a mask `0xFF00(x)`.
        mask: Option<u64>,
    },
    /// List of initialisers.
    List(Vec<Init>),
    /// Settings of a texture, sampler or surface: `{addr_mode_0 = wrap}`.
    Settings(Vec<(String, String)>),
}

/// Parameter or result of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Param {
    /// Passed in `.param` memory; one of [`Function::variables`].
    Memory(Var),
    /// Passed in a register.
    Reg(Reg),
}

/// Signature of a called function (`.callprototype`).
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    /// The name of the prototype.
    pub name: String,
    /// Results. Only space, type, dimensions and alignment matter.
    pub results: Vec<Variable>,
    /// Parameters.
    pub params: Vec<Variable>,
    /// `.noreturn` and ABI directives.
    pub directives: Vec<Directive>,
    /// Location in the text.
    pub span: Span,
}

/// Directive between the head and the body of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Directive {
    /// Word with numbers: `.maxntid 256, 1, 1`, `.minnctapersm 2`, `.maxnreg 64`, `.noreturn`, …
    Words(&'static str, Vec<u32>),
    /// `.pragma "…";`
    Pragma(String),
}

/// A register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegData {
    /// The name in the text, with its `%`.
    pub name: String,
    /// Its type.
    pub ty: Type,
}

/// Form of a function's body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BodyForm {
    /// Legal PTX: registers may be written any number of times, and control falls from block to block.
    #[default]
    Registers,
    /// SSA form: every register is written once, by an instruction or as a block parameter, and its
    /// definition dominates its uses. [`BlockData::edges`] holds the control flow; apart from the first
    /// block, the order of blocks has no meaning. Results of a guarded instruction are unspecified where the
    /// guard is false.
    Ssa,
}

/// Control flow edge in SSA form, with the values of the target's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Target block.
    pub target: Block,
    /// Arguments, one register per parameter of the target.
    pub args: Vec<Reg>,
}

impl Edge {
    /// Creates an edge without arguments.
    pub fn to(target: Block) -> Self {
        Edge { target, args: vec![] }
    }
}

/// Instructions that run one after the other; only the last may branch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockData {
    /// Its label, if it has one.
    pub label: Option<String>,
    /// `.pragma` before its first instruction.
    pub pragmas: Vec<String>,
    /// Block parameters in SSA form.
    pub params: Vec<Reg>,
    /// Outgoing edges in SSA form: the target of a `bra`, or each target of a `brx.idx`. The fall-through
    /// edge is last, if the block does not end in an unguarded control instruction.
    pub edges: Vec<Edge>,
    /// Its instructions.
    pub insts: Vec<Inst>,
}

/// List of labels (`.branchtargets`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetList {
    /// The label of the list.
    pub name: String,
    /// The targets, by the index that `brx.idx` takes.
    pub blocks: Vec<Block>,
}

/// Line of the high-level source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LocData {
    /// Number of a `.file`.
    pub file: u32,
    /// Line in the file, from 1.
    pub line: u32,
    /// Column in the line.
    pub column: u32,
    /// Location that it was inlined at.
    pub inlined: Option<Inlined>,
}

/// Location that a line was inlined at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Inlined {
    /// Label that names the inlined function, with an offset.
    pub function: (String, u64),
    /// Line that it was inlined at. It precedes this one in the function's table and may be inlined itself.
    pub at: Loc,
}

/// A function or kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// The name, unique in the module.
    pub name: String,
    /// Visibility to other modules.
    pub linkage: Linkage,
    /// True for an `.entry`.
    pub is_kernel: bool,
    /// The parameters that return values; a kernel has none.
    pub results: Vec<Param>,
    /// Parameters.
    pub params: Vec<Param>,
    /// `.maxntid` and similar directives.
    pub directives: Vec<Directive>,
    /// True if it has a body in this module.
    pub has_body: bool,
    /// The form of the body.
    pub form: BodyForm,
    /// Parameters in memory, and variables of the body.
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
    /// All blocks; their order is in the layout.
    pub blocks: PrimaryMap<Block, BlockData>,
    /// Order of the blocks; the first is the entry.
    pub layout: Vec<Block>,
    /// Location of the name in the text.
    pub span: Span,
}

impl Function {
    /// Creates a function without parameters and body.
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

    /// Returns the parameters in memory, in order.
    pub fn memory_params(&self) -> impl Iterator<Item = &Variable> {
        self.params.iter().filter_map(|param| match param {
            Param::Memory(var) => Some(&self.variables[*var]),
            Param::Reg(_) => None,
        })
    }

    /// Returns all instructions in layout order.
    pub fn instructions(&self) -> impl Iterator<Item = (Inst, &InstData)> {
        self.layout.iter().flat_map(|block| &self.blocks[*block].insts).map(|inst| (*inst, &self.insts[*inst]))
    }

    /// Returns the numbers of a directive such as `reqntid`.
    pub fn directive(&self, name: &str) -> Option<&[u32]> {
        self.directives.iter().find_map(|directive| match directive {
            Directive::Words(word, numbers) if *word == name => Some(numbers.as_slice()),
            Directive::Words(..) | Directive::Pragma(_) => None,
        })
    }

    /// Returns the entry block. A function without a body has none.
    pub fn entry(&self) -> Option<Block> {
        self.layout.first().copied()
    }

    /// Returns the successors of each block, in the order of [`BlockData::edges`], for either form. Control
    /// that falls off the end of the function returns.
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

    /// Returns the blocks that the last instruction of a block names.
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

    /// Returns the block after each block in layout order, for falling through.
    pub fn next_blocks(&self) -> HashMap<Block, Block> {
        self.layout.windows(2).map(|pair| (pair[0], pair[1])).collect()
    }
}

impl Module {
    /// Clears all locations in the text, so that modules from different texts can be compared.
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
