//! Tests of the device over the fake driver, without a GPU.

mod fake;

use broadloom_cuda::{Cuda, Options};
use broadloom_device::cache::Miss;
use broadloom_device::trace::{Trace, Value};
use broadloom_device::{Argument, CacheFolder, Device, Error, FaultKind, Launch, MachineKind, Stream};
use fake::{Fake, KERNELS, PLAIN, alone, leaves_nothing, module, open, options};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[test]
fn a_kernel_runs_and_everything_is_given_back() {
    leaves_nothing(|_| {
        let device = open().unwrap();
        assert_eq!(device.machine().kind, MachineKind::Cuda);
        assert_eq!((device.machine().id.as_str(), device.machine().sm), ("cuda:0", 90));
        let kernel = device.load(&module(KERNELS)).unwrap().kernel("scale").unwrap();
        let values: Vec<u32> = (0..10_000).collect();
        let data = device.upload(&values).unwrap();
        kernel.launch(&Launch::linear(40, 256), &[(&data).into(), 10_000u32.into(), 3u32.into()]).unwrap();
        let expected: Vec<u32> = values.iter().map(|value| value * 3).collect();
        assert_eq!(data.read().unwrap(), expected);
        let middle = data.slice(100, 50).unwrap();
        assert_eq!(middle.read().unwrap(), expected[100..150]);
        assert!(data.slice(9_999, 2).is_none());
    });
}

#[test]
fn gpus_are_apart() {
    leaves_nothing(|_| {
        let first = open().unwrap();
        let second = Device::new(Cuda::new(Options { ordinal: 1, ..options() }).unwrap());
        assert_eq!(second.machine().id, "cuda:1");
        let data = second.upload(&[1u32, 2, 3]).unwrap();
        let mut bytes = [0; 4];
        let wrong = first.backend().read(Stream::default(), data.address(), &mut bytes).unwrap_err();
        assert!(matches!(wrong, Error::BadAddress { .. }), "{wrong}");
        let none = Cuda::new(Options { ordinal: 2, ..options() }).unwrap_err();
        assert!(none.to_string().contains("sees 2 GPUs, `cuda:0` to `cuda:1`"), "{none}");
    });
}

#[test]
fn no_driver_is_said_clearly() {
    let none = Cuda::new(Options { driver: "libno-such-driver.so.1".into(), ..Options::default() }).unwrap_err();
    let text = none.to_string();
    assert!(
        text.starts_with("the device `cuda` is not here: the driver `libno-such-driver.so.1` could not be opened: "),
        "{text}"
    );
}

#[test]
fn streams_events_and_order() {
    leaves_nothing(|_| {
        let device = open().unwrap();
        let kernel = device.load(&module(KERNELS)).unwrap().kernel("scale").unwrap();
        let (one, two) = (device.stream().unwrap(), device.stream().unwrap());
        let data = device.upload(&[1u32; 1000]).unwrap();
        device.synchronise().unwrap();
        let (start, middle, end) = (device.event().unwrap(), device.event().unwrap(), device.event().unwrap());
        assert!(end.since(&start).is_err(), "never recorded");
        let launch = |stream| kernel.launch(&Launch::linear(4, 256).on(stream), &[(&data).into(), 1000u32.into(), 3u32.into()]);
        start.record(one.id()).unwrap();
        for _ in 0..4 {
            launch(one.id()).unwrap();
        }
        middle.record(one.id()).unwrap();
        middle.hold_up(two.id()).unwrap();
        launch(two.id()).unwrap();
        end.record(two.id()).unwrap();
        end.synchronise().unwrap();
        assert!(end.has_happened().unwrap());
        assert!(end.since(&start).unwrap() > Duration::ZERO);
        let mut values = vec![0; 1000];
        data.read_into(two.id(), &mut values).unwrap();
        assert_eq!(values, [243; 1000]);
        let id = one.id();
        drop(one);
        assert!(matches!(launch(id), Err(Error::UnknownStream(_))));
    });
}

