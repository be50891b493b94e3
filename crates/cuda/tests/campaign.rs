//! Failure campaign: every driver call fails once.
//!
//! A workload that uses every function is run to count its calls. It is then repeated for each call and for
//! each of three results: a recoverable one, out of memory, and a lost context. After each run there must be
//! no panic, no leak, no double release and no wrong result, and the device must be usable or reported as
//! lost.

mod fake;

use broadloom_cuda::{Cuda, Options};
use broadloom_device::{Argument, Device, Error, Launch, Stream};
use broadloom_ptx::Verified;
use fake::{Fake, KERNELS, PLAIN, module, options};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Functions called, by the names that the fake driver counts.
const FUNCTIONS: &[&str] = &[
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceGetAttribute",
    "cuDeviceTotalMem",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease",
    "cuCtxSetCurrent",
    "cuCtxSetLimit",
    "cuMemAlloc",
    "cuMemFree",
    "cuMemHostRegister",
    "cuMemHostUnregister",
    "cuMemcpyHtoDAsync",
    "cuMemcpyDtoHAsync",
    "cuMemcpyDtoDAsync",
    "cuMemsetD8Async",
    "cuStreamCreate",
    "cuStreamDestroy",
    "cuStreamSynchronize",
    "cuStreamQuery",
    "cuStreamWaitEvent",
    "cuEventCreate",
    "cuEventDestroy",
    "cuEventRecord",
    "cuEventQuery",
    "cuEventSynchronize",
    "cuEventElapsedTime",
    "cuLinkCreate",
    "cuLinkAddData",
    "cuLinkComplete",
    "cuLinkDestroy",
    "cuModuleLoadDataEx",
    "cuModuleUnload",
    "cuModuleGetFunction",
    "cuModuleGetGlobal",
    "cuFuncGetAttribute",
    "cuFuncSetAttribute",
    "cuOccupancyMaxActiveBlocksPerMultiprocessor",
    "cuLaunchKernel",
    "cuLaunchKernelEx",
    "cuGraphCreate",
    "cuGraphDestroy",
    "cuGraphAddKernelNode",
    "cuGraphAddMemcpyNode",
    "cuGraphAddMemsetNode",
    "cuGraphKernelNodeSetAttribute",
    "cuGraphInstantiate",
    "cuGraphExecDestroy",
    "cuGraphLaunch",
];

/// Number of elements of a copy in three pieces.
const LARGE: u32 = 9 << 18;

/// Result codes: a plain failure, out of memory, and a lost context.
const CODES: [u32; 3] = [999, 2, 700];

/// Reason for the end of a workload.
enum Ended {
    /// The device refused.
    Refused(Error),
    /// The device returned a wrong result.
    Wrong(String),
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        Ended::Refused(error)
    }
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Result<(), Ended> {
    if found == expected { Ok(()) } else { Err(Ended::Wrong(format!("{what}: {found:?} instead of {expected:?}"))) }
}

