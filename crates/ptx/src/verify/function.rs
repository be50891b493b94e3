//! Checks of functions and kernels: parameters, directives, linkage, aliases (manual: "Kernel and Function
//! Directives", "Performance-Tuning Directives").

use super::call::formals;
use super::{BodyChecker, Checker, codes};
use crate::module::{BodyForm, Directive, Function, Item, Linkage, Param, Variable};
use crate::parse::FUNCTION_DIRECTIVES;
use crate::types::{IsaVersion, TypeKind};
use broadloom_diag::{Diagnostic, Span};

/// Parameter bytes that every kernel may have.
const PARAM_BYTES: u64 = 4352;
/// Parameter bytes from version 8.1 and sm_70 on.
const LARGE_PARAM_BYTES: u64 = 32764;

/// Owner of a directive.
#[derive(Clone, Copy, PartialEq)]
enum Owner {
    Kernel,
    Function,
    Both,
}

fn owner(word: &str) -> Owner {
    match word {
        "noreturn" | "unique" | "abi_preserve" | "abi_preserve_control" => Owner::Function,
        "attribute.unified" => Owner::Both,
        _ => Owner::Kernel,
    }
}

/// Returns the size in bytes of a kernel's parameters, laid out in order with their alignment.
pub(super) fn packed_size<'v>(variables: impl Iterator<Item = &'v Variable>) -> u64 {
    let mut size = 0u64;
    for variable in variables {
        let align = variable.alignment().max(1);
        size = size.checked_next_multiple_of(align).unwrap_or(u64::MAX).saturating_add(variable.bytes().unwrap_or(u64::MAX));
    }
    size
}

impl<'m> Checker<'m> {
    pub(super) fn functions(&mut self) {
        let module = self.module;
        for function in module.functions.values() {
            if self.diagnostics.is_full() {
                return;
            }
            self.function(function);
        }
        self.aliases();
    }

    pub(super) fn function(&mut self, function: &'m Function) {
        self.linkage(function);
        self.directives(function);
        self.parameters(function);
        self.function_variables(function);
        let mut body = BodyChecker { module: self.module, function, checker: self };
        body.blocks();
        for (inst, _) in function.instructions() {
            if body.checker.diagnostics.is_full() {
                return;
            }
            body.instruction(inst);
        }
        if !body.checker.diagnostics.has_errors() {
            body.body_form();
        }
    }

    fn wrong(&mut self, code: broadloom_diag::Code, function: &Function, message: String) {
        self.report(code, message, function.span, "");
    }

    fn linkage(&mut self, function: &Function) {
        let name = &function.name;
        match function.linkage {
            Linkage::Extern if function.has_body => {
                self.wrong(codes::BAD_LINKAGE, function, format!("`{name}` is `.extern` and has a body"));
            }
            Linkage::Common => self.wrong(codes::BAD_LINKAGE, function, format!("the function `{name}` cannot be `.common`")),
            Linkage::Private | Linkage::Visible | Linkage::Extern | Linkage::Weak => {}
        }
    }

    fn directives(&mut self, function: &Function) {
        let what = if function.is_kernel { "kernel" } else { "function" };
        let mut words: Vec<&str> = vec![];
        for directive in &function.directives {
            let Directive::Words(word, numbers) = directive else { continue };
            words.push(word);
            let (least, most) = match FUNCTION_DIRECTIVES.iter().find(|(name, ..)| name == word) {
                Some((_, least, most)) => (*least, *most),
                None if *word == "attribute.unified" => (4, 4),
                None => {
                    let message = format!("`.{word}` of `{}` is not a directive of a function", function.name);
                    self.wrong(codes::BAD_DIRECTIVE, function, message);
                    continue;
                }
            };
            let allowed = match owner(word) {
                Owner::Both => true,
                Owner::Kernel => function.is_kernel,
                Owner::Function => !function.is_kernel,
            };
            if !allowed {
                let message = format!("`.{word}` of `{}`, which is a {what}", function.name);
                self.wrong(codes::BAD_DIRECTIVE, function, message);
            }
            if numbers.len() < least || numbers.len() > most {
                let message = format!("`.{word}` of `{}` takes {least} to {most} numbers, not {}", function.name, numbers.len());
                self.wrong(codes::BAD_DIRECTIVE, function, message);
            }
            let counts = matches!(
                *word,
                "maxntid" | "reqntid" | "minnctapersm" | "maxnctapersm" | "maxnreg" | "reqnctapercluster" | "maxclusterrank"
            );
            if counts && numbers.contains(&0) {
                let message = format!("`.{word}` of `{}` must be positive", function.name);
                self.wrong(codes::BAD_DIRECTIVE, function, message);
            }
        }
        if words.contains(&"maxntid") && words.contains(&"reqntid") {
            let message = format!("`{}` has both `.maxntid` and `.reqntid`", function.name);
            self.wrong(codes::BAD_DIRECTIVE, function, message);
        }
        if words.contains(&"noreturn") && !function.results.is_empty() {
            let message = format!("`{}` has a result and is `.noreturn`", function.name);
            self.wrong(codes::BAD_DIRECTIVE, function, message);
        }
    }

