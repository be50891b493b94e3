//! Adapters between declarations and definitions of a function of which only one has a result.
//!
//! NVIDIA's linker joins machine code by name and ignores results: an unset result is undefined, and an
//! unused one is lost. Numba declares C functions without a result in this way. A PTX module has one
//! prototype per function. Calls with the other prototype therefore go through an adapter function, which
//! calls the definition.

/// Result and parameters of a function. Each is a declaration in the `.param` space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prototype<'a> {
    result: Option<Param<'a>>,
    params: Vec<Param<'a>>,
}

/// Parameter: type and alignment before its name, extent after it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Param<'a> {
    words: Vec<&'a str>,
    extent: Option<u64>,
}

impl<'a> Param<'a> {
    fn read(text: &'a str) -> Option<Param<'a>> {
        let (before, extent) = match text.split_once('[') {
            Some((before, extent)) => (before, Some(extent.trim_end().strip_suffix(']')?.trim().parse().ok()?)),
            None => (text, None),
        };
        let words: Vec<&str> = before.split_whitespace().collect();
        let (_, words) = words.split_last()?;
        (words.first() == Some(&".param")).then(|| Param { words: words.to_vec(), extent })
    }

    fn ty(&self) -> Option<&'a str> {
        self.words.last().copied()
    }

    /// Returns the size of one element in bytes.
    fn bytes(&self) -> Option<u64> {
        let digits = self.ty()?.trim_start_matches(|c: char| !c.is_ascii_digit());
        digits.parse::<u64>().ok().map(|bits| bits / 8).filter(|bytes| matches!(bytes, 1 | 2 | 4 | 8))
    }

    fn declare(&self, name: &str) -> String {
        let extent = self.extent.map(|extent| format!("[{extent}]")).unwrap_or_default();
        format!("{} {name}{extent}", self.words.join(" "))
    }

    /// Emits code that copies all elements between two parameters of this type, or sets them to zero.
    fn copy(&self, from: Option<&str>, to: &str) -> Option<String> {
        let bytes = self.bytes()?;
        let (bits, register) = (8 * bytes, if bytes == 8 { "%wide" } else { "%narrow" });
        let mut lines = String::new();
        for element in 0..self.extent.unwrap_or(1) {
            let at = element * bytes;
            lines += &match from {
                Some(from) => format!("\tld.param.b{bits} {register}, [{from}+{at}];\n"),
                None => format!("\tmov.b{} {register}, 0;\n", bits.max(32)),
            };
            lines += &format!("\tst.param.b{bits} [{to}+{at}], {register};\n");
        }
        Some(lines)
    }
}

impl<'a> Prototype<'a> {
    /// Parses the head of a declared or defined function.
    pub(crate) fn of(text: &'a str) -> Option<Prototype<'a>> {
        let head = &text[..text.find(['{', ';']).unwrap_or(text.len())];
        let rest = head.split_once(".func")?.1.trim_start();
        let (results, rest) = match rest.strip_prefix('(') {
            Some(rest) => rest.split_once(')')?,
            None => ("", rest),
        };
        let params = rest.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map_or("", |(params, _)| params);
        let read = |list: &'a str| -> Option<Vec<Param<'a>>> {
            list.split(',').filter(|one| !one.trim().is_empty()).map(Param::read).collect()
        };
        let mut results = read(results)?;
        let result = if results.len() > 1 { return None } else { results.pop() };
        Some(Prototype { result, params: read(params)? })
    }

    /// Returns head and body of an adapter with this prototype that calls a function with another prototype.
    /// Returns `None` if no adapter is needed, or if more than the result differs.
    pub(crate) fn calling(&self, name: &str, target: &str, defined: &Prototype<'_>) -> Option<(String, String)> {
        let shapes = |prototype: &Prototype<'_>| -> Vec<_> {
            prototype.params.iter().map(|param| (param.bytes(), param.extent.unwrap_or(1))).collect()
        };
        if self.result.is_some() == defined.result.is_some() || shapes(self) != shapes(defined) {
            return None;
        }
        let result = self.result.as_ref().map(|result| format!("({}) ", result.declare("result"))).unwrap_or_default();
        let listed = |prefix: &str| (0..self.params.len()).map(|at| format!("{prefix}{at}")).collect::<Vec<_>>();
        let params: Vec<String> = self.params.iter().zip(listed("p")).map(|(param, name)| param.declare(&name)).collect();
        let head = format!(".func {result}{name}({})", params.join(", "));
        let mut body = String::from("{\n\t.reg .b64 %wide;\n\t.reg .b32 %narrow;\n");
        for (param, name) in defined.params.iter().zip(listed("a")) {
            body += &format!("\t{};\n", param.declare(&name));
        }
        for ((param, from), to) in self.params.iter().zip(listed("p")).zip(listed("a")) {
            body += &param.copy(Some(&from), &to)?;
        }
        let arguments = listed("a").join(", ");
        match &defined.result {
            Some(result) => body += &format!("\t{};\n\tcall (unused), {target}, ({arguments});\n", result.declare("unused")),
            None => body += &format!("\tcall {target}, ({arguments});\n"),
        }
        if let Some(result) = &self.result {
            body += &result.copy(None, "result")?;
        }
        Some((format!("{head};"), format!("{head}\n{body}\tret;\n}}")))
    }
}
