//! Parser of launch arguments: words to [`ArgumentSpec`]s. Every error has its location in the word.

use crate::image::ImageSpec;
use crate::{BAD_ARGUMENT, BAD_VALUE, Element, MAX_BYTES, TOO_LARGE};
use broadloom_diag::{Code, Diagnostic, Diagnostics, SourceId, Sources, Span};
use std::path::PathBuf;

/// Maximum number of dimensions of a buffer.
const MAX_DIMENSIONS: usize = 8;

/// Argument of a kernel, as written.
#[derive(Clone, Debug, PartialEq)]
pub struct ArgumentSpec {
    /// Value to pass.
    pub value: ArgumentValue,
    /// Location of the word.
    pub span: Span,
}

/// What is passed for a parameter: a number or a buffer.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgumentValue {
    /// A number of a type.
    Scalar {
        /// Type.
        element: Element,
        /// Value, little-endian.
        bytes: Vec<u8>,
    },
    /// Address of a buffer.
    Buffer(BufferSpec),
    /// Members of a C struct.
    Struct(Vec<ArgumentSpec>),
}

/// Buffer, as written.
#[derive(Clone, Debug, PartialEq)]
pub struct BufferSpec {
    /// Element type; by default that of the file.
    pub element: Option<Element>,
    /// Extent in each direction; by default that of the file.
    pub shape: Option<Vec<u64>>,
    /// Texture or surface form, if it is not passed as an address.
    pub image: Option<ImageSpec>,
    /// Initial contents.
    pub contents: Contents,
    /// Destination of its contents after the launch.
    pub output: Option<Destination>,
}

/// Initial contents of a buffer.
#[derive(Clone, Debug, PartialEq)]
pub enum Contents {
    /// No contents: the kernel writes before it reads.
    Uninitialised,
    /// All bytes are 0.
    Zero,
    /// 0, 1, 2, …
    Iota,
    /// Random numbers, by the number of their sequence.
    Random(u64),
    /// Given bytes.
    Values(Vec<u8>),
    /// Contents of a `.npy` file.
    File(PathBuf),
}

/// Destination of a buffer's contents after the launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Printed.
    Shown,
    /// Written to a `.npy` file.
    File(PathBuf),
}

/// Parses the arguments of a launch, one per word. A separate word `=` or `=file` belongs to the buffer
/// before it.
///
/// The words become sources named `argument 1`, `argument 2`, …, so that every diagnostic can point into
/// them.
pub fn parse_arguments<W: AsRef<str>>(sources: &mut Sources, words: &[W]) -> Result<Vec<ArgumentSpec>, Diagnostics> {
    let mut found: Vec<ArgumentSpec> = vec![];
    let mut diagnostics = Diagnostics::new();
    let mut count = 0;
    for word in words {
        let word = word.as_ref();
        let belongs = word.starts_with('=');
        count += usize::from(!belongs);
        let name = if belongs { format!("output of argument {count}") } else { format!("argument {count}") };
        let source = sources.add(name, word);
        let mut parser = Parser { source, text: word, at: 0 };
        let outcome = if belongs {
            parser.destination().and_then(|destination| attach(found.last_mut(), destination, parser.span(0, word.len())))
        } else {
            parser.whole().map(|argument| found.push(argument))
        };
        if let Err(diagnostic) = outcome {
            diagnostics.push(*diagnostic);
        }
    }
    if diagnostics.has_errors() { Err(diagnostics) } else { Ok(found) }
}

/// Result with a diagnostic; boxed, since it is large and rare.
type ParseResult<T> = Result<T, Box<Diagnostic>>;