#[test]
fn freed_memory_is_reused_and_returned() {
    leaves_nothing(|fake| {
        let device = open().unwrap();
        let first = device.zeros::<u8>(4 << 20).unwrap();
        let address = first.address();
        drop(first);
        let before = fake.calls("cuMemAlloc");
        for _ in 0..100 {
            assert_eq!(device.zeros::<u8>(4 << 20).unwrap().address(), address, "the pool gives the same block again");
        }
        assert_eq!(fake.calls("cuMemAlloc"), before);
        assert!(device.memory().pooled >= 4 << 20);
        device.trim().unwrap();
        assert_eq!(device.memory().pooled, 0);
        // The limit is 256 MiB: cached memory is released first, and a request that does not fit fails
        // without harm.
        let held = device.zeros::<u8>(100 << 20).unwrap();
        drop(device.zeros::<u8>(100 << 20).unwrap());
        let large = device.zeros::<u8>(140 << 20).unwrap();
        let refused = device.zeros::<u8>(50 << 20).unwrap_err();
        assert!(matches!(refused, Error::OutOfMemory { requested, .. } if requested == 50 << 20), "{refused}");
        drop(large);
        assert!(device.zeros::<u8>(50 << 20).is_ok());
        assert_eq!(held.read().unwrap(), vec![0; 100 << 20]);
    });
}

#[test]
fn pinned_memory_copies_in_stream_order() {
    leaves_nothing(|_| {
        let device = open().unwrap();
        let kernel = device.load(&module(KERNELS)).unwrap().kernel("scale").unwrap();
        let mut host = device.host_buffer::<u32>(5000).unwrap();
        host.values().unwrap().iter_mut().enumerate().for_each(|(index, value)| *value = index as u32);
        let data = device.allocate::<u32>(5000).unwrap();
        host.upload(Stream::default(), &data).unwrap();
        kernel.launch(&Launch::linear(20, 256), &[(&data).into(), 5000u32.into(), 2u32.into()]).unwrap();
        let mut back = device.host_buffer::<u32>(5000).unwrap();
        back.download(Stream::default(), &data).unwrap();
        assert!(back.values().unwrap().iter().enumerate().all(|(index, value)| *value == 2 * index as u32));
        assert!(host.upload(Stream::default(), &device.allocate::<u32>(4999).unwrap()).is_err());
    });
}

#[test]
fn sequences_are_replayed() {
    leaves_nothing(|fake| {
        let device = open().unwrap();
        let module = device.load(&module(KERNELS)).unwrap();
        let (scale, together) = (module.kernel("scale").unwrap(), module.kernel("together").unwrap());
        let (data, saved) = (device.upload(&[1u32; 300]).unwrap(), device.zeros::<u32>(300).unwrap());
        let count = device.zeros::<u32>(1).unwrap();
        let mut recorder = device.recorder();
        recorder.fill_bytes(&count, 0);
        for _ in 0..20 {
            recorder.launch(&scale, &Launch::linear(2, 256), &[(&data).into(), 300u32.into(), 2u32.into()]).unwrap();
        }
        recorder.launch(&together, &Launch::linear(4, 32).cooperative(), &[(&count).into()]).unwrap();
        recorder.copy(&saved, &data).unwrap();
        recorder.keep(&data);
        let recording = recorder.finish().unwrap();
        drop((module, scale, together));
        let launches = fake.calls("cuLaunchKernel");
        recording.replay(Stream::default()).unwrap();
        assert_eq!(saved.read().unwrap(), [1 << 20; 300]);
        let stream = device.stream().unwrap();
        recording.replay(stream.id()).unwrap();
        stream.synchronise().unwrap();
        assert_eq!(saved.read().unwrap(), [0; 300], "2^40 in 32 bits");
        assert_eq!(count.read().unwrap(), [4 * 32]);
        assert_eq!(fake.calls("cuLaunchKernel"), launches, "a replay is one call");
        assert!(device.recorder().finish().unwrap().replay(Stream::default()).is_ok(), "nothing to do");
    });
}

