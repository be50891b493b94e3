//! Fetches of whole warps, compared with one lane at a time.

use broadloom_cpu::texels::fetch;
use broadloom_device::texture::{AddressMode, Channel, Filter, Image, Layers, TexelFormat, Texture};
use broadloom_device::texture::{Level, Sampler};
use broadloom_eval::texture::Fetch;
use broadloom_eval::texture::{SampledTexture, Texels};
use broadloom_random::Random;

const LANES: usize = 32;

/// Texels of images in the memory of this process.
struct InMemory;

impl Texels<Level> for InMemory {
    fn image<'l>(&self, level: &'l Level) -> &'l Image {
        &level.image
    }

    fn texel(&mut self, level: &Level, offset: u64, bytes: u32) -> u128 {
        let mut texel = [0; 16];
        // SAFETY: the texel is inside the image, whose memory is alive.
        unsafe { std::ptr::copy_nonoverlapping((level.address + offset) as *const u8, texel.as_mut_ptr(), bytes as usize) };
        u128::from_le_bytes(texel)
    }
}

/// Returns a random coordinate: a special value, or one inside or near a texture.
fn coordinate(random: &mut Random, by_index: bool, size: f32) -> u32 {
    let ends = [f32::NAN, f32::INFINITY, -1e30, 1e30, -0.0, -1e-30, 1.0, 0.999_999_94, -1.0, 2.0, 0.5];
    match (by_index, random.below(8)) {
        (true, 0) => [i32::MIN, i32::MAX, -1][random.below(3)] as u32,
        (true, _) => (random.below(40) - 8) as u32,
        (false, 0) => ends[random.below(ends.len())].to_bits(),
        (false, _) => ((random.below(1 << 20) as f32 / 1_048_576.0 - 0.25) * 2.0 * size).to_bits(),
    }
}

fn formats() -> Vec<TexelFormat> {
    let kinds = [(Channel::Float, 32), (Channel::Float, 16)].into_iter().chain([8, 16, 32].map(|bits| (Channel::Unsigned, bits)));
    let kinds = kinds.chain([8, 16, 32].map(|bits| (Channel::Signed, bits)));
    kinds.flat_map(|(channel, bits)| [1, 2, 4].map(|channels| TexelFormat { channel, bits, channels })).collect()
}

#[test]
fn a_warp_reads_what_its_lanes_read() {
    let mut numbers = Random::new(7);
    // Bytes that mostly do not form a NaN of `f32`.
    let memory: Vec<u64> =
        (0..4096).map(|_| numbers.bits() & 0xbfbf_bfbf_bfbf_bfbf | u64::from(numbers.below(16) == 0) << 30).collect();
    let mut done = 0;
    for format in formats() {
        for turn in 0..96 {
            let axes = turn % 3 + 1;
            let by_index = turn / 3 % 4 == 0;
            let size: [u32; 3] = std::array::from_fn(|axis| if axis < axes { 1 + numbers.below(11) as u32 } else { 1 });
            let image = Image::packed(format, size);
            let modes = [
                AddressMode::Clamp,
                AddressMode::Wrap,
                AddressMode::Clamp,
                AddressMode::Wrap,
                AddressMode::Mirror,
                AddressMode::Border,
            ];
            let sampler = Sampler {
                address: std::array::from_fn(|_| modes[numbers.below(modes.len())]),
                filter: [Filter::Point, Filter::Linear][numbers.below(2)],
                normalised_coordinates: numbers.below(2) == 0,
                normalised_values: numbers.below(2) == 0,
                srgb: numbers.below(8) == 0,
                ..Sampler::default()
            };
            let is_buffer = axes == 1 && by_index && numbers.below(2) == 0;
            let level = Level { address: memory.as_ptr() as u64, image };
            let texture = Texture { levels: vec![level], layers: Layers::None, is_buffer, sampler };
            let bits = [0, 0, 1, 2][axes] | u64::from(by_index) << 4 | (axes as u64) << 16;
            let wanted = Fetch::from_bits(bits).expect("a fetch");
            let mut inputs = vec![0u64; LANES * (1 + axes)];
            for axis in 0..axes {
                let extent = if sampler.normalised_coordinates { 1.0 } else { size[axis] as f32 };
                for lane in 0..LANES {
                    inputs[(axis + 1) * LANES + lane] = u64::from(coordinate(&mut numbers, by_index, extent));
                }
            }
            let mut outputs = vec![0u64; 4 * LANES];
            // SAFETY: rows and memory are alive.
            if !unsafe { fetch(&wanted, &texture, inputs.as_ptr(), outputs.as_mut_ptr()) } {
                continue;
            }
            done += 1;
            let sampled = SampledTexture { levels: &texture.levels, layers: texture.layers, is_buffer, sampler: &sampler };
            for lane in 0..LANES {
                let words: Vec<u64> = (0..axes).map(|axis| inputs[(axis + 1) * LANES + lane]).collect();
                let one = wanted.run(&sampled, &mut InMemory, &words).map(u64::from);
                let ours: [u64; 4] = std::array::from_fn(|row| outputs[row * LANES + lane]);
                assert_eq!(ours, one, "{texture:?} at {words:x?}");
            }
        }
    }
    #[cfg(target_arch = "x86_64")]
    let is_done = std::arch::is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    let is_done = true;
    assert!(!is_done || done > 500, "only {done} were read by whole warps");
}