fn attach(argument: Option<&mut ArgumentSpec>, destination: Destination, place: Span) -> ParseResult<()> {
    let wrong = |what: &str| {
        let diagnostic = Diagnostic::error(BAD_ARGUMENT, format!("`=` follows {what}, not a buffer"));
        Box::new(
            diagnostic.at(place, "only a buffer can be written back").help("put it behind a buffer: `f32[64]:zero =out.npy`"),
        )
    };
    match argument {
        Some(ArgumentSpec { value: ArgumentValue::Buffer(buffer), .. }) if buffer.output.is_none() => {
            buffer.output = Some(destination);
            Ok(())
        }
        Some(ArgumentSpec { value: ArgumentValue::Buffer(_), .. }) => Err(wrong("a buffer that has one already")),
        Some(ArgumentSpec { value: ArgumentValue::Scalar { .. }, .. }) => Err(wrong("a scalar")),
        Some(ArgumentSpec { value: ArgumentValue::Struct(_), .. }) => Err(wrong("a struct")),
        None => Err(wrong("nothing")),
    }
}

/// Tests if a character ends a piece of an argument.
fn is_sign(byte: u8) -> bool {
    matches!(byte, b':' | b'[' | b']' | b',' | b'=' | b'{' | b'}' | b';' | b'*' | b'(' | b')')
}