#[test]
fn attributes_shared_memory_and_cooperative_launches() {
    leaves_nothing(|_| {
        let device = open().unwrap();
        let module = device.load(&module(KERNELS)).unwrap();
        let large = module.kernel("large").unwrap();
        assert_eq!(large.attributes().unwrap().registers, Some(32));
        let data = device.zeros::<u32>(200).unwrap();
        let launch = Launch::linear(1, 200).shared(200 << 10);
        assert_eq!(large.occupancy(&launch).unwrap(), Some(10));
        large.launch(&launch, &[(&data).into()]).unwrap();
        assert_eq!(data.read().unwrap(), (0..200).collect::<Vec<u32>>());
        let wrong = large.launch(&Launch::linear(1, 32).shared(228 << 10), &[(&data).into()]).unwrap_err();
        assert!(wrong.to_string().contains("a block has at most 232448"), "{wrong}");
        let together = module.kernel("together").unwrap();
        let wrong = together.launch(&Launch::linear(10_000, 32).cooperative(), &[(&data).into()]).unwrap_err();
        assert!(wrong.to_string().contains("at most 256 of its blocks run at the same time, not 10000"), "{wrong}");
        let variable = module.variable("counter").unwrap();
        let mut bytes = [0; 4];
        device.backend().read(Stream::default(), variable.address, &mut bytes).unwrap();
        assert_eq!((variable.bytes, bytes), (4, 5u32.to_le_bytes()));
        assert!(module.variable("nothing").is_none());
        assert!(device.backend().free(variable.address).is_err());
    });
}

#[test]
fn what_the_driver_does_not_compile_is_told_with_its_log() {
    leaves_nothing(|fake| {
        let device = open().unwrap();
        let refused = format!("{KERNELS}\n.visible .entry refused() {{ ret; }}");
        let Err(Error::Unsupported(wrong)) = device.load(&module(&refused)) else { panic!("taken") };
        let text = format!("{wrong:?}");
        assert!(text.contains("the driver does not take the module: cuModuleLoadDataEx gave CUDA_ERROR_INVALID_PTX"), "{text}");
        assert!(text.contains("refused, as its name asks for") && text.contains(".visible .entry refused()"), "{text}");
        // A refused image does not mean a refused text.
        fake.fail("cuModuleLoadDataEx", 1, 218);
        assert!(device.load(&module(PLAIN)).is_ok());
        assert!(device.load(&module(KERNELS)).is_ok());
    });
}