    fn parameters(&mut self, function: &Function) {
        let name = &function.name;
        if function.is_kernel && !function.results.is_empty() {
            self.wrong(codes::BAD_PARAM, function, format!("the kernel `{name}` has a result"));
        }
        let in_memory = function.results.iter().filter(|param| matches!(param, Param::Memory(_))).count();
        // SSA form is an intermediate form and is never printed as PTX.
        if function.results.len() > 1 && in_memory > 0 && function.form == BodyForm::Registers {
            let message = format!("`{name}` has several results: they must be in registers");
            self.wrong(codes::BAD_PARAM, function, message);
        }
        for param in function.results.iter().chain(&function.params) {
            match param {
                Param::Reg(reg) => {
                    let reg = &function.regs[*reg];
                    if function.is_kernel {
                        let message = format!("`{}`, a parameter of the kernel `{name}`, must be in `.param`", reg.name);
                        self.wrong(codes::BAD_PARAM, function, message);
                    }
                }
                Param::Memory(var) => self.memory_parameter(function, &function.variables[*var]),
            }
        }
        if !function.is_kernel {
            return;
        }
        let large = self.module.version >= IsaVersion::new(8, 1) && self.module.target.sm >= 70;
        let limit = if large { LARGE_PARAM_BYTES } else { PARAM_BYTES };
        let size = packed_size(function.memory_params());
        if size > limit {
            let message = format!("the parameters of `{name}` take {size} bytes, and a kernel has {limit} for them");
            let mut diagnostic = Diagnostic::error(codes::LIMIT, message);
            if !large && size <= LARGE_PARAM_BYTES {
                diagnostic = diagnostic.help(format!("from `.version 8.1` and `sm_70` on there are {LARGE_PARAM_BYTES}"));
            }
            self.push(diagnostic, function.span, "too many");
        }
    }

    fn memory_parameter(&mut self, function: &Function, variable: &Variable) {
        let (name, span) = (&variable.name, variable.span);
        if variable.vector > 1 {
            let message = format!("the parameter `{name}` of `{}` is a vector", function.name);
            let diagnostic = Diagnostic::error(codes::BAD_PARAM, message).help("pass an aligned array of `.b8`");
            self.push(diagnostic, span, "parameters are numbers or arrays");
        }
        if variable.init.is_some() {
            let message = format!("the parameter `{name}` of `{}` has first contents", function.name);
            self.report(codes::BAD_PARAM, message, span, "the caller says what it holds");
        }
        let open = variable.dims.iter().any(|dim| matches!(dim, None | Some(0)));
        let may_be_open = !function.is_kernel && variable.dims.first() == Some(&None) && variable.dims.len() == 1;
        if open && !may_be_open {
            let message = format!("the parameter `{name}` of `{}` is an array without a size", function.name);
            self.report(codes::INCOMPLETE, message, span, "how many elements?");
        }
        if variable.pointer.is_some() && !function.is_kernel {
            let message = format!("`.ptr` at `{name}`: only parameters of kernels say what they point to");
            self.report(codes::BAD_PARAM, message, span, "");
        }
        if variable.ty.kind() == TypeKind::Opaque && !function.is_kernel {
            let message = format!("the parameter `{name}` of `{}` is a `{}`", function.name, variable.ty);
            self.report(codes::BAD_PARAM, message, span, "only kernels take these; pass the handle as a `.u64`");
        }
    }

    fn aliases(&mut self) {
        let module = self.module;
        for item in &module.items {
            let Item::Alias(alias) = item else { continue };
            let (new, old) = (&module.functions[alias.alias], &module.functions[alias.aliasee]);
            let wrong = if new.is_kernel || old.is_kernel {
                "kernels have no alias"
            } else if new.has_body {
                "the new name has a body of its own"
            } else if !old.has_body {
                "what it means has no body"
            } else if formals(new, &new.params) != formals(old, &old.params)
                || formals(new, &new.results) != formals(old, &old.results)
            {
                "the two are declared in different ways"
            } else {
                continue;
            };
            let message = format!("`{}` cannot be an alias of `{}`: {wrong}", new.name, old.name);
            self.report(codes::BAD_ALIAS, message, new.span, "");
        }
    }
}

/// Returns the location of a variable, or of its function if it has none.
pub(super) fn place(variable: &Variable, function: Option<&Function>) -> Span {
    match function {
        Some(function) if variable.span.is_synthetic() => function.span,
        _ => variable.span,
    }
}
