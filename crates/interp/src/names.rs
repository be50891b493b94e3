//! Names of memory for messages: arguments of the kernel, variables of the module, shared variables.

use crate::memory::Memory;
use crate::program::Program;
use broadloom_device::{demangle, param_layout};
use broadloom_ptx::{Func, Space};
use std::collections::HashMap;

/// Maximum number of words of an argument, including those of a struct, that are treated as addresses.
const MOST_WORDS: usize = 32;

/// Maximum distance at which a variable is reported as near.
const NEAR: u64 = 64 << 10;

/// Shared variable with its place.
#[derive(Clone, Debug)]
struct SharedName {
    name: String,
    start: u64,
    bytes: u64,
}

/// Argument with the words that may be addresses.
#[derive(Clone, Debug)]
struct ArgumentName {
    number: usize,
    /// Name of the parameter, if it is more than its number.
    name: Option<String>,
    words: Vec<u64>,
}

/// Names of the memory that a launch can access.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    kernel: String,
    shared: Vec<SharedName>,
    arguments: Vec<ArgumentName>,
    /// Allocations by serial number, for a watched run.
    allocations: HashMap<u64, String>,
}

impl Names {
    /// Collects the names of a launch. `shared` has the numbers of the shared variables that the kernel
    /// reaches.
    pub(crate) fn of(
        program: &Program,
        kernel: Func,
        params: &[u8],
        shared: &[u32],
        offsets: &[u64],
        dynamic_bytes: u32,
    ) -> Names {
        let function = &program.module.functions[kernel];
        let word_bytes = usize::from(program.module.address_size / 8).max(4);
        let argument = |(index, param): (usize, broadloom_device::ParamInfo)| {
            let bytes = params.get(param.offset as usize..(param.offset + param.bytes) as usize).unwrap_or_default();
            let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            let plain = param.name == format!("{}_param_{index}", function.name);
            ArgumentName {
                number: index + 1,
                name: (!plain).then(|| demangle::short(&param.name)),
                words: bytes.chunks_exact(word_bytes).take(MOST_WORDS).map(word).collect(),
            }
        };
        let arguments = param_layout(function).into_iter().enumerate().map(argument).collect();
        let mut shared: Vec<SharedName> = shared
            .iter()
            .map(|number| {
                let variable = &program.places.shared_variables[*number as usize];
                let bytes = if variable.dynamic { u64::from(dynamic_bytes) } else { variable.bytes };
                SharedName { name: demangle::short(&variable.name), start: offsets[*number as usize], bytes }
            })
            .collect();
        shared.sort_by_key(|variable| variable.start);
        Names { kernel: demangle::short(&function.name), shared, arguments, allocations: HashMap::new() }
    }

    /// Adds names of allocations, by serial number: buffers that arguments point into, and variables.
    pub(crate) fn find_allocations(&mut self, program: &Program, memory: &mut Memory) {
        let places = &program.places;
        let module = places.addresses.iter().map(|(var, address)| (&program.module.variables[*var], *address));
        let functions =
            places.local_addresses.iter().map(|((func, var), at)| (&program.module.functions[*func].variables[*var], *at));
        for (variable, address) in module.chain(functions) {
            if let Some((serial, _)) = memory.serial_of(address) {
                let space = if variable.space == Space::Const { "constant" } else { "global" };
                let (name, bytes) = (demangle::short(&variable.name), variable.bytes().unwrap_or(0));
                self.allocations.insert(serial, format!("the {space} variable `{name}` ({bytes} bytes)"));
            }
        }
        let words: Vec<u64> = self.arguments.iter().flat_map(|argument| argument.words.clone()).collect();
        for word in words {
            if let Ok(found) = memory.find(word, 1)
                && let Some(argument) = self.argument(found.start, found.size)
            {
                let name = format!("{argument} (a buffer of {} bytes)", found.size);
                self.allocations.entry(found.serial).or_insert(name);
            }
        }
    }

    /// Adds a name for memory that the kernel allocated from the heap.
    pub(crate) fn add_heap(&mut self, serial: u64, bytes: u64) {
        self.allocations.insert(serial, format!("memory from malloc ({bytes} bytes)"));
    }

    /// Returns the arguments that point into a range: ``argument 2 of `k` ``.
    pub(crate) fn argument(&self, start: u64, bytes: u64) -> Option<String> {
        let points = |word: &u64| word.checked_sub(start).is_some_and(|offset| offset < bytes.max(1));
        let found: Vec<&ArgumentName> = self.arguments.iter().filter(|argument| argument.words.iter().any(points)).collect();
        let kernel = &self.kernel;
        match found.as_slice() {
            [] => None,
            [ArgumentName { number, name: Some(name), .. }] => Some(format!("argument {number} (`{name}`) of `{kernel}`")),
            [ArgumentName { number, name: None, .. }] => Some(format!("argument {number} of `{kernel}`")),
            [first @ .., last] => {
                let first: Vec<String> = first.iter().map(|argument| argument.number.to_string()).collect();
                Some(format!("arguments {} and {} of `{kernel}`", first.join(", "), last.number))
            }
        }
    }

    /// Returns the position of a byte of an allocation: `byte 12 of argument 2 of `k``.
    pub(crate) fn in_allocation(&self, serial: u64, offset: u64) -> Option<String> {
        self.allocations.get(&serial).map(|name| format!("byte {offset} of {name}"))
    }

    /// Returns the position of a byte of shared memory: `byte 12 of `tile` (128 bytes)`.
    pub(crate) fn in_shared(&self, offset: u64) -> Option<String> {
        let holds = |variable: &&SharedName| offset.checked_sub(variable.start).is_some_and(|at| at < variable.bytes);
        let SharedName { name, start, bytes } = self.shared.iter().find(holds)?;
        Some(format!("byte {} of `{name}` ({bytes} bytes)", offset - start))
    }

    /// Describes an address outside shared memory relative to the nearest variable.
    pub(crate) fn near_shared(&self, address: u64, size: u64) -> Option<String> {
        // A 32-bit address that went below 0 is a large number.
        if address >> 31 == 1 || address >> 31 == u64::MAX >> 31 {
            let SharedName { name, start, bytes } = self.shared.first()?;
            let gap = (0u64.wrapping_sub(address) & 0xffff_ffff) + start;
            return (gap <= NEAR).then(|| format!("{gap} bytes before `{name}` ({bytes} bytes)"));
        }
        let end = |variable: &SharedName| variable.start + variable.bytes;
        let last = self.shared.iter().filter(|variable| variable.start <= address).max_by_key(|variable| end(variable))?;
        let past = match address.checked_sub(end(last)) {
            Some(0) => "right behind the end of".to_owned(),
            Some(gap) if gap > NEAR => return None,
            Some(gap) => format!("{gap} bytes behind the end of"),
            None if size > 0 => "partly behind the end of".to_owned(),
            None => return None,
        };
        Some(format!("{past} `{}` ({} bytes)", last.name, last.bytes))
    }
}
