//! Compiled kernel as bytes: its parts in sequence.
//!
//! Numbers are little-endian. A list is its length and its elements. A span is stored as the number of the
//! instruction there. **Decoding checks every length against the bytes left, and returns a kernel or
//! nothing.**

use super::places::Places;
use crate::abi::Kind;
use crate::code::{Accesses, AddressedItem, Code, FaultSite, RareInstruction, RareOperand};
use broadloom_analysis::Proof;
use broadloom_device::place::{FileLine, InlinedCall, SourcePlace};
use broadloom_ptx::{Func, Selector, Var};

/// Maximum nesting of operands.
const MAX_DEPTH: u32 = 8;

pub fn encode(code: &Code, places: &Places) -> Vec<u8> {
    let numbers = if code.sites.is_empty() { Default::default() } else { places.numbers() };
    let mut body = Writer(vec![]);
    body.number(match code.kind {
        Kind::Block => 0,
        Kind::Warps => 1,
        Kind::Threads => 2,
    });
    body.number(code.local_bytes);
    body.number(code.kept_bytes);
    body.number(code.stream_bytes);
    body.number(code.shared_bytes);
    body.list(&code.variables, |body, named| match named {
        AddressedItem::Variable(var) => body.numbers(&[0, u64::from(var.as_u32())]),
        AddressedItem::Local(func, var) => body.numbers(&[1, u64::from(func.as_u32()), u64::from(var.as_u32())]),
        AddressedItem::Function(func) => body.numbers(&[2, u64::from(func.as_u32())]),
    });
    body.list(&code.operations, |body, rare| {
        body.bytes(rare.mnemonic.as_bytes());
        body.list(&rare.operands, Writer::operand);
    });
    body.list(&code.sites, |body, site| {
        body.bytes(site.instruction.as_bytes());
        let number = site.span.and_then(|span| numbers.get(&span));
        body.option(number, |body, number| body.number(*number));
        body.option(site.source.as_ref(), |body, source| {
            body.line(&source.line);
            body.list(&source.calls, |body, call| {
                body.bytes(call.function.as_bytes());
                body.line(&call.at);
                body.line(&call.from);
            });
        });
    });
    body.option(code.not_vectorised.as_ref(), |body, reason| body.bytes(reason.as_bytes()));
    for accesses in [&code.loads, &code.stores] {
        let Accesses { uniform, contiguous, strided, scattered } = *accesses;
        body.numbers(&[uniform, contiguous, strided, scattered].map(u64::from));
    }
    body.option(code.proof.as_ref(), |body, proof| body.bytes(&proof.encode()));
    body.list(&code.apart, |body, (a, b)| body.numbers(&[*a, *b]));
    body.bytes(&code.object);
    body.0
}

