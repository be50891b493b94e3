//! Modules built by hand with errors that no text can have. The verifier finds each, and never panics.

use broadloom_diag::{Code, Sources};
use broadloom_ptx::verify::codes;
use broadloom_ptx::{
    Address, Alias, Base, Block, Directive, Func, Function, Guard, Imm, Init, Inst, Item, Loc, Mnemonic, Module, Operand, Param,
    Proto, Reg, Symbol, Targets, Type, Var, parse, verify,
};

const TEXT: &str = "
.version 8.5
.target sm_90
.address_size 64
.global .b32 g[2] = {1, 2};
.func (.param .b32 r) f(.param .b32 a) { st.param.b32 [r], 1; ret; }
.entry k(.param .u64 P) {
    .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<2>;
    p: .callprototype (.param .b32 _) _ (.param .b32 _);
    t: .branchtargets L, M;
    ld.param.u64 %rd0, [P];
    setp.eq.u32 %p0, %r0, 0;
    @%p0 bra L;
    add.u32 %r0, %r1, %r2;
    brx.idx %r0, t;
L:
    mov.b64 {%r0, %r1}, %rd0;
    shfl.sync.idx.b32 %r0|%p0, %r1, 0, 31, -1;
M:
    call (%r0), f, (%r1);
    call (%r0), %rd0, (%r1), p;
    ret;
}
";

fn module() -> Module {
    let mut sources = Sources::new();
    let id = sources.add("t.ptx", TEXT);
    let mut module = parse(&sources, id).unwrap();
    module.strip_spans();
    module
}

fn kernel(module: &mut Module) -> &mut Function {
    let k = module.function("k").unwrap();
    &mut module.functions[k]
}

/// Returns the kernel's instruction whose mnemonic starts with `name`.
fn instruction<'m>(module: &'m mut Module, name: &str) -> &'m mut broadloom_ptx::InstData {
    let function = kernel(module);
    let found = function.instructions().find(|(_, data)| data.mnemonic_text().starts_with(name)).map(|(inst, _)| inst);
    &mut function.insts[found.unwrap()]
}

#[track_caller]
fn breaks(code: Code, change: impl FnOnce(&mut Module)) {
    let mut module = module();
    change(&mut module);
    let found = verify(module).expect_err("the module is broken");
    let found: Vec<Code> = found.iter().map(|d| d.code).collect();
    assert!(found.contains(&code), "{code} is not among {found:?}");
}

#[test]
fn the_module_itself_is_fine() {
    verify(module()).unwrap();
}

