//! Examples: documents show what `life` prints; sound and radio pass through a stream program in pieces.

#[path = "../../examples/life.rs"]
mod life;
#[path = "../../examples/realtime.rs"]
mod realtime;

mod guides;

use broadloom_tidy::Repository;
use broadloom_tidy::document::{ConsoleCommand, blocks, output, rewritten};
use std::path::Path;

/// Returns what an example prints.
fn printed(call: &ConsoleCommand) -> String {
    let name = call.command.split_whitespace().last().unwrap();
    match name {
        "life" => life::life(&broadloom::context("cpu").unwrap(), 200).unwrap(),
        _ => panic!("no test runs the example `{name}`"),
    }
}

/// `BLESS=1` rewrites the documents.
#[test]
fn documents_show_what_examples_print() {
    let mut shown = 0;
    let bless = std::env::var_os("BLESS").is_some_and(|value| value != "0");
    for document in Repository::open().documents() {
        let mut changes = vec![];
        for block in
            blocks(&document.text).into_iter().filter(|block| block.lines.iter().any(|line| line.starts_with("$ cargo ")))
        {
            let mut calls = block.commands().unwrap();
            for call in &mut calls {
                let text = printed(call);
                let printed: Vec<&str> = text.lines().collect();
                let lines = &mut call.steps[0].shown;
                if !output::agrees(lines, &printed) {
                    assert!(bless, "{}:{} does not show\n{text}\nBLESS=1 rewrites it.", document.path, block.start);
                    *lines = output::blessed(lines, &printed);
                }
                shown += 1;
            }
            changes.push((block, calls.iter().flat_map(ConsoleCommand::lines).collect()));
        }
        if bless && !changes.is_empty() {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(&document.path);
            std::fs::write(path, rewritten(&document.text, &changes)).unwrap();
        }
    }
    assert!(shown > 0);
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
