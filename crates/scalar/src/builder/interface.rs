//! Parameters, accessors, and the end of a function or kernel.

use super::{Builder, Memory, Operand, Value};
use crate::body::Statement;
use crate::declaration::{AccessorDecl, AccessorKind, ParameterDecl, ParameterKind};
use crate::error::{Error, Result};
use crate::function::Function;
use crate::id::AccessorId;
use crate::kernel::{Kernel, LaunchBounds};
use crate::memory::Base;
use crate::op::Op;
use crate::types::{Element, Type};

/// An accessor of the function under construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Accessor {
    pub(crate) id: AccessorId,
    pub(crate) owner: u32,
}

impl Builder {
    fn add_parameter(&self, name: &str, ty: Type, kind: ParameterKind) -> Value {
        let index = {
            let mut state = self.state.borrow_mut();
            state.parameters.push(ParameterDecl { name: name.to_owned(), ty, kind });
            state.parameters.len() - 1
        };
        self.pure(Op::Parameter(index as u32), ty)
    }

    pub(crate) fn redeclare(&self, parameter: &ParameterDecl) -> Value {
        self.add_parameter(&parameter.name, parameter.ty, parameter.kind)
    }

    /// Declares a parameter. Parameters of kernels have one lane.
    #[track_caller]
    pub fn parameter(&self, name: &str, ty: impl Into<Type>) -> Value {
        let ty = ty.into();
        if self.is_kernel && !ty.is_scalar() {
            return self.fail(format!("a kernel with a parameter of type `{ty}`"));
        }
        self.add_parameter(name, ty, ParameterKind::Value)
    }

    /// Declares a parameter of a kernel that is the address of global memory.
    #[track_caller]
    pub fn pointer(&self, name: &str, element: Element) -> Memory {
        self.kernel_only("a pointer");
        let value = self.add_parameter(name, Type::U64, ParameterKind::Pointer(element));
        Memory { base: Base::Global(value.id), element, owner: self.owner }
    }

    /// Declares an input or output. Positions have `rank` indices. Queues have none.
    pub fn accessor(&self, name: &str, kind: AccessorKind, ty: impl Into<Type>, rank: u8) -> Accessor {
        let mut state = self.state.borrow_mut();
        state.accessors.push(AccessorDecl { name: name.to_owned(), kind, ty: ty.into(), rank });
        Accessor { id: AccessorId(state.accessors.len() as u32 - 1), owner: self.owner }
    }

    #[track_caller]
    fn accessor_decl(&self, accessor: Accessor, kind: AccessorKind, indices: Option<usize>) -> Option<Type> {
        let state = self.state.borrow();
        let decl = state.accessors.get(accessor.id.index()).filter(|_| accessor.owner == self.owner);
        let problem = match decl {
            None => "an accessor of another function is used".to_owned(),
            Some(decl) if decl.kind != kind => format!("`{}` cannot be used like this", decl.name),
            Some(decl) => match indices {
                Some(count) if count != usize::from(decl.rank) => {
                    format!("a position of `{}` has {} indices, not {count}", decl.name, decl.rank)
                }
                _ => return Some(decl.ty),
            },
        };
        drop(state);
        self.fail(problem);
        None
    }

    #[track_caller]
    fn indices(&self, indices: &[Operand]) -> Option<crate::id::Ids> {
        indices.iter().map(|index| self.resolve_index(*index).map(|value| value.id)).collect()
    }

    /// Reads the element of an input at a position.
    #[track_caller]
    pub fn read(&self, input: Accessor, position: &[Operand]) -> Value {
        let Some(ty) = self.accessor_decl(input, AccessorKind::Input, Some(position.len())) else { return self.poison() };
        let Some(position) = self.indices(position) else { return self.poison() };
        self.place(Op::Read(input.id, position), ty)
    }

    /// Reads the element of a window at offsets from the position of the thread.
    #[track_caller]
    pub fn window(&self, window: Accessor, offsets: &[Operand]) -> Value {
        let Some(ty) = self.accessor_decl(window, AccessorKind::Window, Some(offsets.len())) else { return self.poison() };
        let Some(offsets) = self.indices(offsets) else { return self.poison() };
        self.place(Op::Window(window.id, offsets), ty)
    }