#[test]
fn ids_that_point_nowhere() {
    let (reg, var, func) = (Reg::from_u32(99), Var::from_u32(99), Func::from_u32(99));
    breaks(codes::BAD_ID, |m| instruction(m, "add").operands[1] = Operand::Reg(reg));
    breaks(codes::BAD_ID, |m| instruction(m, "add").guard = Some(Guard { reg, negated: false }));
    breaks(codes::BAD_ID, |m| instruction(m, "add").loc = Some(Loc::from_u32(0)));
    breaks(codes::BAD_ID, |m| instruction(m, "ld").operands[1] = Operand::Memory(reg.offset(0)));
    breaks(codes::BAD_ID, |m| instruction(m, "ld").operands[1] = Operand::Memory(Symbol::Local(var).offset(0)));
    breaks(codes::BAD_ID, |m| instruction(m, "ld").operands[1] = Operand::Memory(Symbol::Var(var).offset(0)));
    breaks(codes::BAD_ID, |m| instruction(m, "mov").operands[0] = Operand::from([reg, reg]));
    breaks(codes::BAD_ID, |m| instruction(m, "bra").operands[0] = Operand::Label(Block::from_u32(99)));
    breaks(codes::BAD_ID, |m| instruction(m, "brx").operands[1] = Operand::Targets(Targets::from_u32(99)));
    breaks(codes::BAD_ID, |m| match &mut instruction(m, "call").operands[0] {
        Operand::Call(call) => call.callee = broadloom_ptx::Callee::Direct(func),
        other => panic!("{other:?} is no call"),
    });
    breaks(codes::BAD_ID, |m| match &mut instruction(m, "call").operands[0] {
        Operand::Call(call) => {
            call.callee = broadloom_ptx::Callee::Indirect { reg: Reg::from_u32(0), proto: Some(Proto::from_u32(9)) };
        }
        other => panic!("{other:?} is no call"),
    });
    breaks(codes::BAD_ID, |m| kernel(m).layout.push(Block::from_u32(99)));
    breaks(codes::BAD_ID, |m| {
        let first = kernel(m).layout[0];
        kernel(m).blocks[first].insts.insert(0, Inst::from_u32(99));
    });
    breaks(codes::BAD_ID, |m| kernel(m).params.push(Param::Memory(var)));
    breaks(codes::BAD_ID, |m| kernel(m).params.push(Param::Reg(reg)));
    breaks(codes::BAD_ID, |m| kernel(m).targets[Targets::from_u32(0)].blocks.push(Block::from_u32(99)));
    breaks(codes::BAD_ID, |m| m.items.push(Item::Variable(var)));
    breaks(codes::BAD_ID, |m| m.items.push(Item::Definition(func)));
    breaks(codes::BAD_ID, |m| m.items.push(Item::Alias(Alias { alias: func, aliasee: func })));
    breaks(codes::BAD_ID, |m| {
        m.variables[Var::from_u32(0)].init = Some(Init::List(vec![Init::Address {
            symbol: Symbol::Local(Var::from_u32(0)),
            offset: 0,
            generic: false,
            mask: None,
        }]));
    });
    breaks(codes::BAD_ID, |m| {
        let deep = (0..1000).fold(Init::Imm(Imm::Int(0)), |init, _| Init::List(vec![init]));
        m.variables[Var::from_u32(0)].init = Some(deep);
    });
}

#[test]
fn items_name_everything_once() {
    breaks(codes::BAD_ITEMS, |m| m.items.clear());
    breaks(codes::BAD_ITEMS, |m| {
        let twice = m.items.clone();
        m.items.extend(twice);
    });
    breaks(codes::BAD_ITEMS, |m| kernel(m).has_body = false);
}

#[test]
fn names_are_distinct_and_can_be_written() {
    breaks(codes::DUPLICATE_NAME, |m| m.variables[Var::from_u32(0)].name = "k".into());
    breaks(codes::DUPLICATE_NAME, |m| kernel(m).regs[Reg::from_u32(0)].name = "P".into());
    breaks(codes::DUPLICATE_NAME, |m| kernel(m).regs[Reg::from_u32(0)].name = "L".into());
    for name in ["", "%", "1a", "a.b", "a b", "é", "%r;"] {
        breaks(codes::BAD_NAME, |m| kernel(m).regs[Reg::from_u32(0)].name = name.into());
    }
    breaks(codes::BAD_NAME, |m| m.items.push(Item::Pragma("a\"b".into())));
    breaks(codes::BAD_NAME, |m| {
        let first = kernel(m).layout[0];
        kernel(m).blocks[first].pragmas.push("a\nb".into());
    });
}

#[test]
fn blocks_make_a_function() {
    breaks(codes::BAD_BLOCK, |m| kernel(m).layout.clear());
    breaks(codes::BAD_BLOCK, |m| {
        let first = kernel(m).layout[0];
        kernel(m).layout.push(first);
    });
    breaks(codes::BAD_BLOCK, |m| {
        let last = kernel(m).layout.len() - 1;
        kernel(m).layout.truncate(last);
    });
    breaks(codes::BAD_BLOCK, |m| {
        let first = kernel(m).layout[0];
        kernel(m).blocks[first].insts.reverse();
    });
    breaks(codes::BAD_BLOCK, |m| {
        let first = kernel(m).layout[0];
        let inst = kernel(m).blocks[first].insts[0];
        kernel(m).blocks[first].insts.insert(0, inst);
    });
    breaks(codes::BAD_BLOCK, |m| kernel(m).targets[Targets::from_u32(0)].blocks.clear());
    breaks(codes::NO_LABEL, |m| kernel(m).blocks.values_mut().for_each(|block| block.label = None));
}

