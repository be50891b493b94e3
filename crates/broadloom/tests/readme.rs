//! Examples: the README shows that of arrays as it is, and what it prints; sound and radio pass through a stream
//! program in pieces.

#[path = "../examples/life.rs"]
mod life;
#[path = "../examples/realtime.rs"]
mod realtime;

use std::path::Path;

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap()
}

/// The blocks of the README with a word behind their backticks.
fn blocks<'a>(readme: &'a str, word: &str) -> Vec<&'a str> {
    let starts = readme.split("\n```").skip(1).step_by(2);
    starts.filter_map(|block| block.strip_prefix(word)?.strip_prefix('\n')).collect()
}

#[test]
fn the_readme_shows_the_example() {
    let (readme, example) = (read("README.md"), read("crates/broadloom/examples/life.rs"));
    let shown = blocks(&readme, "rust");
    assert!(!shown.is_empty());
    for block in shown {
        assert!(example.contains(block), "not in life.rs:\n{block}");
    }
}

/// The picture and how many kernels a generation takes; the rest of a plan may depend on the machine.
#[test]
fn the_readme_shows_what_the_example_prints() {
    let readme = read("README.md");
    let printed = life::life(&broadloom::context("cpu").unwrap(), 200).unwrap();
    let (picture, _) = printed.split_once(" kernel, ").unwrap();
    assert!(picture.ends_with("\n\n1"), "{printed}");
    assert!(blocks(&readme, "text").iter().any(|block| block.starts_with(picture)), "README.md does not show\n{printed}");
}

/// The strength of a frequency in samples, as the amplitude of a tone.
fn strength(samples: &[f32], rate: u32, frequency: f32) -> f32 {
    let angle = |i: usize| 2.0 * std::f32::consts::PI * frequency * i as f32 / rate as f32;
    let part = |f: fn(f32) -> f32| samples.iter().enumerate().map(|(i, sample)| sample * f(angle(i))).sum::<f32>();
    2.0 * part(f32::cos).hypot(part(f32::sin)) / samples.len() as f32
}

fn tone(rate: u32, frequency: f32, i: usize) -> f32 {
    (2.0 * std::f32::consts::PI * frequency * i as f32 / rate as f32).sin()
}

/// A WAV file through a low pass: the low tone stays, the high one goes, and no sample is lost.
#[test]
fn sound_passes_in_pieces() {
    let rate = 16_000;
    let samples: Vec<f32> = (0..4000).map(|i| 0.4 * tone(rate, 400.0, i) + 0.4 * tone(rate, 6000.0, i)).collect();
    let wav = realtime::write_wav(rate, &samples);
    let (found, read) = realtime::read_wav(&wav).unwrap();
    assert!(found == rate && read.len() == samples.len() && realtime::read_wav(&wav[..30]).is_none());
    let outcome = realtime::low_pass(&broadloom::open("interp").unwrap(), rate, 2000, &read).unwrap();
    assert_eq!(outcome.samples.len(), samples.len() - 64);
    assert!(strength(&outcome.samples[..3920], rate, 400.0) > 0.38 && strength(&outcome.samples[..3920], rate, 6000.0) < 0.01);
    assert!(outcome.first <= 65 && outcome.held == 0, "{} {}", outcome.first, outcome.held);
}

/// Samples of a radio, as floats and as 16-bit numbers: the tone that the station sends comes out.
#[test]
fn a_radio_passes_in_pieces() {
    let station: Vec<f32> = (0..10_000)
        .flat_map(|i| {
            let phase = 5.0 * (1.0 - (2.0 * std::f32::consts::PI * 1000.0 * i as f32 / 240_000.0).cos());
            [0.9 * phase.cos(), 0.9 * phase.sin()]
        })
        .collect();
    let device = broadloom::open("interp").unwrap();
    let floats: Vec<u8> = station.iter().flat_map(|part| part.to_le_bytes()).collect();
    let shorts: Vec<u8> = station.iter().flat_map(|part| ((part * 32768.0) as i16).to_le_bytes()).collect();
    for pairs in [realtime::from_f32(&floats), realtime::from_i16(&shorts)] {
        let outcome = realtime::receive(&device, &pairs).unwrap();
        // 20 pairs for each sample; two filters of 48 taps look ahead.
        assert!(outcome.samples.len() >= 480, "{}", outcome.samples.len());
        let sound = &outcome.samples[..480];
        let (sent, other) = (strength(sound, realtime::RADIO_SOUND, 1000.0), strength(sound, realtime::RADIO_SOUND, 2500.0));
        assert!((0.9..1.1).contains(&sent) && other < 0.02, "{sent} {other}");
        assert!(outcome.held < 20 && outcome.first < 400, "{} {}", outcome.held, outcome.first);
    }
}
