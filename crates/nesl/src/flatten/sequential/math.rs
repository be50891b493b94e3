//! Elementary functions: PTX functions with the same code as flattened work, each written once per module.
//!
//! Such a function takes the address of a number in memory and stores the result there.

use super::code::{Kind, Reg};
use super::expr::Writer;
use super::lanes::LANES;
use super::{CodeResult, Module};
use broadloom_ptx::builder::Instructions;
use broadloom_ptx::{Modifier as M, Type};
use broadloom_scalar::{Builder, Element, MathFunction, Precision, lower};
use std::fmt::Write;

impl Module<'_, '_> {
    /// Returns the name of the PTX function of an elementary function; writes it if it is new.
    fn elementary(&mut self, function: MathFunction) -> CodeResult<String> {
        let name = format!("math_{}", function.name());
        if !self.elementary.contains(&function) {
            let element = if self.widths.narrow_float { Element::F32 } else { Element::F64 };
            let k = Builder::kernel(&name);
            let number = k.pointer("number", element);
            k.store(number, 0, k.math(function, Precision::Accurate, &[k.load(number, 0)]));
            let module = k.finish_kernel().and_then(|kernel| lower(&[kernel])).map_err(|error| error.to_string())?;
            let text = broadloom_ptx::print(&module);
            // A kernel with one parameter becomes a function of an address. Tables precede it.
            let (before, rest) = text.split_once(".visible .entry").ok_or("a function is missing")?;
            let body = rest.find('{').map(|at| &rest[at..]).ok_or("a function is missing")?;
            let tables =
                before.lines().filter(|line| ![".version", ".target", ".address_size"].iter().any(|head| line.starts_with(head)));
            for line in tables {
                self.prototypes.push_str(line);
                self.prototypes.push('\n');
            }
            let _ = writeln!(self.prototypes, ".func {name}(.param .b64 {name}_0_number)\n{body}");
            self.elementary.push(function);
        }
        Ok(name)
    }
}

impl Writer<'_, '_, '_> {
    /// Computes an elementary function.
    pub(super) fn elementary(&mut self, function: MathFunction, number: Reg) -> CodeResult<Reg> {
        let name = self.m.elementary(function)?;
        let mark = self.code.copy(Kind::Pointer, self.top);
        // Each lane of a warp or a team has its own number: the others may be ahead of it.
        let count = self.code.length(if self.code.lane.is_some() { LANES } else { 1 });
        let own = self.code.length(0);
        if let Some(lane) = self.code.lane {
            self.code.to(own).mov(M::U32, lane);
        }
        if let Some(team) = self.code.team {
            self.code.to(own).mad((M::Lo, M::U32), team.own, LANES, own);
            self.code.to(count).mul((M::Lo, M::U32), count, team.warps);
        }
        let place = self.take(count, Kind::Float);
        let bytes = self.code.bytes(Kind::Float);
        self.code.to(place).mad((M::Wide, M::U32), own, bytes, place);
        self.code.store(Kind::Float, place, number);
        self.code.call(&name, &[(Type::B64, place)], 0, &[]);
        let result = self.code.load(Kind::Float, place);
        if self.code.team.is_none() {
            self.code.to(self.top).mov(M::B64, mark);
        }
        Ok(result)
    }
}
