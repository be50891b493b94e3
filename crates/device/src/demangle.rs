//! Demangling of kernel names.
//!
//! `nvcc` mangles names by the Itanium C++ ABI, section 5.1 ("External Names (a.k.a. Mangling)").
//! `cpp_demangle` reads them. **A name that cannot be demangled completely stays unchanged.** This module
//! bounds the length and `cpp_demangle` bounds the depth, so no name can exhaust resources.

use cpp_demangle::{BorrowedSymbol, DemangleOptions, DemangleWrite};

/// Maximum length of a mangled name and of its demangled text.
const MOST_LENGTH: usize = 16 << 10;

/// Returns the demangled name, or the name itself.
pub fn shown(name: &str) -> String {
    demangled(name).unwrap_or_else(|| name.to_owned())
}

/// Demangles the names between backquotes in a text.
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

/// Returns the name of a function without its parameters, or of a variable without its enclosing function.
pub fn short(name: &str) -> String {
    let read = || {
        let (symbol, _) = BorrowedSymbol::with_tail(mangled(name)?).ok()?;
        let text = text(&symbol, DemangleOptions::new().no_params())?;
        Some(if name.starts_with("_ZZ") { last(&text).to_owned() } else { text })
    };
    read().unwrap_or_else(|| name.to_owned())
}

/// Demangles a name.
pub fn demangled(name: &str) -> Option<String> {
    let symbol = BorrowedSymbol::new(mangled(name)?).ok()?;
    text(&symbol, DemangleOptions::new())
}

/// Returns the bytes of a name that may be mangled.
fn mangled(name: &str) -> Option<&[u8]> {
    (name.starts_with("_Z") && name.len() <= MOST_LENGTH).then_some(name.as_bytes())
}

/// Text of at most [`MOST_LENGTH`] bytes.
struct BoundedText(String);

impl DemangleWrite for BoundedText {
    fn write_string(&mut self, text: &str) -> std::fmt::Result {
        if self.0.len() + text.len() > MOST_LENGTH {
            return Err(std::fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

fn text(symbol: &BorrowedSymbol<'_>, options: DemangleOptions) -> Option<String> {
    let mut text = BoundedText(String::new());
    symbol.structured_demangle(&mut text, &options.no_return_type()).ok()?;
    Some(without_files(&text.0)).filter(|text| !text.is_empty())
}

/// Removes the namespaces that `nvcc` makes of files: `_INTERNAL_c375764b_6_shf_cu_8e4b6576::`.
fn without_files(text: &str) -> String {
    const START: &str = "_INTERNAL_";
    let mut parts = text.split(START);
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once("::") {
            Some((file, rest)) if file.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') => shown.push_str(rest),
            _ => shown.extend([START, part]),
        }
    }
    shown
}

/// Returns the last part of a name, after its enclosing function.
fn last(text: &str) -> &str {
    let mut depth = 0;
    let mut start = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'<' | b'{' | b'[' => depth += 1,
            b')' | b'>' | b'}' | b']' => depth -= 1,
            b':' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    &text[start..]
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
            ("_Z4rowsRA4_f", "rows(float (&) [4])"),
            ("_Z1kySt4pairIiiE", "k(unsigned long long, std::pair<int, int>)"),
            ("_Z6packedIJifEEvDpT_", "packed<int, float>(int, float)"),
            ("_ZNK3Set3hasEi", "Set::has(int) const"),
            ("_Z1kILin3EEvv", "k<-3>()"),
            ("_Z1k5PointS_P6float4", "k(Point, Point, float4*)"),
            ("_Z1kIXadL_Z1fvEEEvv", "k<&f()>()"),
            ("_ZN36_INTERNAL_c375764b_6_shf_cu_8e4b65761kEi", "k(int)"),
        ] {
            assert_eq!(shown(mangled), expected, "{mangled}");
        }
    }

    /// Returns a base-36 digit, as in substitutions.
    fn letter(index: u32) -> char {
        char::from_digit(index, 36).unwrap_or('0').to_ascii_uppercase()
    }

    #[test]
    fn what_is_not_understood_stays() {
        for name in ["plain", "_Z", "_Z3ab", "_Z1kX", "_Z1kS5_", "_Z99999999999999999999k", "_ZN", "_Z1kP"] {
            assert_eq!(shown(name), name);
        }
        let deep = format!("_Z1k{}i", "P".repeat(100_000));
        assert_eq!(shown(&deep), deep);
        let wide = format!("_Z1k{}", "S_".repeat(1000));
        assert_eq!(shown(&wide), wide);
        // Each type is a pair of the previous one: the text would double every time.
        let pairs: String = (0..30u32).map(|index| format!("S_IS{0}_S{0}_E", letter(index))).collect();
        let doubling = format!("_Z1kSt4pairIiiE{pairs}");
        assert_eq!(shown(&doubling), doubling);
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
