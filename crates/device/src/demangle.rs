//! Names of kernels as the program's source has them.
//!
//! `nvcc` names kernels by the Itanium C++ ABI, section 5.1 ("External Names (a.k.a. Mangling)"). What kernels are called is understood: nested names,
//! templates with types, numbers and packs as their arguments, pointers, references, arrays, functions, lambdas, and what stands for something that was
//! said before. **A name that is not understood as a whole stays as it is**; depth and length are bounded, so that no name can exhaust anything.

/// Deepest nesting of what a name is made of.
const MOST_DEPTH: u32 = 64;
/// Longest text of a part.
const MOST_LENGTH: usize = 16 << 10;

/// A name as a person reads it.
pub fn shown(name: &str) -> String {
    demangled(name).unwrap_or_else(|| name.to_owned())
}

/// A text in which names between backquotes are those of the source.
pub fn in_text(text: &str) -> String {
    let mut parts = text.split('`');
    let mut shown_text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        shown_text.push('`');
        let name = part.starts_with("_Z") && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$'));
        shown_text.push_str(&if name { shown(part) } else { part.to_owned() });
    }
    shown_text
}

/// The name of a function without its parameters, or of a variable without the function that it stands in.
pub fn short(name: &str) -> String {
    let read = || {
        let mut reader = Reader { rest: name.strip_prefix("_Z")?, known: vec![], arguments: vec![], depth: 0 };
        if reader.take("Z") {
            reader.encoding()?;
            if !reader.take("E") {
                return None;
            }
        }
        Some(reader.name()?.text).filter(|text| !text.is_empty())
    };
    read().unwrap_or_else(|| name.to_owned())
}

/// The source's name for a mangled one.
pub fn demangled(name: &str) -> Option<String> {
    let rest = name.strip_prefix("_Z")?;
    let mut reader = Reader { rest, known: vec![], arguments: vec![], depth: 0 };
    let text = reader.encoding()?;
    reader.rest.is_empty().then_some(text)
}

struct Reader<'a> {
    rest: &'a str,
    /// What was said, for what stands for it later.
    known: Vec<String>,
    /// Arguments of the template that is named last.
    arguments: Vec<String>,
    depth: u32,
}

/// A name, and what follows from it for the types of parameters.
struct Name {
    text: String,
    /// Whether it ends with arguments of a template: then the type of the result comes first.
    is_template: bool,
    /// What stands behind the parameters: `const`.
    behind: &'static str,
}

