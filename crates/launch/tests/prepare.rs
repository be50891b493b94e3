//! Launches as text, on a device that only records its calls.

use broadloom_device::{
    Backend, Device, Error, EventId, GlobalVariable, Launch, LoadedModule, Machine, MachineKind, MemoryUse, Result, Stream,
};
use broadloom_diag::Sources;
use broadloom_launch::{
    Destination, HostArray, LaunchError, LaunchSpec, PreparedLaunch, prepare, read_npy, split_words, write_npy,
};
use broadloom_ptx::{Func, IsaVersion, Verified, parse, verify};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const MEMORY: u64 = 1 << 20;

#[derive(Debug, Default)]
struct State {
    buffers: BTreeMap<u64, Vec<u8>>,
    launched: Vec<(Launch, Vec<u8>)>,
}

#[derive(Debug)]
struct Memory {
    machine: Machine,
    state: Arc<Mutex<State>>,
}

impl Memory {
    fn new() -> Memory {
        let machine = Machine {
            kind: MachineKind::Interp,
            id: "memory".into(),
            name: "memory".into(),
            warp_size: 32,
            multiprocessors: 1,
            max_threads_per_block: 1024,
            max_block: [1024, 1024, 64],
            max_grid: [1 << 30, 65535, 65535],
            max_shared_bytes: 48 << 10,
            registers: None,
            resident_threads: None,
            vector_registers: None,
            memory_bytes: MEMORY,
            cache_bytes: None,
            core_cache_bytes: None,
            peak_operations: None,
            peak_bandwidth: None,
            bandwidth: None,
            launch_cost: None,
            isa: IsaVersion::new(8, 0),
            sm: 90,
        };
        Memory { machine, state: Arc::default() }
    }

    fn with<T>(&self, address: u64, bytes: u64, act: impl FnOnce(&mut [u8]) -> T) -> Result<T> {
        let mut state = self.state.lock().unwrap();
        let found = state.buffers.range_mut(..=address).next_back();
        let range = found.and_then(|(start, buffer)| buffer.get_mut((address - start) as usize..)?.get_mut(..bytes as usize));
        range.map(act).ok_or(Error::BadAddress { call: "test", address, bytes })
    }
}

