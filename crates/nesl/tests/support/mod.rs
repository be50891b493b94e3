//! A host in memory, sessions on it, and devices.

use broadloom_cpu::Cpu;
use broadloom_device::Device;
use broadloom_interp::Interp;
use broadloom_nesl::eval::Host;
use broadloom_nesl::run::Target;
use broadloom_nesl::session::{Output, Session, Settings};
use std::collections::HashMap;
use std::io;

/// Files in memory, a console that always answers `yes`, one command: `cat`.
#[derive(Default)]
pub(crate) struct Memory {
    /// Contents of the files that programs read, by path.
    pub(crate) files: HashMap<String, Vec<u8>>,
}

impl Host for Memory {
    fn read_file(&mut self, path: &str) -> io::Result<Vec<u8>> {
        self.files.get(path).cloned().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such file"))
    }

    fn write_file(&mut self, path: &str, bytes: &[u8], append: bool) -> io::Result<()> {
        let file = self.files.entry(path.to_owned()).or_default();
        if !append {
            file.clear();
        }
        file.extend_from_slice(bytes);
        Ok(())
    }

    fn read_console(&mut self) -> io::Result<Vec<u8>> {
        Ok(b"yes\n".to_vec())
    }

    fn environment_variable(&mut self, name: &str) -> String {
        if name == "USER" { "weaver".to_owned() } else { String::new() }
    }

    fn run_command(&mut self, command: &str, input: &[u8]) -> io::Result<Vec<u8>> {
        if command.starts_with("cat") {
            return Ok(input.to_vec());
        }
        Err(io::Error::new(io::ErrorKind::NotFound, "no such command"))
    }
}

/// Programs with sequences that are only counted: whether ints have 64 bits, the program, and a part of the
/// answer.
#[allow(dead_code, reason = "not all tests need it")]
pub(crate) const COUNTED: [(bool, &str, &str); 11] = [
    (false, "#(dist(1, 1000000000) ++ dist(2, 1000000000));", "it = 2000000000 : int"),
    (false, "let v = dist(1, 1073741824) in #(v ++ v);", "Error[N0304]: a sequence of 2147483648 elements"),
    (false, "let v = dist(1, 2147483647) in {#(v ++ v) : x in [0:3]};", "Error[N0304]: a sequence of 4294967294 elements"),
    (false, "let v = [0:2000000000] in #(v ++ [1] ++ v);", "Error[N0304]: a sequence of 4000000001 elements"),
    (false, "function twice(v) = v ++ v; #twice(twice(dist(t, 1000000000)));", "Error[N0304]"),
    (false, "#flatten(dist(dist(0, 65536), 65536));", "Error[N0304]: a sequence of 4294967296 elements"),
    (false, "{#flatten({dist(0, n) : i in [0:4]}) : n in [1, 1073741824]};", "Error[N0304]: a sequence of 4294967296 elements"),
    (false, "{#flatten({dist(0, n) : i in [0:4]}) : n in [1, 500000000]};", "it = [4, 2000000000] : [int]"),
    (true, "let v = dist(1, 1073741824); w = v ++ v in #(w ++ w);", "it = 4294967296 : int"),
    (true, "#flatten(dist(dist(0, 65536), 65536));", "it = 4294967296 : int"),
    (true, "#flatten(dist(dist(0, 4611686018427387904), 4));", "Error[N0304]"),
];

/// Starts a session on a host in memory.
#[allow(dead_code, reason = "not all tests need it")]
pub(crate) fn session(settings: Settings) -> Session {
    Session::new(settings, Box::new(host())).expect("a thread for the session")
}

/// Starts a session on a host in memory, with a device.
#[allow(dead_code, reason = "not all tests need it")]
pub(crate) fn session_on(settings: Settings, target: Target) -> Session {
    Session::with_device(settings, Box::new(host()), target).expect("a thread for the session")
}

fn host() -> Memory {
    let mut host = Memory::default();
    host.files.insert("shapes.nesl".to_owned(), b"function area(w, h) = w * h; area(2, 3);".to_vec());
    host.files.insert("loop.nesl".to_owned(), b"load \"loop\";".to_vec());
    host.files.insert("numbers".to_owned(), b"( 22 33\n11 )".to_vec());
    host
}

/// Reads the settings in comments at the start of a session.
#[allow(dead_code, reason = "not all tests need it")]
pub(crate) fn settings(text: &str) -> Settings {
    let mut settings = Settings::default();
    for line in text.lines().take_while(|line| line.starts_with('%')) {
        match line.trim_matches(['%', ' ']) {
            "wide int" => settings.options.widths.wide_int = true,
            "narrow float" => settings.options.widths.narrow_float = true,
            "few steps" => settings.options.max_steps = 100_000,
            "little memory" => settings.options.max_bytes = 1 << 20,
            _ => {}
        }
    }
    settings
}

/// Joins answers like the output of a terminal.
#[allow(dead_code, reason = "not all tests need it")]
pub(crate) fn transcript(outputs: &[Output]) -> String {
    outputs.iter().map(ToString::to_string).collect()
}

/// Function that opens a device.
#[allow(dead_code, reason = "not all tests need it")]
pub(crate) type Open = fn() -> Result<Device, String>;

/// Names of devices, each with its open function.
#[allow(dead_code, reason = "not all tests need it")]
pub(crate) const DEVICES: [(&str, Open); 2] = [("interp", interp), ("cpu", cpu)];

#[allow(dead_code, reason = "not all tests need it")]
pub(crate) fn interp() -> Result<Device, String> {
    Ok(Device::new(Interp::new(broadloom_interp::Options::default())))
}

#[allow(dead_code, reason = "not all tests need it")]
pub(crate) fn cpu() -> Result<Device, String> {
    Cpu::new(broadloom_cpu::Options::default()).map(Device::new).map_err(|error| error.to_string())
}