/// Decodes the kernel of an entry. `places` are the current spans of its instructions.
pub fn decode(body: &[u8], places: &Places) -> Option<Code> {
    let mut body = Reader(body);
    let kind = match body.number()? {
        0 => Kind::Block,
        1 => Kind::Warps,
        2 => Kind::Threads,
        _ => return None,
    };
    let local_bytes = body.number()?;
    let kept_bytes = body.number()?;
    let stream_bytes = body.number()?;
    let shared_bytes = body.number()?;
    let variables = body.list(|body| {
        Some(match body.number()? {
            0 => AddressedItem::Variable(Var::from_u32(body.small()?)),
            1 => AddressedItem::Local(Func::from_u32(body.small()?), Var::from_u32(body.small()?)),
            2 => AddressedItem::Function(Func::from_u32(body.small()?)),
            _ => return None,
        })
    })?;
    let operations =
        body.list(|body| Some(RareInstruction { mnemonic: body.text()?, operands: body.list(|body| body.operand(MAX_DEPTH))? }))?;
    let sites = body.list(|body| {
        let instruction = body.text()?;
        let span = body.option(|body| places.0.get(usize::try_from(body.number()?).ok()?).copied())?;
        let call = |body: &mut Reader<'_>| Some(InlinedCall { function: body.text()?, at: body.line()?, from: body.line()? });
        let source = |body: &mut Reader<'_>| Some(SourcePlace { line: body.line()?, calls: body.list(call)? });
        Some(FaultSite { instruction, span, source: body.option(source)? })
    })?;
    let not_vectorised = body.option(Reader::text)?;
    let mut accesses =
        || Some(Accesses { uniform: body.small()?, contiguous: body.small()?, strided: body.small()?, scattered: body.small()? });
    let (loads, stores) = (accesses()?, accesses()?);
    let proof = body.option(|body| Proof::decode(body.bytes()?))?;
    let apart = body.list(|body| Some((body.number()?, body.number()?)))?;
    let object = body.bytes()?.to_vec();
    body.0.is_empty().then_some(Code {
        object,
        kind,
        local_bytes,
        kept_bytes,
        stream_bytes,
        shared_bytes,
        variables,
        operations,
        sites,
        not_vectorised,
        loads,
        stores,
        proof,
        apart,
    })
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    fn numbers(&mut self, numbers: &[u64]) {
        numbers.iter().for_each(|number| self.number(*number));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn line(&mut self, line: &FileLine) {
        self.bytes(line.file.as_bytes());
        self.number(u64::from(line.line));
    }

    fn list<T>(&mut self, list: &[T], each: impl Fn(&mut Writer, &T)) {
        self.number(list.len() as u64);
        list.iter().for_each(|element| each(self, element));
    }

    fn option<T>(&mut self, value: Option<&T>, some: impl Fn(&mut Writer, &T)) {
        self.number(u64::from(value.is_some()));
        if let Some(value) = value {
            some(self, value);
        }
    }

    fn operand(&mut self, operand: &RareOperand) {
        match operand {
            RareOperand::Value => self.number(0),
            RareOperand::Part(negated, selector) => {
                self.numbers(&[1, u64::from(*negated)]);
                self.option(selector.as_ref(), |body, selector| match selector {
                    Selector::B0 => body.number(0),
                    Selector::B1 => body.number(1),
                    Selector::B2 => body.number(2),
                    Selector::B3 => body.number(3),
                    Selector::H0 => body.number(4),
                    Selector::H1 => body.number(5),
                    Selector::Lanes(lanes) => body.numbers(&[6, u64::from(*lanes)]),
                    Selector::Mask(mask) => body.numbers(&[7, u64::from(*mask)]),
                });
            }
            RareOperand::Vector(list) => {
                self.number(2);
                self.list(list, Writer::operand);
            }
            RareOperand::Absent => self.number(3),
            RareOperand::Sink => self.number(4),
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn small(&mut self) -> Option<u32> {
        // The highest number is not a valid id.
        u32::try_from(self.number()?).ok().filter(|number| *number != u32::MAX)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    fn line(&mut self) -> Option<FileLine> {
        Some(FileLine { file: self.text()?, line: u32::try_from(self.number()?).ok()? })
    }

    fn list<T>(&mut self, mut each: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let length = usize::try_from(self.number()?).ok()?;
        // Every element has at least one number.
        if length > self.0.len() / 8 {
            return None;
        }
        (0..length).map(|_| each(self)).collect()
    }

    fn option<T>(&mut self, some: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.number()? {
            0 => Some(None),
            1 => some(self).map(Some),
            _ => None,
        }
    }

    fn operand(&mut self, depth: u32) -> Option<RareOperand> {
        let depth = depth.checked_sub(1)?;
        Some(match self.number()? {
            0 => RareOperand::Value,
            1 => {
                let negated = self.number()? != 0;
                let selector = self.option(|body| {
                    Some(match body.number()? {
                        0 => Selector::B0,
                        1 => Selector::B1,
                        2 => Selector::B2,
                        3 => Selector::B3,
                        4 => Selector::H0,
                        5 => Selector::H1,
                        6 => Selector::Lanes(u16::try_from(body.number()?).ok()?),
                        7 => Selector::Mask(u8::try_from(body.number()?).ok()?),
                        _ => return None,
                    })
                })?;
                RareOperand::Part(negated, selector)
            }
            2 => RareOperand::Vector(self.list(|body| body.operand(depth))?),
            3 => RareOperand::Absent,
            4 => RareOperand::Sink,
            _ => return None,
        })
    }
}
