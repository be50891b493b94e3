//! Checks of variables and their initialisers (manual: "Variables", "State Spaces").

use super::function::{packed_size, place};
use super::operand::bad_immediate;
use super::{Checker, MAX_GLOBAL, MAX_LOCAL, MAX_PARAM, MAX_SHARED, codes};
use crate::inst::{Base, Operand, Symbol};
use crate::module::{Function, Init, Linkage, Variable};
use crate::types::{IsaVersion, Space, Type, TypeKind};
use broadloom_diag::{Diagnostic, Span};
use std::collections::HashSet;

/// Maximum bytes of constants of a module.
const CONST_BYTES: u64 = 64 << 10;
/// Maximum bytes of static shared memory that a kernel names.
const SHARED_BYTES: u64 = 48 << 10;

impl Checker<'_> {
    pub(super) fn variables(&mut self) {
        let module = self.module;
        for variable in module.variables.values() {
            let in_module = match variable.space {
                Space::Global | Space::Const | Space::Shared => true,
                Space::Tex => module.version < IsaVersion::new(1, 5),
                Space::Generic | Space::Reg | Space::Local | Space::Param => false,
            };
            if !in_module {
                let message = format!("`{}` is in `{}` outside of any function", variable.name, variable.space);
                self.report(
                    codes::BAD_VARIABLE,
                    message,
                    variable.span,
                    "a variable of a module is in `.global`, `.const` or `.shared`",
                );
                continue;
            }
            self.variable(variable, None);
        }
        let locals = || module.functions.values().flat_map(|function| function.variables.values());
        let all = |space: Space| module.variables.values().chain(locals()).filter(move |v| v.space == space);
        let defined = |space: Space| all(space).filter(|variable| variable.linkage != Linkage::Extern);
        for (space, size, limit) in [
            (Space::Const, packed_size(defined(Space::Const)), CONST_BYTES),
            (Space::Shared, packed_size(defined(Space::Shared)), MAX_SHARED),
            (Space::Global, packed_size(all(Space::Global)), MAX_GLOBAL),
        ] {
            if size > limit {
                let message = format!("the `{space}` variables of the module take {size} bytes, more than the {limit} there are");
                let largest = all(space).max_by_key(|variable| variable.bytes());
                let span = largest.map_or(Span::default(), |variable| variable.span);
                self.report(codes::LIMIT, message, span, "the largest of them");
            }
        }
    }

    pub(super) fn function_variables(&mut self, function: &Function) {
        for variable in function.variables.values() {
            let inside = match variable.space {
                Space::Global | Space::Const | Space::Shared | Space::Local | Space::Param => true,
                Space::Generic | Space::Reg | Space::Tex => false,
            };
            if !inside {
                let message = format!("`{}` is in `{}` inside of a function", variable.name, variable.space);
                self.report(codes::BAD_VARIABLE, message, place(variable, Some(function)), "");
                continue;
            }
            self.variable(variable, Some(function));
        }
        let sum = |space: Space| packed_size(function.variables.values().filter(|variable| variable.space == space));
        for (space, limit) in [(Space::Local, MAX_LOCAL), (Space::Param, MAX_PARAM)] {
            let size = sum(space);
            if size > limit {
                let message =
                    format!("the `{space}` variables of `{}` take {size} bytes, more than the {limit} there are", function.name);
                self.report(codes::LIMIT, message, function.span, "");
            }
        }
        if function.is_kernel {
            self.named_shared(function);
        }
    }

    /// Checks the static shared memory that a kernel names itself.
    fn named_shared(&mut self, function: &Function) {
        let module = self.module;
        let mut named: HashSet<Symbol> = HashSet::new();
        for (_, data) in function.instructions() {
            for operand in &data.operands {
                let symbol = match operand {
                    Operand::Symbol(symbol, _) => *symbol,
                    Operand::Memory(address) => match address.base {
                        Base::Symbol(symbol) => symbol,
                        Base::Reg(_) | Base::Absolute => continue,
                    },
                    _ => continue,
                };
                named.insert(symbol);
            }
        }
        let variables = named.iter().filter_map(|symbol| match symbol {
            Symbol::Var(var) => Some(&module.variables[*var]),
            Symbol::Local(var) => Some(&function.variables[*var]),
            Symbol::Func(_) => None,
        });
        let bytes = |variable: &Variable| variable.bytes().unwrap_or(u64::MAX);
        let shared = variables.filter(|v| v.space == Space::Shared && v.linkage != Linkage::Extern).map(bytes);
        let size = shared.fold(0u64, u64::saturating_add);
        if size > SHARED_BYTES {
            let message = format!("`{}` uses {size} bytes of static shared memory, more than {SHARED_BYTES}", function.name);
            let diagnostic = Diagnostic::error(codes::LIMIT, message)
                .help("dynamic shared memory may be larger: `.extern .shared .align 16 .b8 name[];`");
            self.push(diagnostic, function.span, "");
        }
    }

    fn variable(&mut self, variable: &Variable, function: Option<&Function>) {
        let (name, span) = (&variable.name, place(variable, function));
        let is_param = variable.space == Space::Param;
        if !variable.ty.is_memory() {
            let message = format!("a variable cannot have the type `{}`", variable.ty);
            return self.report(codes::BAD_VARIABLE, message, span, "no such values live in memory");
        }
        let opaque = variable.ty.kind() == TypeKind::Opaque;
        if opaque && variable.space != Space::Global && !is_param {
            let message = format!("`{name}` is a `{}` in `{}`", variable.ty, variable.space);
            self.report(codes::BAD_VARIABLE, message, span, "textures, samplers and surfaces live in `.global`");
        }
        if !matches!(variable.vector, 1 | 2 | 4) || variable.element_bytes() > 16 {
            let message = format!("`{name}` is a vector of {} `{}`", variable.vector, variable.ty);
            self.report(codes::BAD_VARIABLE, message, span, "a vector has 2 or 4 elements and at most 128 bits");
        }
        if variable.align.is_some_and(|align| !align.is_power_of_two()) {
            let message = format!("`{name}` is aligned to {} bytes", variable.align.unwrap_or(0));
            self.report(codes::BAD_VARIABLE, message, span, "an alignment is a power of two");
        }
        if variable.managed && variable.space != Space::Global {
            let message = format!("`{name}` is `.managed` in `{}`", variable.space);
            self.report(codes::BAD_VARIABLE, message, span, "only `.global` memory is managed");
        }
        if let Some(bank) = variable.bank
            && (self.module.version >= IsaVersion::new(2, 2) || bank > 10 || variable.space != Space::Const)
        {
            let message = format!("`{name}` is in bank {bank} of `.const`");
            self.report(codes::BAD_VARIABLE, message, span, "there are no banks since PTX 2.2");
        }
        self.variable_linkage(variable, function);
        // Parameters are checked separately.
        if !is_param || function.is_some_and(|function| !function.memory_params().any(|param| std::ptr::eq(param, variable))) {
            self.dimensions(variable, function);
        }
        if let Some(init) = &variable.init {
            self.initialiser(variable, function, init);
        }
    }

    fn variable_linkage(&mut self, variable: &Variable, function: Option<&Function>) {
        let (name, span) = (&variable.name, place(variable, function));
        let wrong = match variable.linkage {
            Linkage::Common if variable.space != Space::Global => "only `.global` variables can be `.common`",
            Linkage::Extern if variable.init.is_some() => "what is `.extern` gets its contents elsewhere",
            Linkage::Private | Linkage::Visible | Linkage::Extern | Linkage::Weak | Linkage::Common => return,
        };
        self.report(codes::BAD_LINKAGE, format!("the linkage of `{name}` does not fit"), span, wrong);
    }

    fn dimensions(&mut self, variable: &Variable, function: Option<&Function>) {
        let (name, span) = (&variable.name, place(variable, function));
        if variable.bytes().is_none() {
            let message = format!("`{name}` is larger than 64 bits can count");
            return self.report(codes::LIMIT, message, span, "too large");
        }
        let inner_open = variable.dims.iter().skip(1).any(|dim| matches!(dim, None | Some(0)));
        let first_open = match variable.dims.first() {
            Some(None) => !matches!(&variable.init, Some(Init::List(list)) if !list.is_empty()),
            Some(Some(0)) => true,
            Some(Some(_)) | None => false,
        };
        if inner_open || (first_open && variable.linkage != Linkage::Extern) {
            let message = format!("`{name}` is an array without a size");
            let mut diagnostic = Diagnostic::error(codes::INCOMPLETE, message);
            if variable.space == Space::Shared {
                diagnostic = diagnostic.help("memory that the launch sizes is declared `.extern .shared`, outside of the kernel");
            }
            self.push(diagnostic, span, "how many elements?");
        }
    }

    fn initialiser(&mut self, variable: &Variable, function: Option<&Function>, init: &Init) {
        let (name, span) = (&variable.name, place(variable, function));
        if !matches!(variable.space, Space::Global | Space::Const) {
            let message = format!("`{name}` in `{}` has first contents", variable.space);
            return self.report(codes::BAD_INITIALISER, message, span, "only `.global` and `.const` can");
        }
        if variable.ty.kind() == TypeKind::Packed || variable.ty == Type::F16 {
            let message = format!("`{name}` of type `{}` has first contents", variable.ty);
            return self.report(codes::BAD_INITIALISER, message, span, "this type takes none");
        }
        let mut levels: Vec<Option<u64>> = variable.dims.clone();
        if variable.vector > 1 {
            levels.push(Some(u64::from(variable.vector)));
        }
        if let Some(why) = self.bad_init(function, variable.ty, &levels, init) {
            let message = format!("the first contents of `{name}` do not fit: {why}");
            self.report(codes::BAD_INITIALISER, message, span, "");
        }
    }

    fn bad_init(&self, function: Option<&Function>, ty: Type, levels: &[Option<u64>], init: &Init) -> Option<String> {
        match (levels.split_first(), init) {
            (Some((count, inner)), Init::List(list)) => {
                if let Some(count) = count.filter(|count| list.len() as u64 > *count) {
                    return Some(format!("{} values in braces for {count}", list.len()));
                }
                list.iter().find_map(|init| self.bad_init(function, ty, inner, init))
            }
            (None, Init::Settings(list)) => list.iter().find_map(|(name, value)| bad_setting(ty, name, value)),
            (None, Init::List(_)) => Some("braces around a single value".into()),
            (None, Init::Imm(_) | Init::Address { .. }) if ty.kind() == TypeKind::Opaque => {
                Some(format!("a `{ty}` takes settings, such as `{{filter_mode = linear}}`"))
            }
            (Some(_), Init::Imm(_) | Init::Address { .. } | Init::Settings(_)) => Some("braces are missing".into()),
            (None, Init::Imm(imm)) => bad_immediate(ty, *imm).map(|(wanted, _)| format!("`{imm}` is not {wanted}")),
            (None, Init::Address { symbol, offset, generic, mask }) => {
                self.bad_address(function, ty, *symbol, *offset, *generic, *mask)
            }
        }
    }

    fn bad_address(
        &self,
        function: Option<&Function>,
        ty: Type,
        symbol: Symbol,
        offset: i64,
        generic: bool,
        mask: Option<u64>,
    ) -> Option<String> {
        let variable = match symbol {
            Symbol::Var(var) => Some(&self.module.variables[var]),
            Symbol::Local(var) => function.map(|function| &function.variables[var]),
            Symbol::Func(func) => {
                if generic || offset != 0 {
                    let name = &self.module.functions[func].name;
                    return Some(format!("the address of the function `{name}` is taken as it is"));
                }
                None
            }
        };
        if let Some(variable) = variable.filter(|variable| !matches!(variable.space, Space::Global | Space::Const)) {
            return Some(format!("`{}` in `{}` has no address before the launch", variable.name, variable.space));
        }
        match mask {
            None if matches!(ty, Type::U32 | Type::U64) => None,
            None => Some(format!("an address is a `.u{}`, not a `{ty}`", self.module.address_size)),
            Some(mask) => {
                let one_byte = (0..8).any(|byte| mask == 0xff << (8 * byte));
                match (one_byte, ty) {
                    (true, Type::U8) => None,
                    (true, _) => Some(format!("a byte of an address is a `.u8`, not a `{ty}`")),
                    (false, _) => Some(format!("the mask `0x{mask:X}` is no single byte")),
                }
            }
        }
    }
}

