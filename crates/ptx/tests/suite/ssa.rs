//! Tests of the verifier's checks of SSA form.

use broadloom_ptx::{
    Block, BlockData, BodyForm, Edge, Function, InstData, IsaVersion, Module, Operand, Printer, Reg, RegData, Target, Type,
    verify_function,
};

fn module() -> Module {
    Module::new(IsaVersion::new(8, 0), Target::sm(80))
}

struct Body(Function);

impl Body {
    fn new() -> Self {
        let mut function = Function::new("k", true);
        function.has_body = true;
        function.form = BodyForm::Ssa;
        Body(function)
    }

    fn reg(&mut self, ty: Type) -> Reg {
        let name = format!("%v{}", self.0.regs.len());
        self.0.regs.push(RegData { name, ty })
    }

    fn block(&mut self, params: &[Reg]) -> Block {
        let block = self.0.blocks.push(BlockData { params: params.to_vec(), ..BlockData::default() });
        self.0.layout.push(block);
        block
    }

    fn inst(&mut self, block: Block, mnemonic: &str, operands: &[Operand]) {
        let inst = self.0.insts.push(InstData::of(mnemonic, operands.iter().cloned()).unwrap());
        self.0.blocks[block].insts.push(inst);
    }

    fn errors(&self) -> String {
        match verify_function(&module(), &self.0) {
            Ok(()) => String::new(),
            Err(errors) => errors.iter().map(|error| error.message.clone()).collect::<Vec<_>>().join("\n"),
        }
    }
}

/// Verifies `i = 0; do { i' = i + 1 } while (i' < 10)` with a change made by the test.
fn counting(change: impl FnOnce(&mut Body, [Block; 3], [Reg; 4])) -> String {
    let mut body = Body::new();
    let regs = [Type::U32, Type::U32, Type::U32, Type::Pred].map(|ty| body.reg(ty));
    let [zero, i, next, p] = regs;
    let (start, head, end) = (body.block(&[]), body.block(&[i]), body.block(&[]));
    body.inst(start, "mov.u32", &[zero.into(), 0.into()]);
    body.0.blocks[start].edges = vec![Edge { target: head, args: vec![zero] }];
    body.inst(head, "add.u32", &[next.into(), i.into(), 1.into()]);
    body.inst(head, "setp.lt.u32", &[p.into(), next.into(), 10.into()]);
    body.inst(head, "bra", &[head.into()]);
    let last = *body.0.blocks[head].insts.last().unwrap();
    body.0.insts[last].guard = Some(broadloom_ptx::Guard { reg: p, negated: false });
    body.0.blocks[head].edges = vec![Edge { target: head, args: vec![next] }, Edge::to(end)];
    body.inst(end, "ret", &[]);
    change(&mut body, [start, head, end], regs);
    body.errors()
}

#[test]
fn a_loop_is_right() {
    assert_eq!(counting(|_, _, _| {}), "");
    let mut text = String::new();
    counting(|body, _, _| text = Printer::new(&module()).body(&body.0));
    assert!(text.contains("block1(.u32 %v1):\n"), "{text}");
    assert!(text.contains("\t@%v3 bra block1;\n\t-> block1(%v2)\n\t-> block2\n"), "{text}");
}

#[test]
fn broken_promises_are_found() {
    let twice = counting(|body, [start, ..], [zero, ..]| body.inst(start, "mov.u32", &[zero.into(), 1.into()]));
    assert_eq!(twice, "`k` writes `%v0` twice");
    let early = counting(|body, [start, ..], [_, i, ..]| {
        let copy = body.reg(Type::U32);
        body.inst(start, "mov.u32", &[copy.into(), i.into()]);
    });
    assert_eq!(early, "`%v1` is read where it has no value");
    let missing = counting(|body, [start, ..], _| body.0.blocks[start].edges[0].args.clear());
    assert_eq!(missing, "`k` passes block0's values to block1, whose parameters are others");
    let elsewhere = counting(|body, [_, head, end], _| body.0.blocks[head].edges.swap_remove(0).target = end);
    assert!(elsewhere.starts_with("`k` has 1 edges behind block1"), "{elsewhere}");
    let late = counting(|body, [_, head, _], [.., next, _]| {
        body.0.blocks[head].edges[1].args.push(next);
    });
    assert_eq!(late, "`k` passes block1's values to block2, whose parameters are others");
    let registers = counting(|body, _, _| body.0.form = BodyForm::Registers);
    assert_eq!(registers, "a branch to `block1` of `k`, which has no label");
}