#[test]
fn a_stray_access_loses_the_device_once_and_it_can_be_opened_again() {
    let _one = alone();
    let fake = Fake::new();
    fake.forget();
    {
        let device = open().unwrap();
        let loaded = device.load(&module(KERNELS)).unwrap();
        let mut pinned = device.host_buffer::<u32>(100).unwrap();
        let data = device.upload(&[1u32; 100]).unwrap();
        device.synchronise().unwrap();
        loaded.kernel("wild").unwrap().launch(&Launch::linear(1, 1), &[Argument::Address(16)]).unwrap();
        let Err(Error::Fault(fault)) = device.synchronise() else { panic!("no fault") };
        assert_eq!((fault.kind, fault.kernel.as_str()), (FaultKind::OutOfBounds, "wild"));
        assert!(fault.message.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{fault}");
        for outcome in [
            device.synchronise(),
            data.read().map(drop),
            device.zeros::<u32>(10).map(drop),
            device.load(&module(KERNELS)).map(drop),
            device.stream().map(drop),
            pinned.values().map(drop),
        ] {
            let Err(Error::Lost { reason, .. }) = outcome else { panic!("not lost: {outcome:?}") };
            assert!(reason.contains("kernel `wild`"), "{reason}");
        }
        // While all objects of the old context still exist.
        let again = open().unwrap();
        assert_eq!(again.upload(&[7u32]).unwrap().read().unwrap(), [7]);
        assert!(matches!(data.read(), Err(Error::Lost { .. })));
        drop((device, loaded, data, pinned));
        assert_eq!(again.upload(&[8u32]).unwrap().read().unwrap(), [8]);
    }
    fake.assert_clean("after a lost device");
    let fresh = open().unwrap();
    assert_eq!(fresh.upload(&[9u32]).unwrap().read().unwrap(), [9]);
}

#[test]
fn several_suspects_are_named_unless_launches_are_waited_for() {
    let _one = alone();
    let fake = Fake::new();
    fake.forget();
    for synchronous in [false, true] {
        let device = Device::new(Cuda::new(Options { synchronous, ..options() }).unwrap());
        let module = device.load(&module(KERNELS)).unwrap();
        let data = device.zeros::<u32>(100).unwrap();
        let scale =
            || module.kernel("scale").unwrap().launch(&Launch::linear(1, 100), &[(&data).into(), 100u32.into(), 1u32.into()]);
        let wild = || module.kernel("wild").unwrap().launch(&Launch::linear(1, 1), &[Argument::Address(16)]);
        let outcome = scale().and_then(|()| wild()).and_then(|()| scale()).and_then(|()| device.synchronise());
        let Err(Error::Fault(fault)) = outcome else { panic!("{outcome:?}") };
        if synchronous {
            assert_eq!(fault.kernel, "wild");
        } else {
            assert!(fault.kernel.contains("wild") && fault.kernel.contains("scale"), "{fault}");
            assert!(fault.message.contains("BROADLOOM_CUDA_SYNC=1 tells which"), "{fault}");
        }
    }
    fake.assert_clean("after suspects");
}

#[test]
fn printed_text_is_turned_aside() {
    leaves_nothing(|_| {
        let printed = Arc::new(Mutex::new(vec![]));
        let sink = printed.clone();
        let output: broadloom_cuda::Output = Arc::new(move |text: &[u8]| sink.lock().unwrap().extend_from_slice(text));
        let device = Device::new(Cuda::new(Options { output: Some(output), ..options() }).unwrap());
        let say = device.load(&module(KERNELS)).unwrap().kernel("say").unwrap();
        say.launch(&Launch::linear(1, 1), &[42u32.into()]).unwrap();
        device.synchronise().unwrap();
        // The test harness reports other tests on the same standard output.
        let printed = String::from_utf8_lossy(&printed.lock().unwrap()).into_owned();
        assert_eq!(printed.lines().filter(|line| !line.starts_with("test ")).collect::<Vec<_>>(), ["said 42"]);
    });
}

#[test]
fn what_is_measured_is_there() {
    leaves_nothing(|_| {
        let device = open().unwrap();
        assert_eq!((device.machine().bandwidth, device.machine().launch_cost), (None, None));
        let machine = device.measured_machine();
        assert!(machine.bandwidth.is_some_and(|bandwidth| bandwidth > 1e8), "{machine:?}");
        assert!(machine.launch_cost.is_some_and(|cost| cost > 0.0 && cost < 0.1), "{machine:?}");
    });
}

#[test]
fn compiled_modules_are_kept_whatever_their_text_looks_like() {
    let _one = alone();
    let fake = Fake::new();
    fake.forget();
    let folder = std::env::temp_dir().join(format!("broadloom-images-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let cache = CacheFolder::At(folder.clone());
    // Loads and launches in a newly opened device. Returns the reason for the cache miss.
    let launched = |text: &str, cache: &CacheFolder| {
        let cuda = Cuda::new(Options { cache: cache.clone(), ..options() }).unwrap();
        let device = Device::new(cuda.clone());
        let kernel = device.load(&module(text)).unwrap().kernel("scale").unwrap();
        let data = device.upload(&[5u32; 8]).unwrap();
        kernel.launch(&Launch::linear(1, 8), &[(&data).into(), 8u32.into(), 3u32.into()]).unwrap();
        assert_eq!(data.read().unwrap(), [15; 8]);
        cuda.statistics()[0].miss
    };
    let compilations = || fake.calls("cuLinkComplete");
    assert_eq!(launched(PLAIN, &cache), Some(Miss::Unseen));
    assert_eq!((launched(PLAIN, &cache), compilations()), (None, 1));
    let other_looks = PLAIN.replace(";\n", ";  // a comment\n\n").replace("    ", "\t");
    assert_eq!((launched(&other_looks, &cache), compilations()), (None, 1));
    assert_eq!(launched(&PLAIN.replace("counter = 5", "counter = 6"), &cache), Some(Miss::Unseen));
    assert_eq!(launched(PLAIN, &CacheFolder::Nowhere), Some(Miss::Disabled));
    // A module loaded twice by one device is compiled once, for any cache folder.
    {
        let before = compilations();
        let device = open().unwrap();
        let (one, two) = (device.load(&module(PLAIN)).unwrap(), device.load(&module(&other_looks)).unwrap());
        assert_eq!(compilations(), before + 1);
        // Each has its own variables.
        assert_ne!(one.variable("counter").unwrap().address, two.variable("counter").unwrap().address);
    }
    // Damaged entries are compiled again. So are intact entries that are no image for the driver.
    let file = |folder: &std::path::Path| {
        let shelves = std::fs::read_dir(folder.join("cuda")).unwrap().flatten().filter(|entry| entry.path().is_dir());
        shelves.flat_map(|shelf| std::fs::read_dir(shelf.path()).unwrap().flatten()).map(|entry| entry.path()).collect::<Vec<_>>()
    };
    assert_eq!(file(&folder).len(), 2);
    file(&folder).iter().for_each(|path| std::fs::write(path, "broken").unwrap());
    assert_eq!((launched(PLAIN, &cache), launched(PLAIN, &cache)), (Some(Miss::Corrupt), None));
    for (function, code) in [("cuModuleLoadDataEx", 200), ("cuModuleLoadDataEx", 209)] {
        fake.fail(function, 1, code);
        assert_eq!((launched(PLAIN, &cache), launched(PLAIN, &cache)), (Some(Miss::Corrupt), None));
    }
    // Without a linker the text is loaded.
    for function in ["cuLinkCreate", "cuLinkAddData", "cuLinkComplete"] {
        fake.fail(function, 1, 999);
        assert_eq!(launched(PLAIN, &CacheFolder::Nowhere), Some(Miss::Disabled));
        assert!(fake.fired());
    }
    // A module with functions is passed to the driver as text.
    assert_eq!(launched(KERNELS, &cache), Some(Miss::Unkept));
    let counts = cache.contents().unwrap().devices[1].counts;
    assert_eq!((counts.missed(Miss::Unseen), counts.missed(Miss::Corrupt)), (2, 3));
    std::fs::remove_dir_all(&folder).unwrap();
    fake.assert_clean("after loading from the cache");
}

#[test]
fn large_copies_go_through_in_pieces() {
    leaves_nothing(|_| {
        let device = open().unwrap();
        let scale = device.load(&module(KERNELS)).unwrap().kernel("scale").unwrap();
        // More than twice the staging memory: chunks are reused while others are pending.
        let count = (144 << 18) + 3;
        let values: Vec<u32> = (0..count).map(|value: u32| value.wrapping_mul(0x9e37_79b9)).collect();
        let data = device.allocate::<u32>(values.len()).unwrap();
        let other = device.stream().unwrap();
        for stream in [Stream::default(), other.id()] {
            data.write_in(stream, &values).unwrap();
            scale.launch(&Launch::linear(1, 1).on(stream), &[(&data).into(), 1u32.into(), 3u32.into()]).unwrap();
            let mut back = vec![0; values.len()];
            data.read_into(stream, &mut back).unwrap();
            assert!(back[1..] == values[1..] && back[0] == values[0].wrapping_mul(3));
        }
        // A part at an odd offset, and small copies between large ones.
        let part = data.slice(1, 9 << 18).unwrap();
        let small = device.upload(&[7u32; 100]).unwrap();
        part.write(&values[..9 << 18]).unwrap();
        assert_eq!(small.read().unwrap(), [7; 100]);
        assert!(part.read().unwrap() == values[..9 << 18]);
        // From two threads at the same time.
        std::thread::scope(|scope| {
            for stream in [Stream::default(), other.id()] {
                let (device, values) = (&device, &values);
                scope.spawn(move || {
                    let mine = device.allocate::<u32>(5 << 20).unwrap();
                    mine.write_in(stream, &values[..5 << 20]).unwrap();
                    let mut back = vec![0; 5 << 20];
                    mine.read_into(stream, &mut back).unwrap();
                    assert!(back == values[..5 << 20]);
                });
            }
        });
    });
}

#[test]
fn launches_are_timed_by_events() {
    leaves_nothing(|fake| {
        let cuda = Cuda::new(Options { timing: true, ..options() }).unwrap();
        let device = Device::new(cuda.clone());
        let kernel = device.load(&module(KERNELS)).unwrap().kernel("scale").unwrap();
        let data = device.upload(&vec![1u32; 100_000]).unwrap();
        for _ in 0..3 {
            kernel.launch(&Launch::linear(400, 256), &[(&data).into(), 100_000u32.into(), 3u32.into()]).unwrap();
        }
        device.synchronise().unwrap();
        let statistics = cuda.statistics();
        assert_eq!(statistics.len(), 1, "{statistics:?}");
        assert_eq!((statistics[0].kernel.as_str(), statistics[0].launches, statistics[0].timed), ("scale", 3, 3));
        assert!(statistics[0].run_time > Duration::ZERO && statistics[0].run_time < Duration::from_secs(10), "{statistics:?}");
        // Without a request nothing is timed, and no event is created.
        let before = fake.calls("cuEventRecord");
        let plain = Cuda::new(options()).unwrap();
        let device = Device::new(plain.clone());
        let kernel = device.load(&module(KERNELS)).unwrap().kernel("scale").unwrap();
        let data = device.upload(&[1u32; 8]).unwrap();
        kernel.launch(&Launch::linear(1, 8), &[(&data).into(), 8u32.into(), 3u32.into()]).unwrap();
        device.synchronise().unwrap();
        assert_eq!((plain.statistics()[0].launches, plain.statistics()[0].timed), (1, 0));
        assert_eq!(fake.calls("cuEventRecord"), before);
    });
}

/// Returns the device spans of a trace: name, start and end of each, in order.
fn device_spans(trace: Trace) -> Vec<(Value, f64, f64)> {
    let mut text = vec![];
    trace.finish(&mut text).unwrap();
    let json: Value = String::from_utf8(text).unwrap().parse().unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let gpu = events.iter().find(|event| event["name"] == "process_name" && event["args"]["name"] == "cuda:0").expect("a GPU");
    let spans = events.iter().filter(|event| event["ph"] == "X" && event["pid"] == gpu["pid"]);
    spans.map(|event| (event.clone(), event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap())).collect()
}

#[test]
fn a_trace_has_lanes_of_the_device() {
    let _one = alone();
    let fake = Fake::new();
    fake.forget();
    let trace = Trace::start().unwrap();
    {
        let device = open().unwrap();
        let scale = device.load(&module(KERNELS)).unwrap().kernel("scale").unwrap();
        let data = device.upload(&[1u32; 1000]).unwrap();
        let copy = device.zeros::<u32>(1000).unwrap();
        let other = device.stream().unwrap();
        for stream in [Stream::default(), other.id()] {
            scale.launch(&Launch::linear(4, 256).on(stream), &[(&data).into(), 1000u32.into(), 3u32.into()]).unwrap();
        }
        copy.copy_from(Stream::default(), &data).unwrap();
        let mut recorder = device.recorder();
        recorder.launch(&scale, &Launch::linear(4, 256), &[(&data).into(), 1000u32.into(), 3u32.into()]).unwrap();
        recorder.finish().unwrap().replay(Stream::default()).unwrap();
        let mut host = device.host_buffer::<u32>(1000).unwrap();
        host.upload(Stream::default(), &copy).unwrap();
        host.download(Stream::default(), &copy).unwrap();
        copy.read().unwrap();
        device.synchronise().unwrap();
    }
    let spans = device_spans(trace);
    let names: Vec<&str> = spans.iter().map(|(event, ..)| event["name"].as_str().unwrap()).collect();
    for name in ["write", "fill", "scale", "copy", "sequence of scale", "upload", "download", "read"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    assert_eq!(names.iter().filter(|name| **name == "scale").count(), 2);
    let launch = &spans.iter().find(|(event, ..)| event["name"] == "scale").unwrap().0;
    assert_eq!((launch["args"]["grid"][0].as_u64(), launch["args"]["block"][0].as_u64()), (Some(4), Some(256)));
    let write = &spans.iter().find(|(event, ..)| event["name"] == "write").unwrap().0;
    assert_eq!(write["args"]["bytes"], 4000);
    fake.assert_clean("after a trace");
}

#[test]
fn a_trace_shows_what_was_under_way_when_the_device_was_lost() {
    let _one = alone();
    let fake = Fake::new();
    fake.forget();
    let trace = Trace::start().unwrap();
    {
        let device = open().unwrap();
        let wild = device.load(&module(KERNELS)).unwrap().kernel("wild").unwrap();
        wild.launch(&Launch::linear(1, 1), &[Argument::Bytes(64u64.to_le_bytes().to_vec())]).unwrap();
        assert!(matches!(device.synchronise(), Err(Error::Fault(_))));
    }
    let spans = device_spans(trace);
    let (event, ..) = spans.iter().find(|(event, ..)| event["name"] == "wild").expect("the kernel at fault");
    assert!(event["args"]["outcome"].as_str().unwrap().contains("lost"), "{event}");
    fake.assert_clean("after a lost device");
}
