//! Prefetch of inputs that blocks stage in shared memory.

use super::{compile_stream, devices};
use broadloom_device::Device;
use broadloom_interp::Interp;
use broadloom_stream::compiled::{Compiled, Options, Resident};

/// Streams whose kernel stages its input, and the steady states of a run. Some tiles are full, the last one
/// is not.
const STREAMS: [(&str, &str, u64); 4] = [
    (include_str!("../../../../../examples/stream/matrix_multiply.str"), "MatrixMultiply(16)", 61),
    (include_str!("../../../../../examples/stream/comparison_counting.str"), "ComparisonCounting(32)", 701),
    (include_str!("../../../../../examples/stream/fm_radio.str"), "Receiver(250000, 4, 32)", 9000),
    (include_str!("../../../../../examples/stream/filter_bank.str"), "FilterBank(4, 16)", 5000),
];

fn word(index: usize) -> u32 {
    ((index * index % 97) as f32 / 8.0 - 5.0).to_bits()
}

/// Runs a stream twice, from its first word and from its second.
fn outputs(compiled: &Compiled<'_>, device: &Device, states: u64) -> Vec<Vec<u32>> {
    let resident = Resident::new(compiled).unwrap();
    let words: Vec<u32> = (0..resident.input_bytes(states) as usize / 4 + 1).map(word).collect();
    let input = device.upload(&words).unwrap();
    let run = |first: usize| {
        let output = device.zeros::<u32>(resident.output_bytes(states) as usize / 4).unwrap();
        resident.run(&input.slice(first, words.len() - 1).unwrap(), &output, states).unwrap();
        resident.check().unwrap();
        output.read().unwrap()
    };
    vec![run(0), run(1)]
}

/// Blocks prefetch the items of their next units on request. Results do not depend on it. The checker finds
/// neither races nor words that are read before they are written.
#[test]
fn staged_items_of_the_next_units_are_prefetched() {
    let interp = Interp::new(broadloom_interp::Options { check: true, ..Default::default() });
    let (checked, [_, cpu]) = (Device::new(interp.clone()), devices());
    for (text, stream, states) in STREAMS {
        let program = compile_stream(text, stream).unwrap_or_else(|failure| panic!("{failure}"));
        let with =
            |device: &Device, prefetch| Compiled::with(&program, device, Options { prefetch, ..Options::default() }).unwrap();
        let [off, on] = [false, true].map(|prefetch| with(&checked, Some(prefetch)));
        let (told, yes) = (on.explain(), "prefetch: yes, a block loads staged items of its next units");
        assert!(told.contains(yes), "{stream}: {told}");
        assert!(off.explain().contains("prefetch: no, other blocks compute while one loads what it stages"), "{stream}");
        assert!(!with(&checked, None).explain().contains(yes), "{stream}: several blocks are resident");
        assert!(!with(&cpu, Some(true)).explain().contains(yes), "{stream}: a core stages nothing");
        // Loads before the loop and in it.
        let loads = |compiled: &Compiled<'_>| compiled.ptx().unwrap().matches("ld.global.v4").count();
        assert!(loads(&on) > loads(&off), "{stream}: {} and {}", loads(&on), loads(&off));
        let expected = outputs(&off, &checked, states);
        assert!(outputs(&on, &checked, states) == expected, "{stream}");
        assert!(interp.findings().is_empty(), "{stream}: {:?}", interp.findings());
    }
}