    /// Writes the element of an output at a position.
    #[track_caller]
    pub fn write(&self, output: Accessor, position: &[Operand], value: impl Into<Operand>) {
        let Some(ty) = self.accessor_decl(output, AccessorKind::Output, Some(position.len())) else { return };
        let (Some(indices), Some(value)) = (self.indices(position), self.resolve(value.into(), ty)) else { return };
        self.statement(Statement::Write { accessor: output.id, indices, value: value.id });
    }

    /// Takes the next element of a queue.
    #[track_caller]
    pub fn pop(&self, source: Accessor) -> Value {
        let Some(ty) = self.accessor_decl(source, AccessorKind::Source, None) else { return self.poison() };
        self.place(Op::Pop(source.id), ty)
    }

    /// Reads an element of a queue without taking it. Offset 0 is the one that [`pop`](Self::pop) would take.
    #[track_caller]
    pub fn peek(&self, source: Accessor, offset: impl Into<Operand>) -> Value {
        let Some(ty) = self.accessor_decl(source, AccessorKind::Source, None) else { return self.poison() };
        let Some(offset) = self.resolve_index(offset.into()) else { return self.poison() };
        self.place(Op::Peek(source.id, offset.id), ty)
    }

    /// Appends an element to a queue.
    #[track_caller]
    pub fn push(&self, sink: Accessor, value: impl Into<Operand>) {
        let Some(ty) = self.accessor_decl(sink, AccessorKind::Sink, None) else { return };
        let Some(value) = self.resolve(value.into(), ty) else { return };
        self.statement(Statement::Push { accessor: sink.id, value: value.id });
    }

    /// States facts about the launches of the kernel. They allow better code.
    #[track_caller]
    pub fn launch_bounds(&self, bounds: LaunchBounds) {
        self.kernel_only("launch bounds");
        let threads = match (bounds.block, bounds.max_threads) {
            (Some(block), _) => block.iter().map(|&count| u64::from(count)).product(),
            (None, most) => u64::from(most.unwrap_or(1)),
        };
        if threads == 0 || threads > 1024 || bounds.max_grid.is_some_and(|grid| grid.contains(&0)) || bounds.min_blocks == Some(0)
        {
            self.fail(format!("no launch is like {bounds:?}"));
            return;
        }
        self.state.borrow_mut().bounds = bounds;
    }

    #[track_caller]
    fn check_end(&self) -> Result<()> {
        if let Some(open) = self.unfinished() {
            self.fail(format!("{open} is not ended"));
        }
        let problems = self.take_problems();
        if problems.is_empty() { Ok(()) } else { Err(Error::Invalid { name: self.name.clone(), problems }) }
    }

    /// Returns the function with these results, or all mistakes. The builder is empty afterwards, and earlier
    /// values no longer belong to it.
    #[track_caller]
    pub fn finish_function(&self, results: &[Value]) -> Result<Function> {
        let results: Vec<Option<Value>> = results.iter().map(|value| self.checked(*value)).collect();
        if self.is_kernel {
            self.fail("a kernel is ended by `finish_kernel`");
        }
        if results.contains(&None) && !self.has_failed() {
            self.fail("a result is there only because of a mistake");
        }
        self.check_end()?;
        let results = results.into_iter().flatten().map(|value| value.id).collect();
        let mut state = self.state.borrow_mut();
        let (parameters, accessors) = (std::mem::take(&mut state.parameters), std::mem::take(&mut state.accessors));
        Ok(Function::new(self.name.clone(), parameters, accessors, state.take_body(), results))
    }

    /// Returns the kernel, or all mistakes. The builder is empty afterwards, and earlier values no longer
    /// belong to it.
    #[track_caller]
    pub fn finish_kernel(&self) -> Result<Kernel> {
        if !self.is_kernel {
            self.fail("a function is ended by `finish_function`");
        }
        self.check_end()?;
        let mut state = self.state.borrow_mut();
        let parameters = std::mem::take(&mut state.parameters);
        Ok(Kernel::new(self.name.clone(), parameters, state.bounds.clone(), state.take_body()))
    }
}
