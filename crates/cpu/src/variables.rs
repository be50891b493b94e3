//! Variables of a module: allocated in the device's memory and initialised. Variables that functions declare
//! have been moved to the top of the module before.

use crate::abi::function_address;
use crate::code::AddressedItem;
use crate::memory::{Memory, Owner};
use broadloom_device::texture::{Opaques, References};
use broadloom_device::{Error, GlobalVariable, Result};
use broadloom_diag::{Code, Diagnostic, Diagnostics};
use broadloom_eval::immediate;
use broadloom_ptx::{Init, Linkage, Module, Space, Symbol, Var, Variable};
use std::collections::HashMap;

const UNRESOLVED: Code = Code("C0001");
const NARROW: Code = Code("C0002");

/// Addresses of the variables of a module.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    module: HashMap<Var, u64>,
    by_name: HashMap<String, GlobalVariable>,
    /// Handles of variables that textures and surfaces are bound to.
    handles: HashMap<Var, u64>,
    /// Handles by name.
    pub(crate) references: References,
}

impl Variables {
    /// Allocates all variables. If it fails, nothing stays allocated.
    pub(crate) fn load(module: &Module, memory: &Memory, opaques: &Opaques) -> Result<Variables> {
        let mut variables = Variables::default();
        let outcome = variables.place(module, memory, opaques);
        if let Err(error) = outcome {
            variables.unload(memory, opaques, || None);
            return Err(error);
        }
        variables.fill(module);
        Ok(variables)
    }

    /// Releases the memory once all work below the horizon is done.
    pub(crate) fn unload(&self, memory: &Memory, opaques: &Opaques, horizon: impl Fn() -> Option<u64>) {
        self.references.remove(opaques);
        for address in self.module.values() {
            if let Ok(freed) = memory.free(*address) {
                memory.release_after(freed, horizon());
            }
        }
    }

    /// Returns a variable of the module by name.
    pub(crate) fn by_name(&self, name: &str) -> Option<GlobalVariable> {
        self.by_name.get(name).copied()
    }

    /// Returns the address of an item that code names; zero if it has none.
    pub(crate) fn address(&self, named: AddressedItem) -> u64 {
        match named {
            AddressedItem::Variable(var) => self.module.get(&var).or_else(|| self.handles.get(&var)).copied().unwrap_or(0),
            // There are none: they are variables of the module.
            AddressedItem::Local(..) => 0,
            AddressedItem::Function(func) => function_address(func),
        }
    }

    fn place(&mut self, module: &Module, memory: &Memory, opaques: &Opaques) -> Result<()> {
        let mut missing = Diagnostics::new();
        if module.address_size != 64 {
            missing.push(
                Diagnostic::error(NARROW, "a module with addresses of 32 bits does not run on the CPU".to_owned())
                    .help("compile it for 64 bits, or run it in the interpreter"),
            );
        }
        for (var, variable) in module.variables.iter() {
            let owner = match variable.space {
                Space::Const => Owner::Const(variable.name.clone()),
                Space::Global | Space::Tex => Owner::Global(variable.name.clone()),
                // The compiler lays out shared and local memory.
                Space::Shared | Space::Local | Space::Param | Space::Reg | Space::Generic => continue,
            };
            if variable.linkage == Linkage::Extern {
                missing.push(
                    Diagnostic::error(UNRESOLVED, format!("`{}` is declared here and defined nowhere", variable.name))
                        .at(variable.span, "an external variable")
                        .help("link the module that defines it into this one"),
                );
                continue;
            }
            if References::is_reference(variable) {
                self.handles.insert(var, self.references.add(opaques, variable));
                continue;
            }
            let bytes = variable.bytes().unwrap_or(0);
            let address = memory.allocate_zeroed(bytes, owner)?;
            self.module.insert(var, address);
            self.by_name.insert(variable.name.clone(), GlobalVariable { address, bytes });
        }
        if missing.has_errors() { Err(Error::Unsupported(missing)) } else { Ok(()) }
    }

    fn fill(&self, module: &Module) {
        for (var, address) in &self.module {
            let variable = &module.variables[*var];
            let Some(init) = &variable.init else { continue };
            let bytes = variable.bytes().unwrap_or(0) as usize;
            // SAFETY: `place` allocated this many bytes there, all zero, and no kernel of the module has run
            // yet.
            let bytes = unsafe { std::slice::from_raw_parts_mut(*address as *mut u8, bytes) };
            self.fill_part(bytes, variable, &variable.dims, init);
        }
    }

    /// Writes an initialiser into the bytes of a variable or of one row of it. Elements without a value stay
    /// zero.
    fn fill_part(&self, bytes: &mut [u8], variable: &Variable, dims: &[Option<u64>], init: &Init) {
        let scalar = variable.ty.bytes() as usize;
        let mut put = |value: u64| {
            let count = scalar.min(bytes.len()).min(8);
            bytes[..count].copy_from_slice(&value.to_le_bytes()[..count]);
        };
        match init {
            Init::List(list) => {
                let (stride, rest) = match dims {
                    [] => (scalar, dims),
                    [_, rest @ ..] => {
                        let inner: u64 = rest.iter().map(|dim| dim.unwrap_or(1)).product();
                        (scalar * usize::from(variable.vector) * inner as usize, rest)
                    }
                };
                for (index, init) in list.iter().enumerate() {
                    let start = index.saturating_mul(stride).min(bytes.len());
                    let end = start.saturating_add(stride).min(bytes.len());
                    if start < end {
                        self.fill_part(&mut bytes[start..end], variable, rest, init);
                    }
                }
            }
            Init::Imm(imm) => put(immediate(*imm, variable.ty)),
            // The settings of a sampler take no memory.
            Init::Settings(_) => {}
            Init::Address { symbol, offset, generic: _, mask } => {
                let base = match symbol {
                    Symbol::Func(func) => function_address(*func),
                    Symbol::Var(var) | Symbol::Local(var) => self.address(AddressedItem::Variable(*var)),
                };
                let value = base.wrapping_add_signed(*offset);
                put(match mask {
                    Some(mask) if *mask != 0 => (value & mask) >> mask.trailing_zeros(),
                    _ => value,
                });
            }
        }
    }
}