/// Runs a workload that uses a little of everything.
fn workload(device: &Device, [code, plain]: &[Arc<Verified>; 2]) -> Result<(), Ended> {
    let module = device.load(code)?;
    let (scale, large, together) = (module.kernel("scale")?, module.kernel("large")?, module.kernel("together")?);
    scale.attributes()?;
    large.occupancy(&Launch::linear(1, 32))?;
    // A module compiled by the linker, and loaded again.
    let (plain, _again) = (device.load(plain)?, device.load(plain)?);
    plain.kernel("scale")?.attributes()?;
    let numbers: Vec<u32> = (0..500).collect();
    let data = device.upload(&numbers)?;
    let times = |factor: u32| numbers.iter().map(|value| value.wrapping_mul(factor)).collect::<Vec<u32>>();
    let triple = |stream: Stream| scale.launch(&Launch::linear(2, 256).on(stream), &[(&data).into(), 500u32.into(), 3u32.into()]);
    triple(Stream::default())?;
    expect("a launch", &data.read()?, &times(3))?;
    // Variables, shared memory, a cooperative launch.
    let variable = module.variable("counter");
    if let Some(variable) = variable {
        let mut bytes = [0; 4];
        device.backend().read(Stream::default(), variable.address, &mut bytes)?;
        expect("a variable", &bytes, &5u32.to_le_bytes())?;
    }
    let words = device.zeros::<u32>(64)?;
    large.launch(&Launch::linear(1, 64).shared(100 << 10), &[(&words).into()])?;
    expect("shared memory", &words.read()?, &(0..64).collect())?;
    let count = device.zeros::<u32>(1)?;
    together.launch(&Launch::linear(4, 32).cooperative(), &[(&count).into()])?;
    expect("a cooperative launch", &count.read()?, &vec![4 * 32])?;
    // Streams and events. The third stream is created while the first is busy.
    let (start, end) = (device.event()?, device.event()?);
    let other = device.stream()?;
    start.record(Stream::default())?;
    triple(Stream::default())?;
    end.record(Stream::default())?;
    end.hold_up(other.id())?;
    let third = device.stream()?;
    triple(other.id())?;
    let limited = Launch::linear(2, 256).on(other.id()).time_limit(Duration::from_secs(20));
    scale.launch(&limited, &[(&data).into(), 500u32.into(), 1u32.into()])?;
    // Frees while there are several streams.
    drop(device.upload(&numbers)?);
    drop(device.zeros::<u32>(1 << 17)?);
    drop(device.zeros::<u32>(1 << 17)?);
    end.has_happened()?;
    end.synchronise()?;
    end.since(&start)?;
    other.synchronise()?;
    end.synchronise()?;
    let mut found = vec![0; 500];
    data.read_into(other.id(), &mut found)?;
    expect("two streams", &found, &times(27))?;
    drop((other, third));
    // Copies: within the device, overlapping, and through pinned memory.
    let copy = device.allocate::<u32>(500)?;
    copy.copy_from(Stream::default(), &data)?;
    let (low, high) = (copy.slice(0, 400), copy.slice(100, 400));
    if let (Some(low), Some(high)) = (low, high) {
        high.copy_from(Stream::default(), &low)?;
        expect("an overlapping copy", &high.read()?, &times(27)[..400].to_vec())?;
    }
    let mut host = device.host_buffer::<u32>(500)?;
    host.values()?.copy_from_slice(&numbers);
    host.upload(Stream::default(), &copy)?;
    expect("an upload", &copy.read()?, &numbers)?;
    host.download(Stream::default(), &data)?;
    expect("a download", &host.values()?.to_vec(), &times(27))?;
    // A copy so large that threads and GPU copy its pieces concurrently.
    static MANY: OnceLock<Vec<u32>> = OnceLock::new();
    let many = MANY.get_or_init(|| (0..LARGE).map(|value| value.wrapping_mul(0x9e37_79b9)).collect());
    let large = device.upload(many)?;
    expect("a large copy", &(large.read()? == *many), &true)?;
    // A sequence with every kind of step.
    let mut recorder = device.recorder();
    recorder.fill_bytes(&count, 0);
    recorder.launch(&scale, &Launch::linear(2, 256), &[(&data).into(), 500u32.into(), 2u32.into()])?;
    recorder.launch(&together, &Launch::linear(4, 32).cooperative(), &[(&count).into()])?;
    recorder.copy(&copy, &data)?;
    let recording = recorder.finish()?;
    recording.replay(Stream::default())?;
    recording.replay(Stream::default())?;
    expect("a sequence", &copy.read()?, &times(108))?;
    expect("its cooperative launch", &count.read()?, &vec![4 * 32])?;
    device.trim()?;
    device.synchronise()?;
    Ok(())
}

/// Tests if a device still works, or reports that it is lost.
fn probe(device: &Device) -> Result<bool, String> {
    match device.upload(&[1u32, 2, 3]).and_then(|data| data.read()) {
        Ok(values) if values == [1, 2, 3] => Ok(true),
        Ok(values) => Err(format!("{values:?} instead of [1, 2, 3]")),
        Err(Error::Lost { .. }) => Ok(false),
        Err(error) => Err(format!("neither usable nor lost: {error}")),
    }
}

/// Makes one run with one failure. Returns an error that describes a wrong reaction.
fn run(fake: &Fake, code: &[Arc<Verified>; 2]) -> Result<(), String> {
    let opened = Cuda::new(Options { timing: true, ..options() });
    if let Ok(cuda) = opened {
        let device = Device::new(cuda);
        match workload(&device, code) {
            Ok(()) => {}
            Err(Ended::Wrong(why)) => return Err(why),
            Err(Ended::Refused(error)) if error.to_string().is_empty() => return Err("an error without words".into()),
            Err(Ended::Refused(_)) => {}
        }
        once_fired(fake, || probe(&device).map(drop))?;
    }
    once_fired(fake, reopened)
}