impl<'a> Reader<'a> {
    fn take(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn peek(&self) -> u8 {
        self.rest.bytes().next().unwrap_or(0)
    }

    fn number(&mut self) -> Option<usize> {
        let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = self.rest.get(..digits)?.parse().ok()?;
        self.rest = &self.rest[digits..];
        Some(number)
    }

    /// Remembers something that may be referred to.
    fn note(&mut self, text: String) -> Option<String> {
        if text.len() > MOST_LENGTH {
            return None;
        }
        self.known.push(text.clone());
        Some(text)
    }

    /// Does something one level deeper.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth >= MOST_DEPTH {
            return None;
        }
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found
    }

    /// A function: its name and the types of its parameters.
    fn encoding(&mut self) -> Option<String> {
        let name = self.name()?;
        if self.rest.is_empty() || self.peek() == b'E' {
            return Some(name.text);
        }
        if name.is_template {
            self.ty()?;
        }
        let parameters = self.parameters()?;
        Some(format!("{}({parameters}){}", name.text, name.behind))
    }

    /// Types up to the end of what holds them.
    fn parameters(&mut self) -> Option<String> {
        let mut types = vec![];
        while !self.rest.is_empty() && self.peek() != b'E' {
            types.push(self.ty()?);
        }
        if types.len() == 1 && types[0] == "void" { Some(String::new()) } else { Some(listed(&types)) }
    }

    fn name(&mut self) -> Option<Name> {
        self.deeper(|reader| match reader.peek() {
            b'N' => reader.nested(),
            b'Z' => reader.local(),
            _ => {
                let is_known = reader.rest.starts_with('S') && !reader.rest.starts_with("St");
                let text = if is_known { reader.substitution()? } else { reader.unscoped()? };
                if reader.peek() != b'I' {
                    return Some(Name { text, is_template: false, behind: "" });
                }
                let text = if is_known { text } else { reader.note(text)? };
                let arguments = reader.template_arguments()?;
                Some(Name { text: text + &arguments, is_template: true, behind: "" })
            }
        })
    }

    fn unscoped(&mut self) -> Option<String> {
        if self.take("St") { Some(format!("std::{}", self.source_name("")?)) } else { self.source_name("") }
    }

    /// `N … E`: names one inside of the other.
    fn nested(&mut self) -> Option<Name> {
        self.take("N");
        let mut behind = "";
        while matches!(self.peek(), b'r' | b'V' | b'K') {
            if self.take("K") {
                behind = " const";
            } else {
                self.rest = &self.rest[1..];
            }
        }
        let (mut text, mut last, mut is_template) = (String::new(), String::new(), false);
        loop {
            match self.peek() {
                b'E' => {
                    self.take("E");
                    // What is named as a whole was noted as a part of something, which nobody refers to.
                    self.known.pop();
                    return (!text.is_empty()).then_some(Name { text, is_template, behind });
                }
                b'I' => {
                    text += &self.template_arguments()?;
                    is_template = true;
                }
                b'S' if !self.rest.starts_with("St") => {
                    text = self.substitution()?;
                    last = text.clone();
                    is_template = false;
                    continue;
                }
                b'T' => {
                    text = self.template_parameter()?;
                    is_template = false;
                    continue;
                }
                _ => {
                    if self.take("St") {
                        text = "std".to_owned();
                    }
                    let part = self.source_name(&last)?;
                    is_template = false;
                    // nvcc puts what a file keeps for itself into a namespace of this name.
                    if !part.starts_with("_INTERNAL_") {
                        last = part.clone();
                        text = if text.is_empty() { part } else { format!("{text}::{part}") };
                    }
                }
            }
            self.note(text.clone())?;
        }
    }

    /// `Z … E …`: a name inside of a function.
    fn local(&mut self) -> Option<Name> {
        self.take("Z");
        let function = self.encoding()?;
        if !self.take("E") {
            return None;
        }
        if self.take("s") {
            return Some(Name { text: function, is_template: false, behind: "" });
        }
        let name = self.name()?;
        if self.take("_") {
            self.number()?;
        }
        Some(Name { text: format!("{function}::{}", name.text), ..name })
    }

    /// A name of the source, of an operator, of what has no name; `scope` is what a constructor is called.
    fn source_name(&mut self, scope: &str) -> Option<String> {
        match self.peek() {
            b'0'..=b'9' => {
                let length = self.number()?;
                let name = self.rest.get(..length).filter(|name| !name.is_empty())?;
                self.rest = &self.rest[length..];
                // Names of a file's own have the file in theirs.
                Some(if name.starts_with("_GLOBAL__N_") { "(anonymous namespace)".to_owned() } else { name.to_owned() })
            }
            b'L' => {
                self.take("L");
                self.source_name(scope)
            }
            b'U' if self.take("Ul") => {
                let parameters = self.parameters()?;
                if !self.take("E") {
                    return None;
                }
                Some(format!("{{lambda({parameters})#{}}}", self.count()?))
            }
            b'U' if self.take("Ut") => Some(format!("{{unnamed type#{}}}", self.count()?)),
            b'C' if !scope.is_empty() => {
                self.rest = self.rest.get(2..)?;
                Some(scope.to_owned())
            }
            b'c' if self.take("cl") => Some("operator()".to_owned()),
            b'i' if self.take("ix") => Some("operator[]".to_owned()),
            b'p' if self.take("pl") => Some("operator+".to_owned()),
            b'm' if self.take("mi") => Some("operator-".to_owned()),
            b'm' if self.take("ml") => Some("operator*".to_owned()),
            b'd' if self.take("dv") => Some("operator/".to_owned()),
            _ => None,
        }
    }

    /// `_` is 1, `0_` is 2, and so on.
    fn count(&mut self) -> Option<usize> {
        let number = if self.peek() == b'_' { 1 } else { self.number()? + 2 };
        self.take("_").then_some(number)
    }

    /// `S_`, `S0_`, …: something that was said before; `Sa` and its like: something of the standard library.
    fn substitution(&mut self) -> Option<String> {
        const STANDARD: [(&str, &str); 6] = [
            ("Sa", "std::allocator"),
            ("Sb", "std::basic_string"),
            ("Ss", "std::string"),
            ("Si", "std::istream"),
            ("So", "std::ostream"),
            ("Sd", "std::iostream"),
        ];
        if let Some((_, name)) = STANDARD.iter().find(|(short, _)| self.take(short)) {
            return Some((*name).to_owned());
        }
        if !self.take("S") {
            return None;
        }
        let digits = self.rest.find('_')?;
        let place = match &self.rest[..digits] {
            "" => 0,
            digits if digits.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase()) => {
                usize::from_str_radix(digits, 36).ok()? + 1
            }
            _ => return None,
        };
        self.rest = &self.rest[digits + 1..];
        self.known.get(place).cloned()
    }

    fn template_parameter(&mut self) -> Option<String> {
        if !self.take("T") {
            return None;
        }
        let place = if self.peek() == b'_' { 0 } else { self.number()? + 1 };
        if !self.take("_") {
            return None;
        }
        let argument = self.arguments.get(place)?.clone();
        self.note(argument)
    }

    /// `I … E`.
    fn template_arguments(&mut self) -> Option<String> {
        self.take("I");
        let mut arguments = vec![];
        while !self.take("E") {
            arguments.push(self.deeper(Self::template_argument)?);
        }
        let shown: Vec<String> = arguments.iter().filter(|argument| !argument.is_empty()).cloned().collect();
        self.arguments = arguments;
        Some(format!("<{}>", listed(&shown)))
    }

    fn template_argument(&mut self) -> Option<String> {
        match self.peek() {
            b'L' => self.literal(),
            b'J' => {
                self.take("J");
                let mut arguments = vec![];
                while !self.take("E") {
                    arguments.push(self.deeper(Self::template_argument)?);
                }
                Some(listed(&arguments))
            }
            // An expression.
            b'X' | 0 => None,
            _ => self.ty(),
        }
    }

    /// `L … E`: a number of a type, or a function.
    fn literal(&mut self) -> Option<String> {
        self.take("L");
        if self.take("_Z") {
            let name = self.encoding()?;
            return self.take("E").then_some(name);
        }
        let ty = self.ty()?;
        let sign = if self.take("n") { "-" } else { "" };
        let end = self.rest.find('E')?;
        let digits = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        if !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return None;
        }
        Some(match (ty.as_str(), digits) {
            ("bool", "0") => "false".to_owned(),
            ("bool", "1") => "true".to_owned(),
            ("int", _) => format!("{sign}{digits}"),
            ("unsigned int", _) => format!("{digits}u"),
            ("long", _) => format!("{sign}{digits}l"),
            ("unsigned long", _) => format!("{digits}ul"),
            _ => format!("({ty}){sign}{digits}"),
        })
    }

    fn ty(&mut self) -> Option<String> {
        self.deeper(|reader| {
            if let Some(name) = reader.builtin() {
                return Some(name.to_owned());
            }
            let marks: [(&str, &str); 7] =
                [("P", "*"), ("R", "&"), ("O", "&&"), ("K", " const"), ("V", " volatile"), ("r", " restrict"), ("Dp", "...")];
            if let Some((_, mark)) = marks.iter().find(|(short, _)| reader.take(short)) {
                let inner = reader.ty()?;
                // A pack stands for its types, which were said.
                let text = if *mark == "..." { inner } else { marked(&inner, mark) };
                return reader.note(text);
            }
            match reader.peek() {
                b'F' => {
                    reader.take("F");
                    reader.take("Y");
                    let result = reader.ty()?;
                    let parameters = reader.parameters()?;
                    reader.take("E").then(|| reader.note(format!("{result} ({parameters})")))?
                }
                b'A' => {
                    reader.take("A");
                    let count = if reader.peek() == b'_' { String::new() } else { reader.number()?.to_string() };
                    if !reader.take("_") {
                        return None;
                    }
                    let element = reader.ty()?;
                    reader.note(format!("{element} [{count}]"))
                }
                b'T' => {
                    let parameter = reader.template_parameter()?;
                    if reader.peek() != b'I' {
                        return Some(parameter);
                    }
                    let arguments = reader.inner_arguments()?;
                    reader.note(parameter + &arguments)
                }
                b'S' if !reader.rest.starts_with("St") => {
                    let text = reader.substitution()?;
                    if reader.peek() != b'I' {
                        return Some(text);
                    }
                    let arguments = reader.inner_arguments()?;
                    reader.note(text + &arguments)
                }
                b'N' | b'Z' | b'0'..=b'9' | b'S' => {
                    let kept = reader.arguments.clone();
                    let name = reader.name()?;
                    reader.arguments = kept;
                    reader.note(name.text)
                }
                _ => None,
            }
        })
    }

    /// Arguments of a template that is a type: parameters stay those of the function.
    fn inner_arguments(&mut self) -> Option<String> {
        let kept = self.arguments.clone();
        let arguments = self.template_arguments();
        self.arguments = kept;
        arguments
    }

    fn builtin(&mut self) -> Option<&'static str> {
        const TYPES: [(&str, &str); 26] = [
            ("v", "void"),
            ("w", "wchar_t"),
            ("b", "bool"),
            ("c", "char"),
            ("a", "signed char"),
            ("h", "unsigned char"),
            ("s", "short"),
            ("t", "unsigned short"),
            ("i", "int"),
            ("j", "unsigned int"),
            ("l", "long"),
            ("m", "unsigned long"),
            ("x", "long long"),
            ("y", "unsigned long long"),
            ("n", "__int128"),
            ("o", "unsigned __int128"),
            ("f", "float"),
            ("d", "double"),
            ("e", "long double"),
            ("z", "..."),
            ("Dh", "half"),
            ("DF16b", "__bf16"),
            ("Ds", "char16_t"),
            ("Di", "char32_t"),
            ("Du", "char8_t"),
            ("Dn", "std::nullptr_t"),
        ];
        TYPES.iter().find(|(short, _)| self.take(short)).map(|(_, name)| *name)
    }
}

