//! Instructions that passes create.

use broadloom_ptx::{Block, BlockData, IsaVersion, Module, Target, verify_function};
use broadloom_ptx::{Function, Guard, RegData, Type};
use broadloom_transform::write::Writer;

#[test]
fn every_register_type_can_be_copied_cleared_and_chosen() {
    let module = Module::new(IsaVersion::new(9, 0), Target::sm(90));
    for ty in Type::ALL.iter().copied().filter(|ty| ty.is_register()) {
        let mut function = Function::new("f", true);
        function.has_body = true;
        let mut writer = Writer::new(&mut function);
        let [a, b, c] = ["a", "b", "c"].map(|name| writer.reg(name.into(), ty));
        let p = writer.reg("p".into(), Type::Pred);
        let mut number = 0;
        let mut temporary = |function: &mut Function, ty: Type| {
            number += 1;
            function.regs.push(RegData { name: format!("t{number}"), ty })
        };
        writer.zero(a, &mut temporary);
        writer.copy(b, a);
        writer.select(c, Guard { reg: p, negated: true }, [a, b], &mut temporary);
        let insts = writer.take();
        let block: Block = function.blocks.push(BlockData { insts, ..BlockData::default() });
        function.layout.push(block);
        verify_function(&module, &function).unwrap_or_else(|errors| panic!("{ty}: {errors:?}"));
    }
}
