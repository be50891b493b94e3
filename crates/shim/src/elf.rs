//! Writer of shared libraries in ELF format, after the System V ABI; symbol versions after the LSB.
//!
//! A program linked with NVIDIA's runtime names a library, `libcudart.so.12`, and a symbol version of the
//! same name. The written library has both, and section headers for linkers: `gcc -lcuda` works. The file has
//! three segments: tables that are only read, code, and data. Offsets in the file are addresses.

use crate::code::{self, CodeFunction, CodeHeader, IMPORTS, WORDS};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Alignment of segments: the largest page size of the machine.
const PAGE: u64 = if cfg!(target_arch = "aarch64") { 0x1_0000 } else { 0x1000 };

/// ELF number of the target machine.
const MACHINE: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };

/// Relocation that writes the address of a symbol: `GLOB_DAT`.
const ADDRESS: u64 = if cfg!(target_arch = "aarch64") { 1025 } else { 6 };

/// Bytes of the ELF header, of a segment's and of a section's header.
const HEADER: u64 = 64;
const SEGMENT: u64 = 56;
const SECTION: u64 = 64;

/// Bytes of a symbol, of a relocation, of an entry of the dynamic section.
const SYMBOL: u64 = 24;
const RELOCATION: u64 = 24;
const ENTRY: u64 = 16;

/// Behaviour of the functions of a library.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FunctionBehaviour<'a> {
    /// All functions fail.
    Failing,
    /// Functions jump to those of the same names in a replacement library.
    Forwarding(&'a Path),
}

/// String table: zero-terminated texts.
struct StringTable(Vec<u8>);

impl StringTable {
    fn add(&mut self, text: &[u8]) -> u64 {
        let at = self.0.len() as u64;
        self.0.extend(text);
        self.0.push(0);
        at
    }
}

/// Returns the ELF hash of a symbol or version name.
fn hash(name: &str) -> u32 {
    name.bytes().fold(0u32, |hash, byte| {
        let hash = (hash << 4).wrapping_add(u32::from(byte));
        let high = hash & 0xf000_0000;
        (hash ^ (high >> 24)) & !high
    })
}

/// Bytes of the file, in little-endian order.
#[derive(Default)]
struct ByteWriter(Vec<u8>);

impl ByteWriter {
    fn halves(&mut self, halves: &[u16]) -> &mut ByteWriter {
        halves.iter().for_each(|half| self.0.extend(half.to_le_bytes()));
        self
    }

    fn words(&mut self, words: &[u32]) -> &mut ByteWriter {
        words.iter().for_each(|word| self.0.extend(word.to_le_bytes()));
        self
    }

    fn longs(&mut self, longs: &[u64]) -> &mut ByteWriter {
        longs.iter().for_each(|long| self.0.extend(long.to_le_bytes()));
        self
    }
}

/// Access to memory by a segment or a section.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Execute,
    Write,
}

/// Section of the file. Sections of equal access are adjacent and form a segment.
struct Section {
    name: &'static str,
    kind: u32,
    access: Access,
    /// Name of the linked section, and a number whose meaning depends on the kind of section.
    link: &'static str,
    info: u32,
    /// Bytes of an element, if all have the same size.
    element: u64,
    length: u64,
}

/// Sections with their addresses. Section 0 is the empty one.
struct Layout(Vec<(Section, u64)>);

impl Layout {
    fn new(sections: Vec<Section>, segments: u64) -> Layout {
        let mut end = HEADER + SEGMENT * segments;
        let mut access = Access::Read;
        let place = |section: Section| {
            let boundary = if section.access == access { 16 } else { PAGE };
            access = section.access;
            let at = end.next_multiple_of(boundary);
            end = at + section.length;
            (section, at)
        };
        Layout(sections.into_iter().map(place).collect())
    }

    /// Returns the index of a section.
    fn index(&self, name: &str) -> u16 {
        self.0.iter().position(|(section, _)| section.name == name).map_or(0, |index| index as u16 + 1)
    }

    /// Returns the address of a section.
    fn at(&self, name: &str) -> u64 {
        self.0.iter().find(|(section, _)| section.name == name).map_or(0, |(_, at)| *at)
    }

    /// Returns the start and the end of a segment.
    fn segment(&self, access: Access) -> (u64, u64) {
        let own = || self.0.iter().filter(|(section, _)| section.access == access);
        let start = if access == Access::Read { 0 } else { own().next().map_or(0, |(_, at)| *at) };
        (start, own().next_back().map_or(0, |(section, at)| at + section.length))
    }
}