/// Returns the reason why a texture, sampler or surface has no such setting (manual: "Texture Sampler and
/// Surface Types").
fn bad_setting(ty: Type, name: &str, value: &str) -> Option<String> {
    let sampler = ["filter_mode", "addr_mode_0", "addr_mode_1", "addr_mode_2", "force_unnormalized_coords"];
    let image = [
        "width",
        "height",
        "depth",
        "channel_data_type",
        "channel_order",
        "normalized_coords",
        "filter_mode",
        "addr_mode_0",
        "addr_mode_1",
        "addr_mode_2",
        "array_size",
        "num_mipmap_levels",
        "num_samples",
        "memory_layout",
    ];
    let values = ["wrap", "mirror", "clamp_ogl", "clamp_to_edge", "clamp_to_border", "nearest", "linear"];
    let known: &[&str] = match ty {
        Type::Samplerref => &sampler,
        Type::Texref | Type::Surfref => &image,
        _ => return Some(format!("settings are for textures, samplers and surfaces, not for a `{ty}`")),
    };
    if !known.contains(&name) {
        return Some(format!("a `{ty}` has no setting `{name}`"));
    }
    let number = !value.is_empty() && value.bytes().all(|digit| digit.is_ascii_digit());
    (!number && !values.contains(&value)).then(|| format!("`{value}` is no value of `{name}`"))
}
