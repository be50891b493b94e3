//! Formats of files: raw numbers, WAV, `.npy`, from files and from pipes that are cut anywhere.

use broadloom_cpu::Cpu;
use broadloom_device::Device;
use broadloom_interp::Interp;
use broadloom_random::Random;
use broadloom_stream::compiled::Compiled;
use broadloom_stream::eval::{Host, Limits, Memory, Settings};
use broadloom_stream::format::{Container, Format, Item, Sample};
use broadloom_stream::{Binding, Program};
use std::io::{self, Read, Write};

/// A host whose reads end at random places.
struct Cuts {
    memory: Memory,
    seed: u64,
}

struct Cut(Box<dyn Read + Send>, Random);

impl Read for Cut {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = buffer.len().min(1 + self.1.below(11) as usize);
        self.0.read(&mut buffer[..count])
    }
}

impl Host for Cuts {
    fn print(&mut self, text: &str) -> io::Result<()> {
        self.memory.print(text)
    }

    fn open(&mut self, path: &str) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(Cut(self.memory.open(path)?, Random::new(self.seed))))
    }

    fn create(&mut self, path: &str) -> io::Result<Box<dyn Write + Send>> {
        self.memory.create(path)
    }

    fn amend(&mut self, path: &str, start: &[u8]) -> io::Result<bool> {
        self.memory.amend(path, start)
    }

    fn warn(&mut self, warning: broadloom_diag::Diagnostic) {
        self.memory.warn(warning);
    }
}

fn copy(reader: &str, writer: &str) -> String {
    format!("void->void pipeline Copy {{ add FileReader{reader}; add FileWriter{writer}; }}")
}

/// Runs a program over an input. Returns the file that it writes, and its warnings.
fn run(text: &str, ends: (&str, &str), input: &[u8], device: Option<&Device>, seed: Option<u64>) -> (Vec<u8>, Vec<String>) {
    let memory = Memory::default();
    memory.files.lock().unwrap().insert(ends.0.into(), input.to_vec());
    let mut plain = memory.clone();
    let mut cuts = Cuts { memory, seed: seed.unwrap_or(0) };
    let host: &mut dyn Host = if seed.is_some() { &mut cuts } else { &mut plain };
    let program = Program::compile("copy.str", text, host, &Limits::default()).unwrap_or_else(|failure| panic!("{failure}"));
    let outcome = match device {
        None => program.run(host, &Settings::default()),
        Some(device) => Compiled::new(&program, device).unwrap().run(host, &Settings::default()),
    };
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    let host = if seed.is_some() { cuts.memory } else { plain };
    let output = host.files.lock().unwrap().get(ends.1).cloned().unwrap_or_default();
    (output, host.warnings.iter().map(|warning| warning.message.clone()).collect())
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|word| f32::from_le_bytes(*word)).collect()
}

fn words(bytes: &[u8]) -> Vec<i32> {
    bytes.as_chunks::<4>().0.iter().map(|word| i32::from_le_bytes(*word)).collect()
}

#[test]
fn integers_of_files_are_integers_on_tapes() {
    let input = [1, 0, 0xff, 0xff, 0, 0x80, 0xff, 0x7f];
    let cases: [(&str, &[i32]); 7] = [
        ("short", &[1, -1, -32768, 32767]),
        ("ushort", &[1, 65535, 32768, 32767]),
        ("s16be", &[256, -1, 128, -129]),
        ("char", &[1, 0, -1, -1, 0, -128, -1, 127]),
        ("uint8", &[1, 0, 255, 255, 0, 128, 255, 127]),
        ("int32", &[-65535, 2147450880]),
        ("u32be", &[0x0100ffff, 0x0080ff7f]),
    ];
    for (ty, expected) in cases {
        let (output, _) = run(&copy(&format!("<{ty}>(\"in\")"), "<int>(\"out\")"), ("in", "out"), &input, None, None);
        assert_eq!(words(&output), expected, "{ty}");
    }
    let (output, warnings) = run(&copy("<s24>(\"in\")", "<int>(\"out\")"), ("in", "out"), &input, None, None);
    assert_eq!(words(&output), [0xff0001_u32 as i32 - (1 << 24), 0x8000ff - (1 << 24)]);
    assert_eq!(warnings, ["`in` ends with 2 bytes, less than an item of 3 bytes"]);
}

