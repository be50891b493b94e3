//! Loaded module: variables placed, functions decoded.

use crate::decode::{self, Routine};
use crate::memory::{Memory, Owner};
use crate::op::Handler;
use crate::variables::{SharedVariable, VariableAddresses, function_address};
use broadloom_device::texture::{Opaques, References};
use broadloom_device::{Error, GlobalVariable, Result};
use broadloom_diag::{Code, Diagnostic, Diagnostics};
use broadloom_eval::immediate;
use broadloom_ptx::{Func, Init, Linkage, Printer, Space, Symbol, Variable, Verified};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub(crate) const UNRESOLVED: Code = Code("I0001");
const REFUSED: Code = Code("I0002");

/// Loaded module.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) module: Arc<Verified>,
    pub(crate) places: VariableAddresses,
    pub(crate) routines: Vec<Routine>,
    by_name: HashMap<String, GlobalVariable>,
    /// Variables that textures and surfaces are bound to.
    pub(crate) references: References,
}

impl Program {
    pub(crate) fn load(module: &Arc<Verified>, memory: &mut Memory, opaques: &Opaques) -> Result<Program> {
        let mut places = VariableAddresses::default();
        let mut references = References::default();
        let mut owned = vec![];
        let outcome = place_variables(module, memory, opaques, &mut references, &mut places, &mut owned)
            .and_then(|by_name| fill_variables(module, memory, &places).map(|()| by_name));
        let by_name = match outcome {
            Ok(by_name) => by_name,
            Err(error) => {
                references.remove(opaques);
                for address in owned {
                    let _ = memory.free(address);
                }
                return Err(error);
            }
        };
        let routines = module.functions.keys().map(|func| decode::decode(module, func, &places)).collect();
        Ok(Program { module: module.clone(), places, routines, by_name, references })
    }

    pub(crate) fn unload(&self, memory: &mut Memory, opaques: &Opaques) {
        self.references.remove(opaques);
        for address in self.places.addresses.values().chain(self.places.local_addresses.values()) {
            let _ = memory.free(*address);
        }
    }

    pub(crate) fn routine(&self, func: Func) -> &Routine {
        &self.routines[func.as_u32() as usize]
    }

    /// Returns all global and constant variables, including those of functions.
    pub(crate) fn variables(&self) -> impl Iterator<Item = GlobalVariable> + '_ {
        let bytes = |variable: &Variable| if References::is_reference(variable) { 0 } else { variable.bytes().unwrap_or(0) };
        let module = self.places.addresses.iter().map(move |(var, address)| (*address, bytes(&self.module.variables[*var])));
        let functions = self
            .places
            .local_addresses
            .iter()
            .map(move |((func, var), address)| (*address, bytes(&self.module.functions[*func].variables[*var])));
        module.chain(functions).map(|(address, bytes)| GlobalVariable { address, bytes })
    }

    pub(crate) fn variable(&self, name: &str) -> Option<GlobalVariable> {
        self.by_name.get(name).copied()
    }

    /// Returns the instructions of some functions that the interpreter does not run, each with its span.
    pub(crate) fn refused(&self, functions: impl Iterator<Item = Func>) -> Diagnostics {
        let mut refused = Diagnostics::new();
        for func in functions {
            let function = &self.module.functions[func];
            for op in self.routine(func).ops.iter().filter(|op| matches!(op.handler, Handler::Refused)) {
                let data = &function.insts[op.inst];
                let why = match data.class() {
                    Some(class) => format!("an instruction of the class `{class:?}`").to_lowercase(),
                    None => "not an instruction that Broadloom knows".to_owned(),
                };
                let mut diagnostic =
                    Diagnostic::error(REFUSED, format!("the interpreter does not run `{}`", data.mnemonic_text()))
                        .at(data.span, why);
                if data.span.is_synthetic() {
                    let text = Printer::new(&self.module).instruction(function, op.inst);
                    diagnostic = diagnostic.note(format!("in `{}`: {text}", function.name));
                }
                refused.push(diagnostic);
            }
        }
        refused
    }

    /// Returns all functions that a kernel can reach by name or by an address taken in code it can reach.
    pub(crate) fn reachable(&self, kernel: Func) -> Vec<Func> {
        let mut found = vec![kernel];
        let mut seen = HashSet::from([kernel]);
        let mut next = 0;
        let (mut indirect, mut all) = (false, false);
        while next < found.len() {
            let routine = self.routine(found[next]);
            next += 1;
            indirect |= routine.calls_indirectly;
            found.extend(routine.calls.iter().filter(|func| seen.insert(**func)));
            // A pointer may come from memory: then every function whose address is taken anywhere may be
            // called.
            if indirect && !all && next == found.len() {
                let can_be_called =
                    |func: &Func| !self.module.functions[*func].is_kernel && self.module.functions[*func].has_body;
                found.extend(self.module.functions.keys().filter(can_be_called).filter(|func| seen.insert(*func)));
                all = true;
            }
        }
        found
    }
}