/// Texts with commas between them.
fn listed(texts: &[String]) -> String {
    texts.join(", ")
}

/// A type with a mark behind it; those of functions and arrays have it inside.
fn marked(inner: &str, mark: &str) -> String {
    let at = inner.find(" (").filter(|_| inner.ends_with(')')).or_else(|| inner.find(" [").filter(|_| inner.ends_with(']')));
    match at {
        Some(at) if mark.starts_with(['*', '&']) && !inner[..at].contains('<') => {
            format!("{} ({mark}){}", &inner[..at], inner[at..].trim_start())
        }
        _ => format!("{inner}{mark}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_source() {
        for (mangled, expected) in [
            ("_Z5scalePfib", "scale(float*, int, bool)"),
            ("_Z3addPKfS0_Pf", "add(float const*, float const*, float*)"),
            ("_Z6kernelv", "kernel()"),
            ("_ZN4math3sumEPdm", "math::sum(double*, unsigned long)"),
            ("_ZN12_GLOBAL__N_13runEi", "(anonymous namespace)::run(int)"),
            ("_Z4axpyIfEvT_PKS0_PS0_", "axpy<float>(float, float const*, float*)"),
            ("_Z6reduceILi256EfEvPT0_j", "reduce<256, float>(float*, unsigned int)"),
            ("_Z4flagILb1EEvv", "flag<true>()"),
            ("_ZN3cub6KernelINS_6PolicyEiEEvT0_", "cub::Kernel<cub::Policy, int>(int)"),
            ("_Z3runPFiiE", "run(int (*)(int))"),
            ("_Z4rowsRA4_f", "rows(float (&)[4])"),
            ("_Z1kySt4pairIiiE", "k(unsigned long long, std::pair<int, int>)"),
            ("_Z6packedIJifEEvDpT_", "packed<int, float>(int, float)"),
            ("_ZNK3Set3hasEi", "Set::has(int) const"),
            ("_Z1kILin3EEvv", "k<-3>()"),
            ("_Z1k5PointS_P6float4", "k(Point, Point, float4*)"),
        ] {
            assert_eq!(shown(mangled), expected, "{mangled}");
        }
    }

    #[test]
    fn what_is_not_understood_stays() {
        for name in ["plain", "_Z", "_Z3ab", "_Z1kX", "_Z1kS5_", "_Z1kIXadL_Z1fvEEEvv", "_Z99999999999999999999k", "_ZN", "_Z1kP"]
        {
            assert_eq!(shown(name), name);
        }
        let deep = format!("_Z1k{}i", "P".repeat(100_000));
        assert_eq!(shown(&deep), deep);
        let wide = format!("_Z1k{}", "S_".repeat(1000));
        assert_eq!(shown(&wide), wide);
    }

    #[test]
    fn short_names_have_no_parameters_and_no_function_around_them() {
        for (mangled, expected) in [
            ("_Z6helperPii", "helper"),
            ("_ZN36_INTERNAL_c375764b_6_shf_cu_8e4b657611__shfl_syncEjiii", "__shfl_sync"),
            ("_ZN18cooperative_groups4__v112thread_block4syncEv", "cooperative_groups::__v1::thread_block::sync"),
            ("_ZZ6reducePKfPfbE7partial", "partial"),
            ("_ZZ1kE4tile", "tile"),
            ("_Z3maxIfET_S0_S0_", "max<float>"),
            ("tile", "tile"),
            ("_Z", "_Z"),
            ("_ZZ1k", "_ZZ1k"),
        ] {
            assert_eq!(short(mangled), expected, "{mangled}");
        }
    }

    #[test]
    fn texts_have_names_between_backquotes() {
        assert_eq!(in_text("kernel `_Z6kernelv`: `_x` at `a`"), "kernel `kernel()`: `_x` at `a`");
        assert_eq!(in_text("nothing"), "nothing");
    }
}
