//! Builder of a module.

use super::call::Callable;
use super::function::FunctionBuilder;
use super::{canonical, codes};
use crate::ids::Func;
use crate::inst::Symbol;
use crate::module::{FileEntry, Function, Item, Linkage, Module, Param, Target, Variable};
use crate::types::{IsaVersion, Space, Type};
use crate::verify::{Verified, verify};
use broadloom_diag::{Diagnostic, Diagnostics};
use std::collections::HashSet;

/// Builder of a module: variables, kernels, functions. See the [module's examples](super).
#[derive(Debug)]
pub struct ModuleBuilder {
    module: Module,
    diagnostics: Diagnostics,
    /// Kernels and functions that were started but not yet defined.
    open: HashSet<Func>,
    names: HashSet<String>,
}

impl ModuleBuilder {
    /// Creates an empty module with 64-bit addresses.
    pub fn new(version: IsaVersion, target: Target) -> Self {
        ModuleBuilder {
            module: Module::new(version, target),
            diagnostics: Diagnostics::new(),
            open: HashSet::new(),
            names: HashSet::new(),
        }
    }

    fn take_name(&mut self, name: &str) {
        if !self.names.insert(name.to_owned()) {
            let message = format!("two things of the module are called `{name}`");
            self.diagnostics.push(Diagnostic::error(codes::BAD_NAME, message));
        }
    }

    /// Adds a file that `.loc` refers to by its number.
    pub fn file(&mut self, number: u32, name: &str) {
        self.module.items.push(Item::File(FileEntry { number, name: name.to_owned(), stamp: None }));
    }

    /// Adds a variable.
    pub fn variable(&mut self, variable: Variable) -> Symbol {
        self.take_name(&variable.name);
        let var = self.module.variables.push(variable);
        self.module.items.push(Item::Variable(var));
        Symbol::Var(var)
    }

    /// Adds a visible, zero-initialised variable in global memory. An empty `dims` means a single element.
    pub fn global(&mut self, name: &str, ty: Type, dims: &[u64]) -> Symbol {
        let dims = dims.iter().copied().map(Some).collect();
        self.variable(Variable { dims, linkage: Linkage::Visible, ..Variable::new(name, Space::Global, ty) })
    }

    /// Adds dynamic shared memory, whose size is set by the launch.
    pub fn dynamic_shared(&mut self, name: &str, ty: Type, align: u32) -> Symbol {
        let variable = Variable::new(name, Space::Shared, ty);
        self.variable(Variable { dims: vec![None], linkage: Linkage::Extern, align: Some(align), ..variable })
    }

    fn open(&mut self, name: &str, is_kernel: bool) -> FunctionBuilder {
        self.take_name(name);
        let func = self.module.functions.push(Function::new(name, is_kernel));
        self.open.insert(func);
        FunctionBuilder::new(name, is_kernel, func)
    }

    /// Starts a kernel. Pass it to [`define`](Self::define) when it is complete.
    pub fn kernel(&mut self, name: &str) -> FunctionBuilder {
        self.open(name, true)
    }

    /// Starts a function. Pass it to [`define`](Self::define) when it is complete.
    pub fn function(&mut self, name: &str) -> FunctionBuilder {
        self.open(name, false)
    }

    /// Adds a complete kernel or function to the module.
    pub fn define(&mut self, mut builder: FunctionBuilder) -> Callable {
        builder.close();
        let FunctionBuilder { mut function, func, diagnostics, .. } = builder;
        let known = self.module.functions.get(func).is_some_and(|own| own.name == function.name);
        if !known || !self.open.remove(&func) {
            let message = format!("`{}` was not started by this module", function.name);
            self.diagnostics.push(Diagnostic::error(codes::BAD_FUNCTION, message));
            return Callable::of(func, &function);
        }
        if !diagnostics.has_errors() {
            canonical::renumber_function(&mut function);
        }
        self.diagnostics.extend(diagnostics);
        let callable = Callable::of(func, &function);
        self.module.functions[func] = function;
        self.module.items.push(Item::Definition(func));
        callable
    }

    /// Declares a function that is defined in another module or by the executor (`vprintf`, `malloc`, …).
    pub fn external(&mut self, name: &str, results: &[Type], params: &[Type]) -> Callable {
        self.take_name(name);
        let mut function = Function::new(name, false);
        function.linkage = Linkage::Extern;
        let mut declare = |prefix: &str, types: &[Type]| -> Vec<Param> {
            let variable = |(index, ty): (usize, &Type)| {
                Param::Memory(function.variables.push(Variable::new(format!("{name}_{prefix}_{index}"), Space::Param, *ty)))
            };
            types.iter().enumerate().map(variable).collect()
        };
        let (results, params) = (declare("retval", results), declare("param", params));
        function.results = results;
        function.params = params;
        let func = self.module.functions.push(function);
        self.module.items.push(Item::Declaration(func));
        Callable::of(func, &self.module.functions[func])
    }

    /// Returns the module, or all mistakes of the calls that built it.
    ///
    /// The module is canonical: parsing its printed text gives the same module.
    pub fn finish(mut self) -> Result<Module, Diagnostics> {
        let mut open: Vec<Func> = self.open.into_iter().collect();
        open.sort();
        for func in open {
            let message = format!("`{}` was started and never defined", self.module.functions[func].name);
            self.diagnostics.push(Diagnostic::error(codes::BAD_FUNCTION, message));
        }
        if self.diagnostics.has_errors() {
            return Err(self.diagnostics);
        }
        canonical::order_items(&mut self.module);
        Ok(self.module)
    }

    /// Returns the finished and verified module.
    pub fn verified(self) -> Result<Verified, Diagnostics> {
        verify(self.finish()?)
    }
}
