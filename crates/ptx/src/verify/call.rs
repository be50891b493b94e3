//! Checks of calls against the signature of the callee (manual: "Parameter State Space", "call").

use super::agree::disagreement;
use super::operand::bad_immediate;
use super::{BodyChecker, codes};
use crate::ids::Inst;
use crate::inst::{Call, Callee, Operand, Symbol};
use crate::module::{Function, Param, Variable};
use crate::types::{Space, Type, TypeKind};
use broadloom_diag::{Diagnostic, Span};

/// Parameter as seen by the caller.
#[derive(Clone, PartialEq)]
pub(super) struct Formal {
    ty: Type,
    /// Size in bytes; `None` for one element.
    bytes: Option<u64>,
    /// True for an array without a size, which accepts any argument.
    open: bool,
    align: u64,
}

impl Formal {
    fn of_variable(variable: &Variable) -> Self {
        let array = !variable.dims.is_empty() || variable.vector > 1;
        Formal {
            ty: variable.ty,
            bytes: if array { variable.bytes() } else { None },
            open: variable.dims.iter().any(Option::is_none),
            align: variable.alignment(),
        }
    }

    fn of_type(ty: Type) -> Self {
        Formal { ty, bytes: None, open: false, align: u64::from(ty.bytes()) }
    }

    fn size(&self) -> u64 {
        self.bytes.unwrap_or_else(|| u64::from(self.ty.bytes()))
    }
}

/// Returns the parameters of a function as seen by callers.
pub(super) fn formals(function: &Function, params: &[Param]) -> Vec<Formal> {
    let formal = |param: &Param| match param {
        Param::Memory(var) => Formal::of_variable(&function.variables[*var]),
        Param::Reg(reg) => Formal::of_type(function.regs[*reg].ty),
    };
    params.iter().map(formal).collect()
}

impl BodyChecker<'_, '_> {
    pub(super) fn call(&mut self, inst: Inst, call: &Call) {
        let (name, span, results, params);
        match call.callee {
            Callee::Direct(func) => {
                let callee = &self.module.functions[func];
                if callee.is_kernel {
                    let message = format!("`{}` is a kernel and cannot be called", callee.name);
                    let diagnostic = Diagnostic::error(codes::BAD_CALLEE, message).help("only a `.func` can be called");
                    return self.push(inst, diagnostic, "a kernel");
                }
                name = callee.name.clone();
                span = callee.span;
                results = formals(callee, &callee.results);
                params = formals(callee, &callee.params);
            }
            Callee::Indirect { reg, proto } => {
                let data = &self.function.regs[reg];
                let pointer = matches!(data.ty.kind(), TypeKind::Bits | TypeKind::Signed | TypeKind::Unsigned);
                if !pointer || !matches!(data.ty.bits(), 32 | 64) {
                    let message = format!("`{}` is a `{}` register and holds no address of a function", data.name, data.ty);
                    self.report(inst, codes::BAD_CALLEE, message, "not a pointer");
                }
                let Some(proto) = proto else {
                    let message = format!("a call through `{}` without a prototype", data.name);
                    let diagnostic = Diagnostic::error(codes::BAD_CALLEE, message)
                        .help("declare one, `name: .callprototype (.param .b32 _) _ (.param .b32 _);`, and name it last");
                    return self.push(inst, diagnostic, "what it takes is not known");
                };
                let proto = &self.function.protos[proto];
                name = proto.name.clone();
                span = proto.span;
                let formals = |list: &[Variable]| -> Vec<Formal> {
                    let formal = |v: &Variable| {
                        if v.space == Space::Reg { Formal::of_type(v.ty) } else { Formal::of_variable(v) }
                    };
                    list.iter().map(formal).collect()
                };
                results = formals(&proto.results);
                params = formals(&proto.params);
            }
        }
        self.arguments(inst, &name, span, "result", &results, &call.results);
        self.arguments(inst, &name, span, "argument", &params, &call.arguments);
    }

    fn arguments(&mut self, inst: Inst, name: &str, span: Span, what: &str, formals: &[Formal], actuals: &[Operand]) {
        if formals.len() != actuals.len() {
            let plural = if formals.len() == 1 { "" } else { "s" };
            let message = format!("`{name}` has {} {what}{plural}, and the call names {}", formals.len(), actuals.len());
            let mut diagnostic = Diagnostic::error(codes::ARGUMENT_COUNT, message);
            if !span.is_synthetic() {
                diagnostic = diagnostic.label(span, "declared here");
            }
            return self.push(inst, diagnostic, "another number");
        }
        for (index, (formal, actual)) in formals.iter().zip(actuals).enumerate() {
            if let Some(why) = self.bad_argument(formal, actual, what == "result") {
                let message = format!("{what} {} of the call of `{name}` does not fit: {why}", index + 1);
                let mut diagnostic = Diagnostic::error(codes::BAD_ARGUMENT, message);
                if !span.is_synthetic() {
                    diagnostic = diagnostic.label(span, "declared here");
                }
                self.push(inst, diagnostic, &format!("{what} {}", index + 1));
            }
        }
    }

    fn bad_argument(&self, formal: &Formal, actual: &Operand, is_result: bool) -> Option<String> {
        match actual {
            Operand::Sink if is_result => None,
            Operand::Reg(reg) => {
                let data = &self.function.regs[*reg];
                if formal.bytes.is_some() {
                    return Some(format!("`{}` is a register, and an array is expected", data.name));
                }
                disagreement(formal.ty, data.ty, false)
                    .map(|_| format!("`{}` is a `{}` register, and a `{}` is expected", data.name, data.ty, formal.ty))
            }
            Operand::Imm(imm) if !is_result => {
                if formal.bytes.is_some() {
                    return Some(format!("`{imm}` is a number, and an array is expected"));
                }
                bad_immediate(formal.ty, *imm).map(|(wanted, _)| format!("`{imm}` is not {wanted}"))
            }
            Operand::Symbol(Symbol::Local(var), 0) => {
                let variable = &self.function.variables[*var];
                if variable.space != Space::Param {
                    return Some(format!("`{}` is in `{}`, not in `.param`", variable.name, variable.space));
                }
                if self.is_param(*var) {
                    return Some(format!("`{}` is a parameter of the caller itself", variable.name));
                }
                self.bad_variable(formal, variable)
            }
            _ => Some("a register, a number or a `.param` variable is expected".into()),
        }
    }

    fn bad_variable(&self, formal: &Formal, variable: &Variable) -> Option<String> {
        if formal.open {
            return None;
        }
        let actual = Formal::of_variable(variable);
        if actual.size() != formal.size() {
            return Some(format!("`{}` has {} bytes, and {} are expected", variable.name, actual.size(), formal.size()));
        }
        let scalars = actual.bytes.is_none() && formal.bytes.is_none();
        if scalars && disagreement(formal.ty, actual.ty, false).is_some() {
            return Some(format!("`{}` is a `{}`, and a `{}` is expected", variable.name, actual.ty, formal.ty));
        }
        if actual.align != formal.align {
            return Some(format!("`{}` is aligned to {} bytes, and {} are expected", variable.name, actual.align, formal.align));
        }
        None
    }
}