/// Runs `act`, and repeats it if the injected failure occurred meanwhile: afterwards everything must work.
fn once_fired(fake: &Fake, act: impl Fn() -> Result<(), String>) -> Result<(), String> {
    let due = !fake.fired();
    match act() {
        Err(_) if due && fake.fired() => act(),
        outcome => outcome,
    }
}

/// Checks that a new device works.
fn reopened() -> Result<(), String> {
    let again = Cuda::new(options()).map_err(|error| format!("opened again: {error}"))?;
    match probe(&Device::new(again))? {
        true => Ok(()),
        false => Err("opened again, and lost".to_owned()),
    }
}

#[test]
fn every_call_fails_once() {
    let fake = Fake::new();
    let code = [module(KERNELS), module(PLAIN)];
    fake.forget();
    run(&fake, &code).unwrap_or_else(|why| panic!("without a failure: {why}"));
    fake.assert_clean("without a failure");
    let calls: Vec<(&str, u64)> = FUNCTIONS.iter().map(|name| (*name, fake.calls(name))).collect();
    let unused: Vec<&str> = calls.iter().filter(|(_, count)| *count == 0).map(|(name, _)| *name).collect();
    assert!(unused.is_empty(), "the workload does not use {unused:?}");
    let mut wrong = vec![];
    let mut runs = 0;
    for (name, count) in calls {
        for number in 1..=count {
            for code_given in CODES {
                fake.forget();
                fake.fail(name, number, code_given);
                let when = format!("{name}, call {number}, result {code_given}");
                if let Err(why) = run(&fake, &code) {
                    wrong.push(format!("{when}: {why}"));
                }
                let (violations, report) = fake.report();
                if (fake.alive(), violations) != (0, 0) {
                    wrong.push(format!("{when}: {report}"));
                }
                runs += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {runs} runs went wrong:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
    assert!(runs > 500, "only {runs} runs");
}

#[test]
fn a_driver_that_does_not_start_is_told() {
    // The result of the first call of a library is kept for the process, so this one is opened under its own
    // name.
    let folder = std::env::temp_dir().join(format!("broadloom-fake-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let copy = folder.join("libother.so");
    std::fs::copy(fake::library(), &copy).unwrap();
    let name = copy.to_str().unwrap().to_owned();
    let other = Fake::at(&name);
    for (function, code) in [("cuInit", 999), ("cuInit", 100), ("cuDriverGetVersion", 999)] {
        other.forget();
        other.fail(function, 1, code);
        let error = Cuda::new(Options { driver: name.clone(), ..options() }).unwrap_err();
        assert!(matches!(&error, Error::NotHere { reason, .. } if reason.contains(function)), "{error}");
    }
    other.forget();
    let device = Device::new(Cuda::new(Options { driver: name, ..options() }).unwrap());
    assert!(probe(&device).unwrap());
    drop(device);
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
#[allow(unsafe_code, reason = "a kernel waits for a word of memory")]
fn a_kernel_that_does_not_end_is_given_up() {
    let folder = std::env::temp_dir().join(format!("broadloom-fake-stuck-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let copy = folder.join("libstuck.so");
    std::fs::copy(fake::library(), &copy).unwrap();
    let driver = copy.to_str().unwrap().to_owned();
    let open = || Cuda::new(Options { driver: driver.clone(), ..options() }).map(Device::new);
    let device = open().unwrap();
    let kernel = device.load(&module(KERNELS)).unwrap().kernel("forever").unwrap();
    let flag = device.zeros::<u32>(1).unwrap();
    let address = flag.address();
    device.synchronise().unwrap();
    let limited = Launch::linear(1, 1).time_limit(Duration::from_millis(50));
    kernel.launch(&limited, &[Argument::from(&flag)]).unwrap();
    let Err(Error::Fault(fault)) = device.synchronise() else { panic!("it ended") };
    assert_eq!(fault.kernel, "forever");
    assert!(matches!(device.synchronise(), Err(Error::Lost { .. })));
    let still = open().unwrap_err();
    assert!(still.to_string().contains("still runs"), "{still}");
    // SAFETY: the fake GPU's memory is host memory. The word is alive, since a stuck device frees nothing.
    unsafe {
        std::ptr::with_exposed_provenance_mut::<u32>(address as usize).write_volatile(1);
    }
    drop((flag, kernel, device));
    let again = (0..500).find_map(|_| {
        std::thread::sleep(Duration::from_millis(10));
        open().ok()
    });
    assert!(probe(&again.expect("it has ended by now")).unwrap());
    let _ = std::fs::remove_dir_all(&folder);
}
