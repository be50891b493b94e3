//! Generator of shared libraries that only contain names. A compiled CUDA program requests them from the
//! loader, and linkers read them.
//!
//! A program linked with NVIDIA's runtime names a library, `libcudart.so.12`, and a symbol version of the
//! same name. The generated library has both. It also has the names of all functions, so that `gcc -lcuda`
//! and `gcc -lcudart` find them. Its functions do nothing. It is a *filter* (`DT_FILTER`) of the library with
//! the real functions, so the loader looks up every symbol there first. The format is that of the System V
//! ABI, and of the LSB for versions.
//!
//! NVIDIA's linker, `libnvJitLink`, produces machine code, which cannot be run here. The generated library of
//! that name has functions that fail, and no `nvJitLinkVersion`. A program that looks for that function, as
//! Numba does through `cuda.core`, then links with the driver (`cuLinkAddData`), which accepts PTX.

/// Alignment of segments: the largest page size of the machine.
const PAGE: u64 = if cfg!(target_arch = "aarch64") { 0x1_0000 } else { 0x1000 };

/// ELF number of the target machine.
const MACHINE: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };

/// String table: zero-terminated texts.
struct Texts(Vec<u8>);

impl Texts {
    fn add(&mut self, text: &str) -> u64 {
        let at = self.0.len() as u64;
        self.0.extend(text.as_bytes());
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

/// Functions of the driver and of the runtime, one per line, with areas and comments.
const DRIVER: &str = include_str!("../../../cudart/functions/driver.txt");
const RUNTIME: &str = include_str!("../../../cudart/functions/runtime.txt");

/// Functions of NVIDIA's linker, which are exported once per release.
const LINKER: [&str; 15] = [
    "AddData",
    "AddFile",
    "Complete",
    "Create",
    "Destroy",
    "GetErrorLog",
    "GetErrorLogSize",
    "GetInfoLog",
    "GetInfoLogSize",
    "GetLinkedCubin",
    "GetLinkedCubinSize",
    "GetLinkedLTOIR",
    "GetLinkedLTOIRSize",
    "GetLinkedPtx",
    "GetLinkedPtxSize",
];

/// Prefix of the linker's library names; the release number follows.
pub const LINKER_NAME: &str = "libnvJitLink.so.";

/// Returns the functions that a library of NVIDIA's name exports.
fn functions(name: &str) -> Vec<String> {
    if let Some(release) = name.strip_prefix(LINKER_NAME) {
        let of_minor = |minor| LINKER.iter().map(move |function| format!("__nvJitLink{function}_{release}_{minor}"));
        return (0..10).flat_map(of_minor).collect();
    }
    let list = if name.starts_with("libcudart") { RUNTIME } else { DRIVER };
    let lines = list.lines().filter(|line| !line.starts_with(['[', '#']));
    lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Code of a function that fails: it returns 999, `CUDA_ERROR_UNKNOWN`.
const FAILING: &[u8] = if cfg!(target_arch = "aarch64") {
    // mov w0, #999; ret
    &[0xe0, 0x7c, 0x80, 0x52, 0xc0, 0x03, 0x5f, 0xd6]
} else {
    // mov eax, 999; ret
    &[0xb8, 0xe7, 0x03, 0x00, 0x00, 0xc3]
};

/// Section of the file.
struct Section {
    name: &'static str,
    kind: u32,
    flags: u64,
    /// Linked section, and a number whose meaning depends on the kind of section.
    link: u32,
    info: u32,
    entry: u64,
    bytes: Vec<u8>,
}

/// Indices of sections.
const TEXTS: u32 = 1;
const SYMBOLS: u32 = 2;
const CODE: u16 = 7;

/// Returns the `SONAME` of a library with NVIDIA's name. Programs linked with it request this name.
fn own_name(name: &str) -> &str {
    if name == "libcuda.so" { "libcuda.so.1" } else { name }
}

fn put(bytes: &mut Vec<u8>, words: &[u32]) {
    words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
}

/// Builds a library: a filter of another one, or the linker's. `version` is the version of all its symbols.
pub fn library(name: &str, version: Option<&str>, needs: &str) -> Vec<u8> {
    const HEADERS: u64 = 64 + 4 * 56;
    const SECTION: u64 = 64;
    let mut texts = Texts(vec![0]);
    let (name_at, needs_at, origin_at) = (texts.add(own_name(name)), texts.add(needs), texts.add("$ORIGIN"));
    let filtered_at = texts.add(&format!("$ORIGIN/{needs}"));
    let version_at = version.map(|version| texts.add(version));
    let is_filter = !name.starts_with(LINKER_NAME);
    let functions: Vec<(String, u64)> = functions(name).into_iter().map(|name| (name.clone(), texts.add(&name))).collect();

    // All symbols are in `.text`. Its address is known after everything before it. A hash table finds the
    // symbols.
    let count = functions.len() as u32 + 1;
    let buckets = count / 2 + 1;
    let (mut first, mut next) = (vec![0; buckets as usize], vec![0; count as usize]);
    for (index, (name, _)) in (1u32..).zip(&functions) {
        let bucket = &mut first[(hash(name) % buckets) as usize];
        next[index as usize] = std::mem::replace(bucket, index);
    }
    let mut hashes = vec![];
    put(&mut hashes, &[buckets, count]);
    put(&mut hashes, &first);
    put(&mut hashes, &next);
    // Symbols have the given version, at index 2, or only the library's own.
    let index: u16 = if version.is_some() { 2 } else { 1 };
    let symbol_versions: Vec<u8> = [0].into_iter().chain(functions.iter().map(|_| index)).flat_map(u16::to_le_bytes).collect();
    let mut versions: Vec<u8> = vec![];
    let mut define = |flags: u16, index: u16, text: &str, at: u64, last: bool| {
        [1, flags, index, 1].iter().for_each(|half| versions.extend(half.to_le_bytes()));
        put(&mut versions, &[hash(text), 20, if last { 0 } else { 28 }, at as u32, 0]);
    };
    define(1, 1, own_name(name), name_at, version.is_none());
    if let (Some(version), Some(at)) = (version, version_at) {
        define(0, 2, version, at, true);
    }

    const WRITABLE: u64 = 1;
    const ALLOCATED: u64 = 2;
    const EXECUTABLE: u64 = 4;
    let section = |name, kind, link, info, entry, bytes| Section { name, kind, flags: ALLOCATED, link, info, entry, bytes };
    let mut sections = vec![
        section(".dynstr", 3, 0, 0, 0, texts.0),
        section(".dynsym", 11, TEXTS, 1, 24, vec![0; 24 * count as usize]),
        section(".hash", 5, SYMBOLS, 0, 4, hashes),
        section(".gnu.version", 0x6fff_ffff, SYMBOLS, 0, 2, symbol_versions),
        section(".gnu.version_d", 0x6fff_fffd, TEXTS, 1 + u32::from(version.is_some()), 0, versions),
        Section { flags: ALLOCATED | WRITABLE, ..section(".dynamic", 6, TEXTS, 0, 16, vec![0; 16 * 14]) },
        Section { flags: ALLOCATED | EXECUTABLE, ..section(".text", 1, 0, 0, 0, FAILING.to_vec()) },
    ];
    let mut places = vec![];
    let mut end = HEADERS;
    for section in &sections {
        // Code has its own pages.
        places.push(end.next_multiple_of(if section.name == ".text" { PAGE } else { 16 }));
        end = places[places.len() - 1] + section.bytes.len() as u64;
    }
    let place = |name: &str| sections.iter().position(|section| section.name == name).map_or(0, |index| places[index]);
    let (text_at, dynamic_at) = (place(".text"), place(".dynamic"));
    let mut symbols = vec![0; 24];
    for (_, name_at) in &functions {
        put(&mut symbols, &[*name_at as u32]);
        // Global function symbol.
        symbols.extend([0x12, 0]);
        symbols.extend(CODE.to_le_bytes());
        symbols.extend(text_at.to_le_bytes());
        symbols.extend((FAILING.len() as u64).to_le_bytes());
    }
    // Tags that only filters have come first.
    let tags: [(u64, u64); 14] = [
        (1, needs_at),
        (29, origin_at),
        (0x7fff_ffff, filtered_at),
        (14, name_at),
        (4, place(".hash")),
        (5, place(".dynstr")),
        (10, sections[0].bytes.len() as u64),
        (6, place(".dynsym")),
        (11, 24),
        (0x6fff_fff0, place(".gnu.version")),
        (0x6fff_fffc, place(".gnu.version_d")),
        (0x6fff_fffd, 1 + u64::from(version.is_some())),
        (0, 0),
        (0, 0),
    ];
    let skipped = if is_filter { 0 } else { 3 };
    let dynamic: Vec<u8> =
        tags[skipped..].iter().flat_map(|(tag, value)| [tag.to_le_bytes(), value.to_le_bytes()]).flatten().collect();
    sections[SYMBOLS as usize - 1].bytes = symbols;
    sections[5].bytes[..dynamic.len()].copy_from_slice(&dynamic);

    // Section names and the section table are for linkers and are not loaded.
    let mut names = Texts(vec![0]);
    let mut headers = vec![0; SECTION as usize];
    for (section, place) in sections.iter().zip(&places) {
        put(&mut headers, &[names.add(section.name) as u32, section.kind]);
        for word in [section.flags, *place, *place, section.bytes.len() as u64] {
            headers.extend(word.to_le_bytes());
        }
        put(&mut headers, &[section.link, section.info]);
        headers.extend([16u64, section.entry].iter().flat_map(|word| word.to_le_bytes()));
    }
    let names_name = names.add(".shstrtab") as u32;
    put(&mut headers, &[names_name, 3]);
    for word in [0, 0, end, names.0.len() as u64] {
        headers.extend(word.to_le_bytes());
    }
    put(&mut headers, &[0, 0]);
    headers.extend([1u64, 0].iter().flat_map(|word| word.to_le_bytes()));
    let headers_at = (end + names.0.len() as u64).next_multiple_of(16);

    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(16, 0);
    for half in [3, MACHINE] {
        bytes.extend(half.to_le_bytes());
    }
    put(&mut bytes, &[1]);
    for word in [0u64, 64, headers_at] {
        bytes.extend(word.to_le_bytes());
    }
    put(&mut bytes, &[0]);
    let last = sections.len() as u16 + 1;
    for half in [64u16, 56, 4, SECTION as u16, last + 1, last] {
        bytes.extend(half.to_le_bytes());
    }
    // The loader may write addresses into data that it reads, so all of it is writable. The stack need not be
    // executable.
    let size = sections[5].bytes.len() as u64;
    let code = FAILING.len() as u64;
    for (kind, flags, at, size, align) in [
        (1u32, 6u32, 0, dynamic_at + size, PAGE),
        (1, 5, text_at, code, PAGE),
        (2, 6, dynamic_at, size, 8),
        (0x6474_e551, 6, 0, 0, 16),
    ] {
        put(&mut bytes, &[kind, flags]);
        for word in [at, at, at, size, size, align] {
            bytes.extend(word.to_le_bytes());
        }
    }
    for (section, place) in sections.iter().zip(&places) {
        bytes.resize(*place as usize, 0);
        bytes.extend(&section.bytes);
    }
    bytes.extend(names.0);
    bytes.resize(headers_at as usize, 0);
    bytes.extend(headers);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_hashes_of_the_format() {
        assert_eq!((hash(""), hash("GLIBC_2.2.5")), (0, 0x0969_1a75));
        assert_ne!(hash("libcudart.so.12"), hash("libcudart.so.13"));
    }

    #[test]
    fn a_library_is_small_and_whole() {
        let linker = ("libnvJitLink.so.13", Some("libnvJitLink.so.13"));
        for (name, version) in [("libcuda.so", None), ("libcudart.so.12", Some("libcudart.so.12")), linker] {
            let bytes = library(name, version, "libbroadloom_cudart.so");
            assert!(bytes.len() < 1 << 17, "{}", bytes.len());
            let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
            let (headers_at, headers) = (word(40), usize::from(bytes[60]));
            assert_eq!(headers_at + 64 * headers, bytes.len());
            // Loaded sections end before those that are only for linkers.
            assert!(word(64 + 32) <= headers_at);
        }
    }

    #[test]
    fn functions_are_those_of_the_library() {
        let has = |library: &str, function: &str| functions(library).iter().any(|name| name == function);
        assert!(has("libcuda.so.1", "cuMemAlloc_v2") && has("libcudart.so.12", "cudaMalloc"));
        assert!(functions("libcuda.so.1").iter().all(|name| name.starts_with("cu") && !name.starts_with("cuda")));
        assert!(functions("libcudart.so.12").iter().all(|name| name.starts_with("cuda") || name.starts_with("__cuda")));
        assert!(has("libnvJitLink.so.13", "__nvJitLinkCreate_13_2"));
        assert!(functions("libnvJitLink.so.13").iter().all(|name| !name.contains("Version")));
    }
}