/// Builds a library. `version` is the version of all its symbols.
pub(crate) fn library(name: &str, version: Option<&str>, functions: &[String], body: FunctionBehaviour<'_>) -> Vec<u8> {
    let (imports, path): (&[&str], &[u8]) = match body {
        FunctionBehaviour::Failing => (&[], b""),
        FunctionBehaviour::Forwarding(path) => (&IMPORTS, path.as_os_str().as_bytes()),
    };
    let mut texts = StringTable(vec![0]);
    let name_at = texts.add(name.as_bytes());
    let version_at = version.map(|version| texts.add(version.as_bytes()));
    let path_at = texts.add(path);
    let names = imports.iter().copied().chain(functions.iter().map(String::as_str));
    let names_at: Vec<u64> = names.map(|name| texts.add(name.as_bytes())).collect();

    // Symbols: the empty one, imports, functions.
    let (first, count) = (1 + imports.len(), 1 + imports.len() + functions.len());
    let hashes = hash_table(first, functions);
    let versions = versions(name, name_at, version.zip(version_at));
    // Functions have the given version, at index 2, or only the library's own. Imports have none.
    let index: u16 = if version.is_some() { 2 } else { 1 };
    let symbol_versions: Vec<u16> = (0..count).map(|symbol| if symbol < first { symbol.min(1) as u16 } else { index }).collect();

    // The slots are behind the end of the file: they are zero at first.
    let slots = if imports.is_empty() { 0 } else { functions.len() as u64 };
    let words = if imports.is_empty() { 0 } else { WORDS as u64 };
    let tags = if imports.is_empty() { 11 } else { 15 };
    let section = |name, kind, access, link, info, element, length| Section { name, kind, access, link, info, element, length };
    let layout = Layout::new(
        vec![
            section(".dynstr", 3, Access::Read, "", 0, 0, texts.0.len() as u64),
            section(".dynsym", 11, Access::Read, ".dynstr", 1, SYMBOL, SYMBOL * count as u64),
            section(".hash", 5, Access::Read, ".dynsym", 0, 4, hashes.0.len() as u64),
            section(".gnu.version", 0x6fff_ffff, Access::Read, ".dynsym", 0, 2, 2 * count as u64),
            section(".gnu.version_d", 0x6fff_fffd, Access::Read, ".dynstr", u32::from(index), 0, versions.0.len() as u64),
            section(".rela.dyn", 4, Access::Read, ".dynsym", 0, RELOCATION, RELOCATION * imports.len() as u64),
            section(".text", 1, Access::Execute, "", 0, 0, code::length(functions.len()) as u64),
            section(".dynamic", 6, Access::Write, ".dynstr", 0, ENTRY, ENTRY * tags),
            section(".data", 1, Access::Write, "", 0, 0, 8 * words),
        ],
        5,
    );
    let (text, data) = (layout.at(".text"), layout.at(".data"));
    let distance = |at: u64| at.wrapping_sub(text);
    let head = CodeHeader {
        data: distance(data),
        symbols: distance(layout.at(".dynsym") + SYMBOL * first as u64),
        texts: distance(layout.at(".dynstr")),
        path: distance(layout.at(".dynstr") + path_at),
        length: path.len() as u64,
    };

    let mut symbols = ByteWriter(vec![0; SYMBOL as usize]);
    for (symbol, name_at) in names_at.iter().enumerate() {
        let function = symbol.checked_sub(imports.len());
        // A global function that is defined here, or a weak reference.
        let (kind, section) = if function.is_some() { (0x12, layout.index(".text")) } else { (0x20, 0) };
        let place = function.map_or(0, |function| match body {
            FunctionBehaviour::Failing => text + CodeFunction::Failing.offset(),
            FunctionBehaviour::Forwarding(_) => text + CodeFunction::Entry(function).offset(),
        });
        symbols.words(&[*name_at as u32]).halves(&[kind, section]).longs(&[place, 0]);
    }
    let mut relocations = ByteWriter::default();
    for import in 0..imports.len() as u64 {
        relocations.longs(&[data + 8 * import, (import + 1) << 32 | ADDRESS, 0]);
    }
    let mut dynamic = ByteWriter::default();
    let mut tag = |tag: u64, value: u64| {
        dynamic.longs(&[tag, value]);
    };
    tag(14, name_at);
    tag(4, layout.at(".hash"));
    tag(5, layout.at(".dynstr"));
    tag(10, texts.0.len() as u64);
    tag(6, layout.at(".dynsym"));
    tag(11, SYMBOL);
    tag(0x6fff_fff0, layout.at(".gnu.version"));
    tag(0x6fff_fffc, layout.at(".gnu.version_d"));
    tag(0x6fff_fffd, u64::from(index));
    // Never unloaded: a thread may be in its code, and the end of a thread calls it.
    tag(0x6fff_fffb, 8);
    if !imports.is_empty() {
        tag(7, layout.at(".rela.dyn"));
        tag(8, RELOCATION * imports.len() as u64);
        tag(9, RELOCATION);
        tag(12, text + CodeFunction::Loaded.offset());
    }
    tag(0, 0);

    let mut halves = ByteWriter::default();
    halves.halves(&symbol_versions);
    let contents = [
        texts.0,
        symbols.0,
        hashes.0,
        halves.0,
        versions.0,
        relocations.0,
        code::code(&head, functions.len()),
        dynamic.0,
        vec![0; 8 * words as usize],
    ];
    file(&layout, &contents, 8 * slots)
}

