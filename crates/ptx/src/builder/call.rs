//! Calls in the ABI of all targets since sm_20: arguments and results in `.param` variables.

use super::codes;
use super::emit::Instructions;
use super::function::FunctionBuilder;
use crate::ids::{Func, Reg};
use crate::inst::{Call, Callee, InstData, Mnemonic, Operand, Symbol};
use crate::module::{Function, Param, Signature, Variable};
use crate::select;
use crate::table::Modifier;
use crate::types::{Space, Type};
use broadloom_diag::{Diagnostic, Span};
use smallvec::SmallVec;

/// Callable function with its parameters and results.
#[derive(Clone, Debug, PartialEq)]
pub struct Callable {
    /// The function.
    pub func: Func,
    /// Parameters: space, type, dimensions and alignment.
    pub params: Vec<Variable>,
    /// The values that a call returns.
    pub results: Vec<Variable>,
}

impl Callable {
    pub(super) fn of(func: Func, function: &Function) -> Self {
        let list = |params: &[Param]| {
            let variable = |param: &Param| match param {
                Param::Memory(var) => function.variables[*var].clone(),
                Param::Reg(reg) => Variable::new(function.regs[*reg].name.clone(), Space::Reg, function.regs[*reg].ty),
            };
            params.iter().map(variable).collect()
        };
        Callable { func, params: list(&function.params), results: list(&function.results) }
    }

    /// Returns its address, for a table of functions or an indirect call.
    pub fn symbol(&self) -> Symbol {
        Symbol::Func(self.func)
    }
}

impl FunctionBuilder {
    /// Returns the function as a callable with the parameters and results declared so far, for recursion.
    pub fn callable(&self) -> Callable {
        Callable::of(self.func, &self.function)
    }

    /// Calls a function. Each argument is a register or number for a parameter of one element, or the symbol
    /// of a `.param` variable for a larger parameter. Returns the results that have one element.
    pub fn call(&mut self, callable: &Callable, arguments: &[Operand]) -> Vec<Reg> {
        self.call_any(Callee::Direct(callable.func), callable, arguments)
    }

    /// Calls the function that a register points to. It must have the signature of `callable`.
    pub fn call_indirect(&mut self, pointer: Reg, callable: &Callable, arguments: &[Operand]) -> Vec<Reg> {
        let signature = |list: &[Variable]| list.iter().map(|v| Variable { name: "_".into(), ..v.clone() }).collect();
        let known = self
            .function
            .protos
            .iter()
            .find(|(_, proto)| proto.params == signature(&callable.params) && proto.results == signature(&callable.results))
            .map(|(proto, _)| proto);
        let proto = known.unwrap_or_else(|| {
            let name = self.unique("prototype");
            self.function.protos.push(Signature {
                name,
                results: signature(&callable.results),
                params: signature(&callable.params),
                directives: vec![],
                span: Span::default(),
            })
        });
        self.call_any(Callee::Indirect { reg: pointer, proto: Some(proto) }, callable, arguments)
    }

    fn call_any(&mut self, callee: Callee, callable: &Callable, arguments: &[Operand]) -> Vec<Reg> {
        if arguments.len() != callable.params.len() {
            let message = format!(
                "in `{}`: a call with {} arguments of a function that takes {}",
                self.name(),
                arguments.len(),
                callable.params.len()
            );
            self.report(Diagnostic::error(codes::BAD_CALL, message));
            return callable.results.iter().map(|result| self.reg(result.ty.register())).collect();
        }
        let mut passed = vec![];
        for (argument, param) in arguments.iter().zip(&callable.params) {
            let whole = matches!(argument, Operand::Symbol(..)) && !param.dims.is_empty();
            if whole || param.space == Space::Reg {
                passed.push(argument.clone());
                continue;
            }
            let slot = self.variable(Variable { name: "param".into(), pointer: None, ..param.clone() });
            self.st((Modifier::Param, param.ty), slot, argument.clone());
            passed.push(slot.into());
        }
        let mut results = vec![];
        let mut slots: Vec<Option<(Symbol, Type)>> = vec![];
        let mut regs = vec![];
        for result in &callable.results {
            if result.space == Space::Reg {
                let reg = self.reg(result.ty);
                regs.push(reg);
                results.push(reg.into());
                slots.push(None);
            } else {
                let slot = self.variable(Variable { name: "retval".into(), ..result.clone() });
                results.push(slot.into());
                slots.push(result.dims.is_empty().then_some((slot, result.ty)));
            }
        }
        // The table has one form of `call`.
        let Some((form, modifiers)) = select::candidates("call", &["uni"]).into_iter().next() else { return regs };
        let operands = SmallVec::from_iter([Operand::Call(Box::new(Call { results, callee, arguments: passed }))]);
        let mnemonic = Mnemonic::Known { form, modifiers };
        self.push(InstData { guard: None, mnemonic, operands, loc: None, span: Span::default() });
        for (slot, ty) in slots.into_iter().flatten() {
            regs.push(self.ld((Modifier::Param, ty), slot));
        }
        regs
    }
}
