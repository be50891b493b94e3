//! A StreamIt program inside of another program's loop, fed in pieces as an audio callback or a radio would.
//!
//! ```text
//! cargo run --release --package broadloom --example realtime -- wav IN.wav OUT.wav
//! cargo run --release --package broadloom --example realtime -- iq-f32 IN.iq OUT.wav
//! cargo run --release --package broadloom --example realtime -- iq-i16 IN.iq OUT.wav
//! ```
//!
//! `wav` takes 16-bit samples of one channel through a low-pass filter, 256 at a time. `iq-f32` and `iq-i16` take pairs
//! of real and imaginary parts at 240,000 pairs a second through a radio receiver, 1024 pairs at a time; sound of
//! 12,000 samples a second comes out.

use broadloom::device::{Device, Element};
use broadloom::stream::compiled::{Compiled, Ports, Session};
use broadloom::stream::eval::{Limits, Memory};
use broadloom::stream::{Failure, Program};
use std::time::{Duration, Instant};

/// Samples of a callback.
pub(crate) const SOUND_PIECE: usize = 256;
/// Pairs that a radio hands over at a time.
pub(crate) const RADIO_PIECE: usize = 1024;
/// Samples a second that the receiver gives.
pub(crate) const RADIO_SOUND: u32 = 12_000;

/// Output of a stream with figures of the loop that ran it.
pub(crate) struct StreamOutput {
    pub(crate) samples: Vec<f32>,
    /// Items that went in before the first came out.
    pub(crate) first: u64,
    /// The most items that the session held between two pieces.
    pub(crate) held: u64,
    /// The longest time of a piece, the first one apart: it may compile kernels.
    pub(crate) slowest: Duration,
}

/// Runs a stream of a program in a loop of pieces. `values` of the input are one item: 2 for `complex`.
pub(crate) fn in_pieces<I: Element>(
    device: &Device,
    text: &str,
    stream: &str,
    input: &[I],
    piece: usize,
    values: usize,
) -> Result<StreamOutput, Failure> {
    let program = Program::compile_stream(&[("stream.str", text)], stream, &mut Memory::default(), &Limits::default())?;
    let compiled = Compiled::new(&program, device)?;
    let mut ports = Ports::default();
    let mut session = Session::new(&compiled, &mut ports)?;
    let first = session.latency().start;
    let mut outcome = StreamOutput { samples: vec![], first, held: 0, slowest: Duration::ZERO };
    for (number, piece) in input.chunks(piece * values).enumerate() {
        let start = Instant::now();
        outcome.samples.extend(session.feed::<I, f32>(piece)?);
        outcome.held = outcome.held.max(session.held_items());
        if number > 0 {
            outcome.slowest = outcome.slowest.max(start.elapsed());
        }
    }
    Ok(outcome)
}

/// Takes sound through a low-pass filter of 65 taps.
pub(crate) fn low_pass(device: &Device, rate: u32, cutoff: u32, samples: &[f32]) -> Result<StreamOutput, Failure> {
    let text = include_str!("../../../examples/stream/low_pass.str");
    in_pieces(device, text, &format!("Fir({rate}, {cutoff}, 65)"), samples, SOUND_PIECE, 1)
}

/// Makes sound of samples of a radio, pairs one after the other.
pub(crate) fn receive(device: &Device, pairs: &[f32]) -> Result<StreamOutput, Failure> {
    let text = include_str!("../../../examples/stream/iq_radio.str");
    in_pieces(device, text, "IqRadio(240000, 5, 4, 48)", pairs, RADIO_PIECE, 2)
}

/// Reads a WAV file of 16-bit samples of one channel. Returns samples a second, and the samples from -1 to 1.
pub(crate) fn read_wav(bytes: &[u8]) -> Option<(u32, Vec<f32>)> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    if bytes.get(..4)? != b"RIFF" || bytes.get(8..12)? != b"WAVE" {
        return None;
    }
    let (mut at, mut rate) = (12, None);
    loop {
        let (name, length) = (bytes.get(at..at + 4)?, word(at + 4)? as usize);
        let chunk = &bytes[at + 8..bytes.len().min(at + 8 + length)];
        match name {
            // Whole numbers, one channel, 16 bits.
            b"fmt " if chunk.get(..4)? == [1, 0, 1, 0] && chunk.get(14..16)? == [16, 0] => rate = Some(word(at + 12)?),
            b"data" => return Some((rate?, from_i16(chunk))),
            _ => {}
        }
        at = at.checked_add(8 + length.next_multiple_of(2))?;
    }
}

/// Writes a WAV file of 16-bit samples of one channel.
pub(crate) fn write_wav(rate: u32, samples: &[f32]) -> Vec<u8> {
    let length = 2 * samples.len() as u32;
    let mut bytes = b"RIFF".to_vec();
    bytes.extend((36 + length).to_le_bytes());
    bytes.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    bytes.extend(rate.to_le_bytes());
    bytes.extend((2 * rate).to_le_bytes());
    bytes.extend(b"\x02\0\x10\0data");
    bytes.extend(length.to_le_bytes());
    bytes.extend(samples.iter().flat_map(|sample| ((sample.clamp(-1.0, 1.0) * 32767.0).round() as i16).to_le_bytes()));
    bytes
}

/// Returns 16-bit samples as numbers from -1 to 1.
pub(crate) fn from_i16(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(2).map(|pair| f32::from(i16::from_le_bytes([pair[0], pair[1]])) / 32768.0).collect()
}

/// Returns samples of 32-bit floats.
pub(crate) fn from_f32(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]])).collect()
}

#[allow(clippy::print_stdout, dead_code, reason = "an example shows what it does; a test takes the rest of it")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [form, input, output] = &arguments[..] else {
        return Err("usage: realtime (wav | iq-f32 | iq-i16) INPUT OUTPUT".into());
    };
    let bytes = std::fs::read(input)?;
    let device = broadloom::open("auto")?;
    let (rate, piece, outcome) = match &**form {
        "wav" => {
            let (rate, samples) = read_wav(&bytes).ok_or("the file is no WAV file of 16-bit samples of one channel")?;
            (rate, SOUND_PIECE, low_pass(&device, rate, rate / 8, &samples)?)
        }
        "iq-f32" => (RADIO_SOUND, RADIO_PIECE, receive(&device, &from_f32(&bytes))?),
        "iq-i16" => (RADIO_SOUND, RADIO_PIECE, receive(&device, &from_i16(&bytes))?),
        other => return Err(format!("the form is wav, iq-f32 or iq-i16, not {other}").into()),
    };
    std::fs::write(output, write_wav(rate, &outcome.samples))?;
    println!("{} samples in pieces of {piece}; the slowest piece took {:?}", outcome.samples.len(), outcome.slowest);
    println!("the first sample came after {} items; at most {} items were held", outcome.first, outcome.held);
    Ok(())
}