#[test]
fn instructions_have_the_shape_of_their_form() {
    breaks(codes::BAD_FORM, |m| instruction(m, "add").operands.clear());
    breaks(codes::BAD_FORM, |m| instruction(m, "add").operands.push(Operand::Sink));
    breaks(codes::BAD_FORM, |m| instruction(m, "add").operands[0] = Operand::Imm(Imm::Int(1)));
    breaks(codes::BAD_FORM, |m| instruction(m, "add").operands[1] = Operand::Absent);
    breaks(codes::BAD_FORM, |m| instruction(m, "add").operands[1] = Operand::Vector(Box::new([])));
    breaks(codes::BAD_FORM, |m| {
        instruction(m, "ld").operands[1] = Operand::Memory(Address { base: Base::Absolute, offset: 0 });
        instruction(m, "ld").operands[0] = Operand::Memory(Address { base: Base::Absolute, offset: 0 });
    });
    breaks(codes::BAD_FORM, |m| match &mut instruction(m, "add").mnemonic {
        Mnemonic::Known { modifiers, .. } => modifiers.clear(),
        Mnemonic::Opaque(_) => {}
    });
    breaks(codes::BAD_FORM, |m| match &mut instruction(m, "add").mnemonic {
        Mnemonic::Known { modifiers, .. } => modifiers[0] = Some(broadloom_ptx::Modifier::Global),
        Mnemonic::Opaque(_) => {}
    });
    breaks(codes::BAD_FORM, |m| match &mut instruction(m, "add").mnemonic {
        Mnemonic::Known { modifiers, .. } => modifiers[0] = None,
        Mnemonic::Opaque(_) => {}
    });
    // An optional operand in the middle may be absent.
    let mut module = module();
    instruction(&mut module, "shfl").operands[1] = Operand::Absent;
    verify(module).unwrap();
}

#[test]
fn types_are_checked_without_a_text() {
    breaks(codes::BAD_GUARD, |m| instruction(m, "add").guard = Some(Guard { reg: Reg::from_u32(0), negated: true }));
    breaks(codes::WRONG_KIND, |m| kernel(m).regs[Reg::from_u32(2)].ty = Type::F32);
    breaks(codes::BAD_DIRECTIVE, |m| kernel(m).directives.push(Directive::Words("maxntid", vec![])));
    breaks(codes::BAD_DIRECTIVE, |m| kernel(m).directives.push(Directive::Words("nonsense", vec![])));
    breaks(codes::BAD_VARIABLE, |m| m.variables[Var::from_u32(0)].vector = 0);
    breaks(codes::BAD_VARIABLE, |m| m.variables[Var::from_u32(0)].align = Some(12));
    breaks(codes::BAD_VARIABLE, |m| m.variables[Var::from_u32(0)].ty = Type::Pred);
    breaks(codes::BAD_PARAM, |m| {
        let param = kernel(m).params[0];
        kernel(m).params.push(param);
    });
    breaks(codes::BAD_VARIABLE, |m| (m.variables[Var::from_u32(0)].ty, m.variables[Var::from_u32(0)].vector) = (Type::F64, 4));
    breaks(codes::BAD_PARAM, |m| kernel(m).params.push(Param::Reg(Reg::from_u32(0))));
    breaks(codes::LIMIT, |m| m.variables[Var::from_u32(0)].dims = vec![Some(u64::MAX), Some(2)]);
    breaks(codes::BAD_HEADER, |m| m.address_size = 48);
    breaks(codes::BAD_HEADER, |m| m.version = broadloom_ptx::IsaVersion::new(0, 0));
}

/// Without a location in a text, a finding shows function and instruction.
#[test]
fn findings_without_a_text_show_the_instruction() {
    let mut module = module();
    kernel(&mut module).regs[Reg::from_u32(2)].ty = Type::F32;
    let found = verify(module).unwrap_err();
    let notes: Vec<&String> = found.iter().flat_map(|d| &d.notes).collect();
    assert!(notes.iter().any(|note| note.starts_with("in `k`: `")), "{notes:?}");
}