/// Builds the hash table by which the loader finds functions. Imports are not found by it.
fn hash_table(first: usize, functions: &[String]) -> ByteWriter {
    let count = first + functions.len();
    let buckets = count / 2 + 1;
    let (mut heads, mut next) = (vec![0u32; buckets], vec![0u32; count]);
    for (symbol, name) in (first..).zip(functions) {
        let head = &mut heads[hash(name) as usize % buckets];
        next[symbol] = std::mem::replace(head, symbol as u32);
    }
    let mut table = ByteWriter::default();
    table.words(&[buckets as u32, count as u32]).words(&heads).words(&next);
    table
}

/// Builds the definitions of versions: the library's own, and the version of its symbols if they have one.
fn versions(name: &str, name_at: u64, version: Option<(&str, u64)>) -> ByteWriter {
    let mut table = ByteWriter::default();
    let mut define = |flags: u16, index: u16, text: &str, at: u64, last: bool| {
        table.halves(&[1, flags, index, 1]).words(&[hash(text), 20, if last { 0 } else { 28 }, at as u32, 0]);
    };
    define(1, 1, name, name_at, version.is_none());
    if let Some((version, at)) = version {
        define(0, 2, version, at, true);
    }
    table
}

/// Writes the file: headers, sections, and the table of sections for linkers. The memory of the last segment
/// is longer than its bytes in the file by `zeros`.
fn file(layout: &Layout, contents: &[Vec<u8>], zeros: u64) -> Vec<u8> {
    let end = layout.segment(Access::Write).1;
    let mut names = StringTable(vec![0]);
    let mut sections = ByteWriter(vec![0; SECTION as usize]);
    for (section, at) in &layout.0 {
        let flags = match section.access {
            Access::Read => 2,
            Access::Execute => 2 | 4,
            Access::Write => 2 | 1,
        };
        sections.words(&[names.add(section.name.as_bytes()) as u32, section.kind]);
        sections.longs(&[flags, *at, *at, section.length]);
        sections.words(&[u32::from(layout.index(section.link)), section.info]).longs(&[16, section.element]);
    }
    let own_name = names.add(b".shstrtab") as u32;
    sections.words(&[own_name, 3]).longs(&[0, 0, end, names.0.len() as u64]).words(&[0, 0]).longs(&[1, 0]);
    let sections_at = (end + names.0.len() as u64).next_multiple_of(16);
    let count = layout.0.len() as u16 + 2;

    let mut bytes = ByteWriter(b"\x7fELF\x02\x01\x01".to_vec());
    bytes.0.resize(16, 0);
    bytes.halves(&[3, MACHINE]).words(&[1]).longs(&[0, HEADER, sections_at]).words(&[0]);
    bytes.halves(&[HEADER as u16, SEGMENT as u16, 5, SECTION as u16, count, count - 1]);
    let mut segment = |kind: u32, flags: u32, (start, end): (u64, u64), zeros: u64, align: u64| {
        let length = end - start;
        bytes.words(&[kind, flags]).longs(&[start, start, start, length, length + zeros, align]);
    };
    segment(1, 4, layout.segment(Access::Read), 0, PAGE);
    segment(1, 5, layout.segment(Access::Execute), 0, PAGE);
    segment(1, 6, layout.segment(Access::Write), zeros, PAGE);
    let (dynamic, length) = (layout.at(".dynamic"), contents[usize::from(layout.index(".dynamic")) - 1].len() as u64);
    segment(2, 6, (dynamic, dynamic + length), 0, 8);
    // The stack need not be executable.
    segment(0x6474_e551, 6, (0, 0), 0, 16);
    for ((_, at), content) in layout.0.iter().zip(contents) {
        bytes.0.resize(*at as usize, 0);
        bytes.0.extend(content);
    }
    bytes.0.extend(names.0);
    bytes.0.resize(sections_at as usize, 0);
    bytes.0.extend(sections.0);
    bytes.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_hashes_of_the_format() {
        assert_eq!((hash(""), hash("GLIBC_2.2.5")), (0, 0x0969_1a75));
        assert_ne!(hash("libcudart.so.12"), hash("libcudart.so.13"));
    }
}