struct Parser<'a> {
    source: SourceId,
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn span(&self, start: usize, end: usize) -> Span {
        Span { source: self.source, start: start as u32, end: end as u32 }
    }

    fn error(&self, code: Code, message: impl Into<String>, start: usize, end: usize, label: &str) -> Box<Diagnostic> {
        Box::new(Diagnostic::error(code, message).at(self.span(start, end.max(start)), label))
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, sign: char) -> bool {
        self.skip_blanks();
        let there = self.rest().starts_with(sign);
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, sign: char, why: &str) -> ParseResult<()> {
        if self.eat(sign) {
            return Ok(());
        }
        let found = self.rest().chars().next();
        let message = match found {
            Some(found) => format!("expected `{sign}`, found `{found}`"),
            None => format!("expected `{sign}`, found the end of the argument"),
        };
        Err(self.error(BAD_ARGUMENT, message, self.at, self.at + found.map_or(0, char::len_utf8), why))
    }

    /// Returns the text up to the next sign.
    fn piece(&mut self) -> (&'a str, usize) {
        self.skip_blanks();
        let length = self.rest().bytes().position(is_sign).unwrap_or(self.rest().len());
        let (start, piece) = (self.at, self.rest()[..length].trim_end());
        self.at += length;
        (piece, start)
    }

    fn whole(&mut self) -> ParseResult<ArgumentSpec> {
        let argument = self.argument(true)?;
        self.skip_blanks();
        if self.at < self.text.len() {
            let message = "something is left behind the argument";
            return Err(self.error(BAD_ARGUMENT, message, self.at, self.text.len(), "not understood"));
        }
        Ok(argument)
    }

    fn argument(&mut self, may_nest: bool) -> ParseResult<ArgumentSpec> {
        self.skip_blanks();
        let start = self.at;
        let value = if self.rest().starts_with('@') {
            let contents = self.contents(None, None)?;
            ArgumentValue::Buffer(BufferSpec {
                element: None,
                shape: None,
                image: None,
                contents,
                output: self.maybe_destination()?,
            })
        } else if let Some(image) = self.image()? {
            match self.typed()? {
                ArgumentValue::Buffer(buffer) => ArgumentValue::Buffer(BufferSpec { image: Some(image), ..buffer }),
                ArgumentValue::Scalar { .. } | ArgumentValue::Struct(_) => {
                    let message = "a texture or surface is made of a buffer";
                    return Err(self.error(BAD_ARGUMENT, message, start, self.at, "expected `texture(linear) f32[4,8]:iota`"));
                }
            }
        } else if may_nest && self.eat('{') {
            self.members()?
        } else {
            self.typed()?
        };
        Ok(ArgumentSpec { value, span: self.span(start, self.at) })
    }

    /// Parses `texture(linear, wrap)` or `surface()` before a buffer.
    fn image(&mut self) -> ParseResult<Option<ImageSpec>> {
        let is_surface = self.rest().starts_with("surface(");
        if !is_surface && !self.rest().starts_with("texture(") {
            return Ok(None);
        }
        self.at += "texture(".len();
        let mut image = ImageSpec::new(is_surface);
        while !self.eat(')') {
            let (word, at) = self.piece();
            if !image.take(word) {
                let message = format!("`{word}` is nothing that a texture can be");
                let diagnostic = self.error(BAD_ARGUMENT, message, at, at + word.len(), "not understood");
                return Err(Box::new(diagnostic.note(format!("it can be {}", crate::image::WORDS.join(", ")))));
            }
            if !self.eat(',') {
                self.expect(')', "this closes what the texture is")?;
                break;
            }
        }
        self.skip_blanks();
        Ok(Some(image))
    }

    /// Parses `{ a; b; c }` after its brace.
    fn members(&mut self) -> ParseResult<ArgumentValue> {
        let mut members = vec![];
        while !self.eat('}') {
            members.push(self.argument(false)?);
            if !self.eat(';') {
                self.expect('}', "members of a struct are separated by `;`")?;
                break;
            }
        }
        Ok(ArgumentValue::Struct(members))
    }

    /// Parses `type:value` or `type[shape]:contents`.
    fn typed(&mut self) -> ParseResult<ArgumentValue> {
        let (name, start) = self.piece();
        let Some(element) = Element::from_name(name) else {
            let mut diagnostic = if name.is_empty() {
                self.error(
                    BAD_ARGUMENT,
                    "an argument starts with a type",
                    start,
                    self.text.len().min(start + 1),
                    "expected a type",
                )
            } else {
                let message = format!("`{name}` is not a type of an argument");
                self.error(BAD_ARGUMENT, message, start, start + name.len(), "not a type")
            };
            let names: Vec<&str> = Element::ALL.iter().map(|element| element.name()).collect();
            *diagnostic = match broadloom_ptx::select::nearest(name, names.iter().copied()) {
                Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                None => diagnostic
                    .note(format!("the types are {}", names.join(", ")))
                    .help("an argument is a scalar such as `i32:7`, or a buffer such as `f32[64]:zero` or `@in.npy`"),
            };
            return Err(diagnostic);
        };
        if self.eat('[') {
            return self.buffer(element, start);
        }
        self.expect(':', &format!("a scalar is written `{element}:7`, a buffer `{element}[64]:zero`"))?;
        let (text, start) = self.piece_of_value();
        let bytes = self.value(element, text, start)?;
        Ok(ArgumentValue::Scalar { element, bytes: bytes[..element.bytes()].to_vec() })
    }

    /// Returns a value: a piece that may contain `nan(0x…)`.
    fn piece_of_value(&mut self) -> (&'a str, usize) {
        let (piece, start) = self.piece();
        if piece == "nan" && self.rest().starts_with('(') {
            let length = self.rest().find(')').map_or(self.rest().len(), |at| at + 1);
            self.at += length;
            return (&self.text[start..self.at], start);
        }
        (piece, start)
    }

    fn value(&self, element: Element, text: &str, start: usize) -> ParseResult<[u8; 8]> {
        element.parse(text).map_err(|why| match text {
            "" => self.error(BAD_VALUE, "a value is missing", start, start, "expected a value"),
            _ => self.error(BAD_VALUE, why.to_string(), start, start + text.len(), &format!("not a value of `{element}`")),
        })
    }

    /// Parses `[shape]:contents` after its bracket.
    fn buffer(&mut self, element: Element, start: usize) -> ParseResult<ArgumentValue> {
        let shape = self.shape(element, start)?;
        self.expect(':', &format!("say what it starts with: `{element}[64]:zero`, `:iota`, `:random`, `:uninit` or values"))?;
        let contents = self.contents(Some(element), shape.as_deref())?;
        let shape = match (&contents, shape) {
            (Contents::Values(bytes), None) => Some(vec![(bytes.len() / element.bytes()) as u64]),
            (Contents::File(_), shape) => shape,
            (_, Some(shape)) => Some(shape),
            (_, None) => {
                let message = "how many elements does the buffer have?";
                return Err(self.error(BAD_ARGUMENT, message, start, self.at, "`[]` counts values, and there are none"));
            }
        };
        Ok(ArgumentValue::Buffer(BufferSpec {
            element: Some(element),
            shape,
            image: None,
            contents,
            output: self.maybe_destination()?,
        }))
    }

    /// Parses `4, 8]`, or `]` if the contents determine the shape.
    fn shape(&mut self, element: Element, start: usize) -> ParseResult<Option<Vec<u64>>> {
        if self.eat(']') {
            return Ok(None);
        }
        let mut shape = vec![];
        let mut bytes = element.bytes() as u64;
        loop {
            let (text, at) = self.piece();
            let count: u64 = match text.parse() {
                Ok(count) => count,
                Err(_) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => u64::MAX,
                Err(_) => {
                    let message = format!("`{text}` is not a number of elements");
                    return Err(self.error(BAD_ARGUMENT, message, at, at + text.len(), "expected a whole number"));
                }
            };
            shape.push(count);
            bytes = bytes.saturating_mul(count);
            if shape.len() > MAX_DIMENSIONS {
                let message = format!("a buffer has at most {MAX_DIMENSIONS} dimensions");
                return Err(self.error(BAD_ARGUMENT, message, at, self.at, "one too many"));
            }
            if !self.eat(',') {
                break;
            }
        }
        self.expect(']', "this closes the shape of a buffer")?;
        if bytes > MAX_BYTES {
            let message = format!("a buffer has at most {MAX_BYTES} bytes");
            return Err(self.error(TOO_LARGE, message, start, self.at, "larger than that"));
        }
        Ok(Some(shape))
    }

    fn contents(&mut self, element: Option<Element>, shape: Option<&[u64]>) -> ParseResult<Contents> {
        self.skip_blanks();
        let start = self.at;
        if self.eat('@') {
            let path = self.path();
            if path.is_empty() {
                return Err(self.error(BAD_ARGUMENT, "`@` without a file", start, self.at, "expected `@file.npy`"));
            }
            return Ok(Contents::File(PathBuf::from(path)));
        }
        let element = element.unwrap_or(Element::B8);
        let (word, start) = self.piece_of_value();
        match word {
            "zero" => return Ok(Contents::Zero),
            "iota" => return Ok(Contents::Iota),
            "uninit" => return Ok(Contents::Uninitialised),
            "random" if !self.eat('(') => return Ok(Contents::Random(0)),
            "random" => {
                let (text, at) = self.piece();
                let seed = text.parse().map_err(|_| {
                    self.error(BAD_ARGUMENT, format!("`{text}` is not a number"), at, at + text.len(), "expected `random(7)`")
                })?;
                self.expect(')', "this closes `random(`")?;
                return Ok(Contents::Random(seed));
            }
            word if word.starts_with(|c: char| c.is_ascii_alphabetic()) && !word.starts_with("nan") && word != "inf" => {
                let message = format!("`{word}` is not something a buffer can start with");
                let mut diagnostic = self.error(BAD_ARGUMENT, message, start, start + word.len(), "not known");
                let known = ["zero", "iota", "random", "uninit"];
                *diagnostic = match broadloom_ptx::select::nearest(word, known.into_iter()) {
                    Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                    None => diagnostic.help("write `zero`, `iota`, `random`, `uninit`, values such as `1,2,3`, or `@in.npy`"),
                };
                return Err(diagnostic);
            }
            _ => {}
        }
        self.values(element, shape, word, start).map(Contents::Values)
    }

    /// Parses `1, 2, 0*6`, after the first piece was read.
    fn values(&mut self, element: Element, shape: Option<&[u64]>, mut text: &'a str, mut start: usize) -> ParseResult<Vec<u8>> {
        let first = start;
        let wanted: Option<u64> = shape.map(|shape| shape.iter().product());
        let most = wanted.unwrap_or(MAX_BYTES / element.bytes() as u64);
        let mut bytes = vec![];
        let mut count = 0u64;
        if text.is_empty() && self.at == self.text.len() && wanted.is_none_or(|count| count == 0) {
            return Ok(bytes);
        }
        loop {
            let value = self.value(element, text, start)?;
            let mut times = 1u64;
            if self.eat('*') {
                let (text, at) = self.piece();
                times = text.parse().map_err(|_| {
                    self.error(BAD_ARGUMENT, format!("`{text}` is not a number of times"), at, at + text.len(), "expected `0*8`")
                })?;
            }
            count = count.saturating_add(times);
            if count > most {
                let diagnostic = match wanted {
                    Some(wanted) => {
                        let message = format!("more than the {wanted} values that the buffer has");
                        self.error(BAD_VALUE, message, start, self.at, "one too many")
                    }
                    None => self.error(TOO_LARGE, format!("a buffer has at most {MAX_BYTES} bytes"), first, self.at, "larger"),
                };
                return Err(diagnostic);
            }
            for _ in 0..times {
                bytes.extend_from_slice(&value[..element.bytes()]);
            }
            if !self.eat(',') {
                break;
            }
            (text, start) = self.piece_of_value();
        }
        match wanted {
            Some(wanted) if count < wanted => {
                let message = format!("{count} values for a buffer of {wanted}");
                let mut diagnostic = self.error(BAD_VALUE, message, first, self.at, &format!("{} are missing", wanted - count));
                *diagnostic = diagnostic.help("`v*n` stands for n times the value v; `[]` counts the values");
                Err(diagnostic)
            }
            _ => Ok(bytes),
        }
    }

    fn maybe_destination(&mut self) -> ParseResult<Option<Destination>> {
        self.skip_blanks();
        if self.rest().starts_with('=') { self.destination().map(Some) } else { Ok(None) }
    }

    /// Parses `=` or `=file`.
    fn destination(&mut self) -> ParseResult<Destination> {
        self.expect('=', "")?;
        let path = self.path();
        Ok(if path.is_empty() { Destination::Shown } else { Destination::File(PathBuf::from(path)) })
    }

    /// Returns a path: up to a `=`, or to the end of a struct member.
    fn path(&mut self) -> &'a str {
        let end = self.rest().find(['=', ';', '}']).unwrap_or(self.rest().len());
        let path = self.rest()[..end].trim();
        self.at += end;
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Vec<ArgumentSpec>, String> {
        let mut sources = Sources::new();
        parse_arguments(&mut sources, words).map_err(|diagnostics| sources.render_all(&diagnostics))
    }

    fn buffer(word: &str) -> BufferSpec {
        match parse(&[word]).unwrap().remove(0).value {
            ArgumentValue::Buffer(buffer) => buffer,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn reads_scalars() {
        let scalar = |word: &str| parse(&[word]).unwrap().remove(0).value;
        assert_eq!(scalar("i32:-7"), ArgumentValue::Scalar { element: Element::I32, bytes: vec![249, 255, 255, 255] });
        assert_eq!(scalar("s16:1"), ArgumentValue::Scalar { element: Element::I16, bytes: vec![1, 0] });
        assert_eq!(scalar("f32:nan(0x7fc00001)"), ArgumentValue::Scalar { element: Element::F32, bytes: vec![1, 0, 0xc0, 0x7f] });
    }

    #[test]
    fn reads_buffers() {
        assert_eq!(buffer("f32[64]:zero").contents, Contents::Zero);
        assert_eq!(buffer("f32[4,8]:iota").shape, Some(vec![4, 8]));
        assert_eq!(buffer("u8[2]:random(7)").contents, Contents::Random(7));
        assert_eq!(buffer("u16[]:1,2*3").contents, Contents::Values(vec![1, 0, 2, 0, 2, 0, 2, 0]));
        assert_eq!(buffer("u16[]:1,2*3").shape, Some(vec![4]));
        assert_eq!(buffer("u8[0]:zero").shape, Some(vec![0]));
        assert_eq!(buffer("f16[2]:nan(0x7e00),-inf").contents, Contents::Values(vec![0, 0x7e, 0, 0xfc]));
        assert_eq!(buffer("@a/b.npy").contents, Contents::File("a/b.npy".into()));
        assert_eq!(buffer("@a.npy=").output, Some(Destination::Shown));
        assert_eq!(buffer("f32[2]:1,2=out.npy").output, Some(Destination::File("out.npy".into())));
    }

    #[test]
    fn reads_outputs_as_words() {
        let found = parse(&["f32[2]:zero", "=", "i32:1", "@x.npy", "=y.npy"]).unwrap();
        assert_eq!(found.len(), 3);
        assert!(matches!(&found[0].value, ArgumentValue::Buffer(buffer) if buffer.output == Some(Destination::Shown)));
        assert!(matches!(&found[2].value, ArgumentValue::Buffer(buffer) if buffer.output.is_some()));
    }

    #[test]
    fn reads_structs() {
        let found = parse(&["{i32:1; f32[2]:1,2=; @a.npy; }"]).unwrap();
        assert!(matches!(&found[0].value, ArgumentValue::Struct(members) if members.len() == 3));
    }

    #[test]
    fn says_what_is_wrong() {
        for (words, part) in [
            (&["i33:7"][..], "did you mean `i32`?"),
            (&[""], "starts with a type"),
            (&["7"], "not a type"),
            (&["i32"], "expected `:`"),
            (&["i32:"], "a value is missing"),
            (&["i32:x"], "not an integer"),
            (&["u8:256"], "holds 0 to 255"),
            (&["i32:7:8"], "left behind"),
            (&["f32[64]"], "say what it starts with"),
            (&["f32[64]:"], "a value is missing"),
            (&["f32[x]:zero"], "not a number of elements"),
            (&["f32[-1]:zero"], "not a number of elements"),
            (&["f32[64:zero"], "expected `]`"),
            (&["f32[64]:iotta"], "did you mean `iota`?"),
            (&["f32[64]:ones"], "`zero`, `iota`"),
            (&["f32[]:zero"], "how many elements"),
            (&["u32[4]:1,2,3"], "3 values for a buffer of 4"),
            (&["u32[2]:1,2,3"], "more than the 2 values"),
            (&["u32[2]:1,,3"], "a value is missing"),
            (&["u32[2]:1*x"], "number of times"),
            (&["u32[2]:1*99999999999999999999"], "number of times"),
            (&["u32[]:1*9999999999999999999"], "at most"),
            (&["f32[99999999999999999999]:zero"], "at most"),
            (&["f32[4294967296,4294967296,4294967296]:zero"], "at most"),
            (&["f32[1,1,1,1,1,1,1,1,1]:zero"], "8 dimensions"),
            (&["@"], "without a file"),
            (&["=x.npy"], "`=` follows nothing"),
            (&["i32:7", "=x.npy"], "`=` follows a scalar"),
            (&["f32[1]:zero=", "="], "has one already"),
            (&["{i32:1, i32:2}"], "separated by `;`"),
            (&["{i32:1"], "separated by `;`"),
            (&["{{i32:1}}"], "starts with a type"),
            (&["f32[1]:random(x)"], "not a number"),
            (&["ü:1"], "not a type"),
        ] {
            let error = parse(words).unwrap_err();
            assert!(error.contains(part), "{words:?}: {part:?} missing in\n{error}");
        }
    }

    #[test]
    fn every_wrong_argument_is_named() {
        let error = parse(&["i32:7", "f33:1", "i32:x"]).unwrap_err();
        assert!(error.contains("argument 2:1:1") && error.contains("argument 3:1:5"), "{error}");
    }
}