impl Backend for Memory {
    fn machine(&self) -> &Machine {
        &self.machine
    }
    fn allocate(&self, bytes: u64) -> Result<u64> {
        let mut state = self.state.lock().unwrap();
        if bytes > MEMORY {
            return Err(Error::OutOfMemory { requested: bytes, available: MEMORY });
        }
        let address = 0x1000_0000 * (state.buffers.len() as u64 + 1);
        state.buffers.insert(address, vec![0xEE; bytes as usize]);
        Ok(address)
    }
    fn free(&self, _: u64) -> Result<()> {
        Ok(())
    }
    fn write(&self, _: Stream, address: u64, bytes: &[u8]) -> Result<()> {
        self.with(address, bytes.len() as u64, |memory| memory.copy_from_slice(bytes))
    }
    fn read(&self, _: Stream, address: u64, bytes: &mut [u8]) -> Result<()> {
        self.with(address, bytes.len() as u64, |memory| bytes.copy_from_slice(memory))
    }
    fn copy(&self, _: Stream, _: u64, _: u64, _: u64) -> Result<()> {
        Ok(())
    }
    fn fill(&self, _: Stream, address: u64, byte: u8, bytes: u64) -> Result<()> {
        self.with(address, bytes, |memory| memory.fill(byte))
    }
    fn load(&self, _: &Arc<Verified>) -> Result<Arc<dyn LoadedModule>> {
        Ok(Arc::new(Loaded(self.state.clone())))
    }
    fn create_stream(&self) -> Result<Stream> {
        Ok(Stream(1))
    }
    fn synchronise_stream(&self, _: Stream) -> Result<()> {
        Ok(())
    }
    fn synchronise(&self) -> Result<()> {
        Ok(())
    }
    fn destroy_stream(&self, _: Stream) -> Result<()> {
        Ok(())
    }
    fn create_event(&self) -> Result<EventId> {
        Ok(EventId(0))
    }
    fn destroy_event(&self, _: EventId) -> Result<()> {
        Ok(())
    }
    fn record_event(&self, _: EventId, _: Stream) -> Result<()> {
        Ok(())
    }
    fn wait_event(&self, _: Stream, _: EventId) -> Result<()> {
        Ok(())
    }
    fn query_event(&self, _: EventId) -> Result<bool> {
        Ok(true)
    }
    fn synchronise_event(&self, _: EventId) -> Result<()> {
        Ok(())
    }
    fn elapsed(&self, _: EventId, _: EventId) -> Result<Duration> {
        Ok(Duration::ZERO)
    }
    fn memory(&self) -> MemoryUse {
        MemoryUse::default()
    }
    fn trim(&self) -> Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct Loaded(Arc<Mutex<State>>);

impl LoadedModule for Loaded {
    fn variable(&self, _: &str) -> Option<GlobalVariable> {
        None
    }
    fn launch(&self, _: Func, launch: &Launch, params: &[u8]) -> Result<()> {
        self.0.lock().unwrap().launched.push((launch.clone(), params.to_vec()));
        Ok(())
    }
}

const KERNEL: &str = "
.visible .entry k(.param .u64 out, .param .f32 x, .param .u32 n, .param .align 8 .b8 s[24]) { ret; }
";

fn prepared(body: &str, line: &str, folder: &Path) -> std::result::Result<(PreparedLaunch, Arc<Mutex<State>>), String> {
    let mut sources = Sources::new();
    let id = sources.add("k.ptx", format!(".version 8.0\n.target sm_90\n.address_size 64\n{body}"));
    let code = Arc::new(parse(&sources, id).and_then(verify).map_err(|wrong| sources.render_all(&wrong))?);
    let memory = Memory::new();
    let state = memory.state.clone();
    let module = Device::new(memory).load(&code).map_err(|error| error.to_string())?;
    let words = split_words(line).ok_or("a quote is not closed")?;
    let spec = LaunchSpec::parse(&mut sources, &words).map_err(|wrong| sources.render_all(&wrong))?;
    match prepare(&module, &spec, folder) {
        Ok(prepared) => Ok((prepared, state)),
        Err(LaunchError::Wrong(wrong)) => Err(sources.render_all(&wrong)),
        Err(LaunchError::Device(error)) => Err(error.to_string()),
    }
}

fn error(body: &str, line: &str) -> String {
    prepared(body, line, Path::new(".")).map(drop).unwrap_err()
}

#[test]
fn arguments_reach_the_parameter_block() {
    let line = "--grid 2 --block 32 --arg u32[2]:7,8= --arg f32:1.5 --arg u32:9 --arg '{u8:1; u16[1]:5=; i32:-1}'";
    let (prepared, state) = prepared(KERNEL, line, Path::new(".")).unwrap();
    prepared.launch().unwrap();
    let state = state.lock().unwrap();
    let (launch, block) = &state.launched[0];
    assert_eq!((launch.grid, launch.block), ([2, 1, 1], [32, 1, 1]));
    assert_eq!(block.len(), 40);
    let address = u64::from_le_bytes(block[..8].try_into().unwrap());
    assert_eq!(state.buffers[&address], [7, 0, 0, 0, 8, 0, 0, 0]);
    assert_eq!(&block[8..16], [0, 0, 0xc0, 0x3f, 9, 0, 0, 0]);
    assert_eq!(block[16], 1);
    let inner = u64::from_le_bytes(block[24..32].try_into().unwrap());
    assert_eq!(state.buffers[&inner], [5, 0]);
    assert_eq!(&block[32..36], [255; 4]);
    drop(state);
    let outputs = prepared.outputs().unwrap();
    assert_eq!(outputs.iter().map(|output| output.name.as_str()).collect::<Vec<_>>(), ["out", "s.1"]);
    assert_eq!(outputs[0].array.to_string(), "u32[2]\n  0: 7 8");
    assert_eq!(outputs[0].destination, Destination::Shown);
}

const ONE: &str = ".visible .entry k(.param .u64 p) { ret; }";

fn contents(argument: &str) -> String {
    let (prepared, _) = prepared(ONE, &format!("--arg '{argument}' ="), Path::new(".")).unwrap();
    prepared.outputs().unwrap().remove(0).array.to_string()
}

#[test]
fn buffers_start_with_what_was_asked_for() {
    assert_eq!(contents("i32[3]:zero"), "i32[3]\n  0: 0 0 0");
    assert_eq!(contents("f16[4]:iota"), "f16[4]\n  0: 0.0 1.0 2.0 3.0");
    assert_eq!(contents("u8[3]:uninit"), "u8[3]\n  0: 238 238 238");
    assert_eq!(contents("b16[2,2]:1,2,3,4"), "b16[2,2]\n  0: 0x0001 0x0002\n  2: 0x0003 0x0004");
    assert_eq!(contents("f32[8]:random"), contents("f32[8]:random"));
    assert_ne!(contents("f32[8]:random"), contents("f32[8]:random(1)"));
}

#[test]
fn files_are_read_from_the_folder() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let array = HostArray { element: broadloom_launch::Element::U16, shape: vec![2, 2], bytes: vec![1, 0, 2, 0, 3, 0, 4, 0] };
    write_npy(&folder.join("a.npy"), &array).unwrap();
    assert_eq!(read_npy(&folder.join("a.npy")).unwrap(), array);
    for (argument, shown) in [
        ("@a.npy", "u16[2,2]\n  0: 1 2\n  2: 3 4"),
        ("i16[]:@a.npy", "i16[2,2]\n  0: 1 2\n  2: 3 4"),
        ("b32[2]:@a.npy", "b32[2]\n  0: 0x00020001 0x00040003"),
    ] {
        let (prepared, _) = prepared(ONE, &format!("--arg '{argument}' ="), &folder).unwrap();
        assert_eq!(prepared.outputs().unwrap()[0].array.to_string(), shown);
    }
    for (argument, part) in [
        ("@missing.npy", "cannot read `missing.npy`"),
        ("u16[3]:@a.npy", "holds 4 values, not 3"),
        ("@../Cargo.toml", "cannot read"),
    ] {
        let error = prepared(ONE, &format!("--arg '{argument}'"), &folder).map(drop).unwrap_err();
        assert!(error.contains(part) && error.contains("argument 1"), "{argument}: {error}");
    }
}