#[test]
fn integers_of_files_are_scaled_for_floats() {
    let input = [0, 0x40, 0, 0x80, 0xff, 0x7f, 0, 0];
    let (output, _) = run(&copy("<float>(\"in\", \"s16\")", "<float>(\"out\")"), ("in", "out"), &input, None, None);
    assert_eq!(floats(&output), [0.5, -1.0, 32767.0 / 32768.0, 0.0]);
    let (output, _) = run(&copy("<cs16>(\"in\")", "<complex>(\"out\")"), ("in", "out"), &input, None, None);
    assert_eq!(floats(&output), [0.5, -1.0, 32767.0 / 32768.0, 0.0]);
    let (output, _) = run(&copy("<cu8>(\"in\")", "<complex>(\"out\")"), ("in", "out"), &[0, 255, 127, 128], None, None);
    assert_eq!(floats(&output), [-127.5, 127.5, -0.5, 0.5].map(|value| value / 128.0));
    let (output, _) = run(&copy("<float>(\"in\", \"u8\")", "<float>(\"out\")"), ("in", "out"), &[0, 128, 255], None, None);
    assert_eq!(floats(&output), [-1.0, 0.0, 127.0 / 128.0]);
}

/// Floats are rounded to the nearest integer, and those beyond the range become the last one in it.
#[test]
fn floats_are_scaled_rounded_and_limited_in_files() {
    let input: Vec<u8> =
        [0.5f32, -1.0, 1.0, 2.0, -3.0, f32::NAN, 0.6 / 32768.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    let (output, _) = run(&copy("<float>(\"in\")", "<float>(\"out\", \"s16\")"), ("in", "out"), &input, None, None);
    let shorts: Vec<i16> = output.as_chunks::<2>().0.iter().map(|pair| i16::from_le_bytes(*pair)).collect();
    assert_eq!(shorts, [16384, -32768, 32767, 32767, -32768, 0, 1]);
    let input: Vec<u8> = [5i32, 300, -5].iter().flat_map(|value| value.to_le_bytes()).collect();
    let (output, _) = run(&copy("<int>(\"in\")", "<uint8>(\"out\")"), ("in", "out"), &input, None, None);
    assert_eq!(output, [5, 255, 0]);
}

/// What a pipe gives comes out, wherever it is cut, and on every device.
#[test]
fn pipes_may_be_cut_anywhere() {
    let devices = [Device::new(Interp::new(Default::default())), Device::new(Cpu::new(Default::default()).unwrap())];
    let texts = [
        ("<cs16>(\"in\")", "<complex>(\"out\", \"cs8\")", 4),
        ("<short>(\"in\")", "<int>(\"out\", \"s24\")", 2),
        ("<double>(\"in\", \"s24be\")", "<double>(\"out\")", 3),
        ("<float>(\"in\")", "<float>(\"out\", \"u16\")", 4),
    ];
    let mut random = Random::new(38);
    for round in 0..12u64 {
        let (reader, writer, size) = texts[round as usize % texts.len()];
        let text = copy(reader, writer);
        let length = random.below(700) as usize;
        let input: Vec<u8> =
            (0..length).map(|at| if size == 4 && at % 4 == 3 { 0x3e } else { random.below(256) as u8 }).collect();
        let (expected, warnings) = run(&text, ("in", "out"), &input, None, None);
        assert_eq!(warnings.is_empty(), length > 0 && length.is_multiple_of(size), "{reader} {length}: {warnings:?}");
        assert_eq!(
            run(&text, ("in", "out"), &input, None, Some(round)),
            (expected.clone(), warnings.clone()),
            "{reader} {length}"
        );
        for device in &devices {
            let found = run(&text, ("in", "out"), &input, Some(device), Some(round + 100));
            assert_eq!(found, (expected.clone(), warnings.clone()), "{reader} {length}");
        }
    }
}

#[test]
fn wav_files_are_written_and_read() {
    let input: Vec<u8> = [0.5f32, -0.25, 0.125].iter().flat_map(|value| value.to_le_bytes()).collect();
    let text = copy("<float>(\"in\")", "<float>(\"out.wav\", \"s16 rate=44100\")");
    let (wav, _) = run(&text, ("in", "out.wav"), &input, None, None);
    let header = [
        &b"RIFF"[..],
        &[42, 0, 0, 0],
        b"WAVEfmt ",
        &[16, 0, 0, 0, 1, 0, 1, 0],
        &44100u32.to_le_bytes(),
        &88200u32.to_le_bytes(),
        &[2, 0, 16, 0],
        b"data",
        &[6, 0, 0, 0],
    ];
    assert_eq!(wav[..44], header.concat());
    assert_eq!(wav[44..], [0, 0x40, 0, 0xe0, 0, 0x10]);
    // Chunks around the samples are no samples.
    let mut more = wav[..12].to_vec();
    more.extend(b"LIST\x03\x00\x00\x00abc\x00");
    more.extend(&wav[12..]);
    more.extend(b"LIST\x04\x00\x00\x00last");
    for seed in [None, Some(3)] {
        let (back, _) = run(&copy("<float>(\"x.wav\")", "<float>(\"out\")"), ("x.wav", "out"), &more, None, seed);
        assert_eq!(back, input);
    }
    let (ints, _) = run(&copy("<int>(\"x.wav\")", "<int>(\"out\")"), ("x.wav", "out"), &more, None, None);
    assert_eq!(words(&ints), [16384, -8192, 4096]);
    // Two channels are the parts of complex items.
    let (stereo, _) =
        run(&copy("<cs16>(\"in\")", "<complex>(\"out.wav\", \"f32\")"), ("in", "out.wav"), &[0, 0x40, 0, 0x80], None, None);
    assert_eq!((stereo[20], stereo[22], floats(&stereo[44..])), (3, 2, vec![0.5, -1.0]));
    let (pair, _) = run(&copy("<complex>(\"y.wav\")", "<complex>(\"out\")"), ("y.wav", "out"), &stereo, None, None);
    assert_eq!(floats(&pair), [0.5, -1.0]);
}

#[test]
fn npy_files_are_written_and_read() {
    let input: Vec<u8> = [1.5f32, -2.0, 3.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    let (npy, _) = run(&copy("<float>(\"in\")", "<float>(\"out.npy\")"), ("in", "out.npy"), &input, None, None);
    assert_eq!(npy.len(), 128 + 12);
    let header = String::from_utf8_lossy(&npy[10..128]).into_owned();
    assert_eq!(header.trim_end(), "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }");
    let (back, _) = run(&copy("<float>(\"x.npy\")", "<float>(\"out\")"), ("x.npy", "out"), &npy, None, Some(1));
    assert_eq!(back, input);
    // Integers of `.npy` files are not scaled; other types of numbers are converted.
    let mut shorts = b"\x93NUMPY\x01\x00".to_vec();
    let text = "{'descr': '>i2', 'fortran_order': False, 'shape': (2, 2), }\n";
    shorts.extend((text.len() as u16).to_le_bytes());
    shorts.extend(text.bytes());
    shorts.extend([0, 1, 0, 2, 0xff, 0xff, 0, 4]);
    let (back, _) = run(&copy("<float>(\"x.npy\")", "<float>(\"out\")"), ("x.npy", "out"), &shorts, None, None);
    assert_eq!(floats(&back), [1.0, 2.0, -1.0, 4.0]);
}

/// Returns the message of a run that fails.
fn message(text: &str, name: &str, input: &[u8]) -> String {
    let mut host = Memory::default();
    host.files.lock().unwrap().insert(name.into(), input.to_vec());
    let program = match Program::compile("copy.str", text, &mut host, &Limits::default()) {
        Ok(program) => program,
        Err(failure) => return failure.to_string(),
    };
    program.run(&mut host, &Settings::default()).map_or_else(|failure| failure.to_string(), |_| "no error".to_owned())
}

#[test]
fn formats_that_do_not_fit_are_refused() {
    let cases: [(&str, &str, &[u8], &str); 9] = [
        ("<int>(\"in\", \"f32\")", "in", b"", "numbers of f32 are floats; a tape of int holds none"),
        ("<float>(\"in\", \"s17\")", "in", b"", "there is no format `s17`"),
        ("<float>(\"in\", \"s16 rate=0\")", "in", b"", "`0` is no rate of items"),
        ("<bit>(\"in\", \"u8\")", "in", b"", "bits are packed"),
        ("<word>(\"in\")", "in", b"", "there is no type `word`"),
        ("<float>(\"x.wav\")", "x.wav", b"RIFF", "it ends within its WAV header"),
        ("<float>(\"x.wav\")", "x.wav", b"RIFX    WAVEdata", "it is no WAV file"),
        ("<float>(\"x.npy\")", "x.npy", b"\x93NUMPY\x01\x00\xff\xff", "it ends within its header"),
        ("<float>(\"x.npy\")", "x.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "its header has 4294967295 bytes"),
    ];
    for (reader, name, input, expected) in cases {
        let found = message(&copy(reader, "<float>(\"out\")").replace("FileWriter<float>", writer_of(reader)), name, input);
        assert!(found.contains(expected), "{reader}: {found}");
    }
}

fn writer_of(reader: &str) -> &str {
    match reader {
        reader if reader.starts_with("<int>") => "FileWriter<int>",
        reader if reader.starts_with("<bit>") => "FileWriter<bit>",
        _ => "FileWriter<float>",
    }
}

/// Random headers are refused or read; nothing panics.
#[test]
fn broken_headers_cause_no_panic() {
    let mut random = Random::new(7);
    let wav =
        b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x44\xac\0\0\x88\x58\x01\0\x02\0\x10\0data\x04\0\0\0\x01\0\x02\0".to_vec();
    let mut npy = b"\x93NUMPY\x01\x00\x3a\x00{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }\n".to_vec();
    npy.extend([1, 0, 2, 0]);
    for round in 0..400 {
        let (name, mut bytes) = if round % 2 == 0 { ("x.wav", wav.clone()) } else { ("x.npy", npy.clone()) };
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.below(256) as u8;
        }
        bytes.truncate(random.below(bytes.len() as u64 + 20) as usize);
        message(&copy(&format!("<float>(\"{name}\")"), "<float>(\"out\")"), name, &bytes);
    }
}

#[test]
fn names_of_formats() {
    let sample = |text: &str| Sample::parse(text).map(|sample| sample.to_string());
    for (text, name) in [
        ("short", "s16"),
        ("i16", "s16"),
        ("int16", "s16"),
        ("uint8", "u8"),
        ("byte", "u8"),
        ("cs16le", "cs16"),
        ("cf32", "cf32"),
        ("f64be", "f64be"),
    ] {
        assert_eq!(sample(text).as_deref(), Some(name), "{text}");
    }
    for text in ["", "s", "s12", "f16", "u24", "c", "16", "ss16"] {
        assert_eq!(sample(text), None, "{text}");
    }
    let format = Format::parse("wav f32 rate=8000, channels=2").unwrap();
    assert_eq!((format.container, format.rate, format.channels), (Some(Container::Wav), Some(8000), Some(2)));
    assert_eq!(format.container_of("x.npy"), Container::Wav);
    assert_eq!(Format::default().container_of("X.WAV"), Container::Wav);
    assert!(Format::parse("s24").unwrap().check("x.wav", Item::Float, false).is_ok());
    assert!(Format::parse("u16").unwrap().check("x.wav", Item::Float, false).is_err());
}

/// Values of statics and parameters come from outside; files take the place of those in the text.
#[test]
fn values_and_files_come_from_outside() {
    let text = "static { int times = 2; int[3] h = {1, 2, 3}; }
        void->void pipeline Top(int last) { add FileReader<int>(\"in\"); add Add(h[last], 0); add FileWriter<int>(\"out\"); }
        int->int filter Add(int a, int b) { work push 1 pop 1 { push(times * pop() + a + b); } }";
    let run = |values: &[&str], stream: Option<&str>| -> Result<Vec<i32>, String> {
        let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        let mut host = Memory::default();
        host.files.lock().unwrap().insert("x.npy".into(), {
            let mut npy = b"\x93NUMPY\x01\x00\x3a\x00{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }\n".to_vec();
            npy.extend([1, 0, 10, 0]);
            npy
        });
        let files = [("values.str", text)];
        let binding = Binding { stream, values: &values };
        let mut program = Program::compile_bound(&files, &binding, &mut host, &Limits::default()).map_err(|e| e.to_string())?;
        program.bind_file(true, None, "x.npy", Format::default()).map_err(|failure| failure.to_string())?;
        program.bind_file(false, None, "out.raw", Format::parse("s16").unwrap()).map_err(|failure| failure.to_string())?;
        program.run(&mut host, &Settings::default()).map_err(|failure| failure.to_string())?;
        let files = host.files.lock().unwrap();
        Ok(files["out.raw"].as_chunks::<2>().0.iter().map(|pair| i32::from(i16::from_le_bytes(*pair))).collect())
    };
    assert_eq!(run(&["last=1"], None).unwrap(), [4, 22]);
    assert_eq!(run(&["last=2", "times=-1", "h={7, 8, 9}", "Add.b=100"], None).unwrap(), [108, 99]);
    assert_eq!(run(&["times=3", "Add.a=1", "Add.b=1"], Some("Add")).unwrap(), [5, 32]);
    let fails = |values: &[&str], expected: &str| {
        let found = run(values, None).expect_err(expected);
        assert!(found.contains(expected), "{found}");
    };
    fails(&[], "the parameter `last` of the top-level stream has no value");
    fails(&["last=1", "tims=3"], "no static variable or parameter of an added stream is called `tims`");
    fails(&["last=0.5"], "the value of `last`");
    fails(&["last="], "expected an expression");
    fails(&["last=1 2"], "expected the end of the value");
}

#[test]
fn texts_include_others_once() {
    let mut host = Memory::default();
    let files = [
        (
            "parts/gain.str",
            "include \"twice.str\"; int->int filter Gain(int n) { work push 1 pop 1 { push(n * twice.of(pop())); } }",
        ),
        ("parts/twice.str", "#include \"gain.str\"\nhelper twice { int of(int x) { return 2 * x; } }"),
    ];
    for (name, text) in files {
        host.files.lock().unwrap().insert(name.into(), text.as_bytes().to_vec());
    }
    let text = "include \"parts/gain.str\"; include \"./parts/../parts/gain.str\"; include <windows.str>;
        void->void pipeline Top { add void->int filter { int n; work push 1 { push(n++); } } add Gain(5);
        add int->void filter { work pop 1 { println(pop()); } } }";
    let program = Program::compile("top.str", text, &mut host, &Limits::default()).unwrap_or_else(|failure| panic!("{failure}"));
    program.run(&mut host, &Settings { iterations: Some(3), ..Settings::default() }).unwrap();
    assert_eq!(host.output, "0\n10\n20\n");
    let fails = |text: &str, expected: &[&str]| {
        let found = Program::compile("top.str", text, &mut Memory::default(), &Limits::default()).unwrap_err().to_string();
        assert!(expected.iter().all(|part| found.contains(part)), "{found}");
    };
    fails("include \"none.str\";", &["`none.str` cannot be included", "relative to the folder"]);
    fails("include \"fir.str\";", &["write `include <fir.str>;`"]);
    fails("include <none.str>;", &["the library has no blocks `<none.str>`", "<fft.str>, <fir.str>"]);
    fails("include fir;", &["expected the text in quotes"]);
}
