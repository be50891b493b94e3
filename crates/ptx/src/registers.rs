//! Which registers an instruction reads and writes.
//!
//! The guard counts as read, and so does the register behind an address. Whether an operand is written is what the form says;
//! of an opaque instruction nothing is known, so each of its registers counts as read and as written.

use crate::inst::{Address, Base, Call, Callee, InstData, Operand};
use crate::module::Reg;

/// Which of an instruction's registers are meant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    Read,
    Written,
    All,
}

impl InstData {
    /// The registers that it reads, guard first, in the order of the operands.
    pub fn reads(&self) -> Vec<Reg> {
        let mut found = vec![];
        self.each_read(|reg| found.push(reg));
        found
    }

    /// The registers that it writes, in the order of the operands.
    pub fn writes(&self) -> Vec<Reg> {
        let mut found = vec![];
        self.each_written(|reg| found.push(reg));
        found
    }

    /// Shows the registers that it reads, guard first, in the order of the operands.
    pub fn each_read(&self, mut see: impl FnMut(Reg)) {
        see::registers(self, Which::Read, &mut |reg| see(*reg));
    }

    /// Shows the registers that it writes, in the order of the operands.
    pub fn each_written(&self, mut see: impl FnMut(Reg)) {
        see::registers(self, Which::Written, &mut |reg| see(*reg));
    }

    /// Changes the registers that it reads, guard first.
    pub fn change_reads(&mut self, mut change: impl FnMut(&mut Reg)) {
        change::registers(self, Which::Read, &mut change);
    }

    /// Changes the registers that it writes.
    pub fn change_writes(&mut self, mut change: impl FnMut(&mut Reg)) {
        change::registers(self, Which::Written, &mut change);
    }

    /// Changes all its registers, in the order of the text.
    pub(crate) fn change_registers(&mut self, mut change: impl FnMut(&mut Reg)) {
        change::registers(self, Which::All, &mut change);
    }
}

/// The same walk over operands that are looked at and over operands that are changed.
macro_rules! walk {
    ($name:ident, $iter:ident $(, $mutable:tt)?) => {
        mod $name {
            use super::{Address, Base, Call, Callee, InstData, Operand, Reg, Which};

            type Visit<'v> = &'v mut dyn FnMut(&$($mutable)? Reg);

            pub(super) fn registers(data: &$($mutable)? InstData, which: Which, visit: Visit<'_>) {
                if which != Which::Written
                    && let Some(guard) = &$($mutable)? data.guard
                {
                    visit(&$($mutable)? guard.reg);
                }
                let specs = data.form().map(|form| form.operands);
                for (index, element) in data.operands.$iter().enumerate() {
                    let written = specs.map(|specs| specs.get(index).is_some_and(|spec| spec.written));
                    operand(element, written, which, visit);
                }
            }

            /// `written` is `None` when it is not known.
            fn operand(operand: &$($mutable)? Operand, written: Option<bool>, which: Which, visit: Visit<'_>) {
                let meant = which == Which::All || written.is_none_or(|written| written == (which == Which::Written));
                match operand {
                    Operand::Reg(reg) | Operand::Not(reg) | Operand::Part { reg, .. } => {
                        if meant {
                            visit(reg);
                        }
                    }
                    Operand::Vector(elements) => {
                        for element in elements.$iter() {
                            self::operand(element, written, which, visit);
                        }
                    }
                    Operand::Pair(pair) => {
                        for element in pair.$iter() {
                            self::operand(element, written, which, visit);
                        }
                    }
                    Operand::Memory(memory) => address(memory, which, visit),
                    Operand::Texture(texture) => {
                        address(&$($mutable)? texture.base, which, visit);
                        for element in texture.rest.$iter() {
                            self::operand(element, Some(false), which, visit);
                        }
                    }
                    Operand::Call(operands) => call(operands, which, visit),
                    Operand::Imm(_) | Operand::Special(_) | Operand::Symbol(..) | Operand::Label(_) => {}
                    Operand::Targets(_) | Operand::Sink | Operand::Absent => {}
                }
            }

            fn address(address: &$($mutable)? Address, which: Which, visit: Visit<'_>) {
                if which != Which::Written
                    && let Base::Reg(reg) = &$($mutable)? address.base
                {
                    visit(reg);
                }
            }

            fn call(call: &$($mutable)? Call, which: Which, visit: Visit<'_>) {
                for element in call.results.$iter() {
                    operand(element, Some(true), which, visit);
                }
                if which != Which::Written
                    && let Callee::Indirect { reg, .. } = &$($mutable)? call.callee
                {
                    visit(reg);
                }
                for element in call.arguments.$iter() {
                    operand(element, Some(false), which, visit);
                }
            }
        }
    };
}

walk!(see, iter);
walk!(change, iter_mut, mut);

#[cfg(test)]
mod tests {
    use crate::module::Reg;
    use broadloom_diag::Sources;

    /// Reads and writes of each instruction of a function, by name.
    fn of(body: &str) -> Vec<(Vec<String>, Vec<String>)> {
        let mut sources = Sources::new();
        let text = format!(
            ".version 8.0 .target sm_80 .address_size 64 .func (.reg .b32 r) callee (.reg .b32 a) {{ ret; }}
             .entry k(.param .u64 x) {{ .reg .pred p, q; .reg .b32 a, b, c, d; .reg .b64 e, f; {body} }}"
        );
        let id = sources.add("k.ptx", text);
        let module = crate::parse(&sources, id).unwrap_or_else(|errors| panic!("{errors:?}"));
        let function = module.kernels().next().unwrap().1;
        let names = |regs: Vec<Reg>| regs.iter().map(|reg| function.regs[*reg].name.clone()).collect();
        function.instructions().map(|(_, data)| (names(data.reads()), names(data.writes()))).collect()
    }

    fn is(body: &str, reads: &[&str], writes: &[&str]) {
        let found = of(body);
        assert_eq!(found[0].0, reads, "reads of {body}");
        assert_eq!(found[0].1, writes, "writes of {body}");
    }

    #[test]
    fn every_kind_of_operand() {
        is("add.u32 a, b, c;", &["b", "c"], &["a"]);
        is("@!p add.u32 a, a, 1;", &["p", "a"], &["a"]);
        is("setp.eq.and.u32 p|q, a, b, !q;", &["a", "b", "q"], &["p", "q"]);
        is("ld.global.v2.u32 {a, b}, [e+4];", &["e"], &["a", "b"]);
        is("st.global.v2.u32 [e], {a, b};", &["e", "a", "b"], &[]);
        is("call (a), callee, (b);", &["b"], &["a"]);
        is("mov.b64 e, {a, b};", &["a", "b"], &["e"]);
        is("mov.b64 {a, _}, e;", &["e"], &["a"]);
        is("atom.global.cas.b32 a, [e], b, c;", &["e", "b", "c"], &["a"]);
        is("vadd.u32.u32.u32 a, b.b0, c.h1;", &["b", "c"], &["a"]);
        is("@p bra L; L: ret;", &["p"], &[]);
    }
}