fn place_variables(
    module: &Verified,
    memory: &mut Memory,
    opaques: &Opaques,
    references: &mut References,
    places: &mut VariableAddresses,
    owned: &mut Vec<u64>,
) -> Result<HashMap<String, GlobalVariable>> {
    let mut by_name = HashMap::new();
    let mut missing = Diagnostics::new();
    let module_variables = module.variables.iter().map(|(var, variable)| (None, var, variable));
    let function_variables = module
        .functions
        .iter()
        .flat_map(|(func, function)| function.variables.iter().map(move |(var, variable)| (Some(func), var, variable)));
    for (func, var, variable) in module_variables.chain(function_variables) {
        match variable.space {
            Space::Shared => {
                let number = places.shared_variables.len() as u32;
                // An array without a size gets the bytes of the launch, with any linkage.
                let open = variable.dims.first() == Some(&None);
                places.shared_variables.push(SharedVariable {
                    name: variable.name.clone(),
                    bytes: variable.bytes().unwrap_or(0),
                    align: variable.alignment(),
                    dynamic: open || variable.linkage == Linkage::Extern && variable.bytes() == Some(0),
                });
                match func {
                    None => places.shared.insert(var, number),
                    Some(func) => places.local_shared.insert((func, var), number),
                };
            }
            Space::Global | Space::Const | Space::Tex => {
                if variable.linkage == Linkage::Extern {
                    missing.push(
                        Diagnostic::error(UNRESOLVED, format!("`{}` is declared here and defined nowhere", variable.name))
                            .at(variable.span, "an external variable")
                            .help("link the module that defines it into this one"),
                    );
                    continue;
                }
                if References::is_reference(variable) {
                    let handle = references.add(opaques, variable);
                    match func {
                        None => places.addresses.insert(var, handle),
                        Some(func) => places.local_addresses.insert((func, var), handle),
                    };
                    continue;
                }
                let owner = match variable.space {
                    Space::Const => Owner::Const(variable.name.clone()),
                    Space::Global | Space::Tex | Space::Generic | Space::Reg | Space::Local | Space::Shared | Space::Param => {
                        Owner::Global(variable.name.clone())
                    }
                };
                let bytes = variable.bytes().unwrap_or(0);
                let address = memory.allocate(bytes, owner)?;
                owned.push(address);
                match func {
                    None => {
                        places.addresses.insert(var, address);
                        by_name.insert(variable.name.clone(), GlobalVariable { address, bytes });
                    }
                    Some(func) => {
                        places.local_addresses.insert((func, var), address);
                    }
                }
            }
            Space::Local | Space::Param | Space::Reg | Space::Generic => {}
        }
    }
    if missing.has_errors() { Err(Error::Unsupported(missing)) } else { Ok(by_name) }
}

fn fill_variables(module: &Verified, memory: &mut Memory, places: &VariableAddresses) -> Result<()> {
    let module_variables = module.variables.iter().filter_map(|(var, variable)| Some((*places.addresses.get(&var)?, variable)));
    let function_variables = module.functions.iter().flat_map(|(func, function)| {
        function.variables.iter().filter_map(move |(var, variable)| Some((*places.local_addresses.get(&(func, var))?, variable)))
    });
    for (address, variable) in module_variables.chain(function_variables) {
        let Some(init) = variable.init.as_ref().filter(|_| !References::is_reference(variable)) else { continue };
        let bytes = memory.range("initialise a variable", address, variable.bytes().unwrap_or(0))?;
        fill(bytes, variable, &variable.dims, init, places);
    }
    Ok(())
}

/// Writes an initialiser into the bytes of a variable or of one row of it. Elements without a value stay
/// zero.
fn fill(bytes: &mut [u8], variable: &Variable, dims: &[Option<u64>], init: &Init, places: &VariableAddresses) {
    let scalar = variable.ty.bytes() as usize;
    match init {
        Init::List(list) => {
            let inner: u64 = dims.iter().skip(1).map(|dim| dim.unwrap_or(1)).product();
            let vectors = if dims.is_empty() { 1 } else { usize::from(variable.vector) };
            let stride = if dims.is_empty() { scalar } else { scalar * vectors * inner as usize };
            let rest = dims.get(1..).unwrap_or(&[]);
            for (index, init) in list.iter().enumerate() {
                if let Some(part) = bytes.get_mut(index * stride..).filter(|part| !part.is_empty()) {
                    let end = stride.min(part.len());
                    fill(&mut part[..end], variable, rest, init, places);
                }
            }
        }
        Init::Imm(imm) => {
            let value = immediate(*imm, variable.ty);
            let count = scalar.min(bytes.len()).min(8);
            bytes[..count].copy_from_slice(&value.to_le_bytes()[..count]);
        }
        // The settings of a sampler take no memory.
        Init::Settings(_) => {}
        Init::Address { symbol, offset, generic: _, mask } => {
            let base = match symbol {
                Symbol::Func(func) => function_address(*func),
                Symbol::Var(var) | Symbol::Local(var) => places.addresses.get(var).copied().unwrap_or(0),
            };
            let mut value = base.wrapping_add_signed(*offset);
            if let Some(mask) = mask
                && *mask != 0
            {
                value = (value & mask) >> mask.trailing_zeros();
            }
            let count = scalar.min(bytes.len()).min(8);
            bytes[..count].copy_from_slice(&value.to_le_bytes()[..count]);
        }
    }
}