#[test]
fn misfits_point_at_argument_and_parameter() {
    let rest = "--arg f32:1.5 --arg u32:9 --arg '{u64:1; u64:2; u64:3}'";
    for (line, parts) in [
        ("", &["takes 4 arguments, not 0", "no argument for this", "--arg f32[64]:zero --arg f32:0 --arg u32:0 --arg '{…}'"][..]),
        (
            "--arg i32:7 --arg f32:1 --arg u32:1 --arg '{u64:1; u64:2; u64:3}'",
            &["has 4 bytes, but the parameter `out` has 8", "argument 1:1:1"],
        ),
        (&format!("--arg f32[2]:zero {rest} --arg i32:1"), &["takes 4 arguments, not 5", "argument 5:1:1", "one too many"]),
        (
            "--arg f32[2]:zero --arg i32:1 --arg u32:1 --arg '{u64:1; u64:2; u64:3}'",
            &["an integer for the float `x`", "write `f32:…`"],
        ),
        ("--arg f32[2]:zero --arg f32:1 --arg f32:1 --arg '{u64:1; u64:2; u64:3}'", &["a float for the integer `n`"]),
        ("--arg f32[2]:zero --arg f32:1 --arg u32:1 --arg '{u64:1; u64:2}'", &["has 16 bytes, but the parameter `s` has 24"]),
        (
            "--arg f32[2]:zero --arg f32:1 --arg u32[4]:zero --arg '{u64:1; u64:2; u64:3}'",
            &["the address of a buffer has 8 bytes"],
        ),
        ("--kernel kk", &["no kernel `kk`", "did you mean `k`?"]),
    ] {
        let error = error(KERNEL, line);
        for part in parts {
            assert!(error.contains(part), "{line}: {part:?} missing in\n{error}");
        }
    }
    assert!(error(".entry a() { ret; } .entry b() { ret; }", "").contains("name one of `a`, `b`"));
    assert!(error(".func f() { ret; }", "").contains("has no kernel"));
    assert!(error(ONE, "--arg u8[2000000]:zero").contains("out of memory"));
}

#[test]
fn bits_pass_for_anything() {
    prepared(KERNEL, "--arg b64:0 --arg b32:0x3f800000 --arg b32:1 --arg '{b64:1; b64:2; b64:3}'", Path::new(".")).unwrap();
}
