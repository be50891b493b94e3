//! Sampling, tested against plain formulas, and the edges of surfaces.

use broadloom_eval::texture::{
    AddressMode, Channel, Fetch, Filter, Image, Layers, SampledTexture, Sampler, SurfaceAccess, TexelFormat, Texels,
};
use broadloom_ptx::{Address, Base, InstData, Operand, Reg, TextureOperand};

const FLOAT: TexelFormat = TexelFormat { channel: Channel::Float, bits: 32, channels: 1 };

/// Texels in a slice.
struct Memory(Vec<u8>);

impl Texels<(usize, Image)> for Memory {
    fn image<'l>(&self, level: &'l (usize, Image)) -> &'l Image {
        &level.1
    }

    fn texel(&mut self, level: &(usize, Image), offset: u64, bytes: u32) -> u128 {
        let start = level.0 + offset as usize;
        let mut bits = [0; 16];
        bits[..bytes as usize].copy_from_slice(&self.0[start..start + bytes as usize]);
        u128::from_le_bytes(bits)
    }
}

fn reg() -> Operand {
    Operand::Reg(Reg::from_u32(0))
}

fn vector(count: usize) -> Operand {
    if count == 1 { reg() } else { Operand::Vector((0..count).map(|_| reg()).collect()) }
}

fn fetch(mnemonic: &str, coordinates: usize, more: &[usize]) -> Fetch {
    let base = Address { base: Base::Reg(Reg::from_u32(0)), offset: 0 };
    let texture = Operand::Texture(Box::new(TextureOperand { base, rest: vec![vector(coordinates)] }));
    let operands = [vector(4), texture].into_iter().chain(more.iter().map(|count| vector(*count)));
    let inst = InstData::of(mnemonic, operands).unwrap_or_else(|| panic!("{mnemonic}"));
    let fetch = Fetch::of(&inst).unwrap_or_else(|| panic!("{mnemonic}"));
    assert_eq!(Fetch::from_bits(fetch.bits()), Some(fetch));
    fetch
}

fn floats(values: &[f32]) -> Memory {
    Memory(values.iter().flat_map(|value| value.to_le_bytes()).collect())
}

fn bits(values: &[f32]) -> Vec<u64> {
    values.iter().map(|value| u64::from(value.to_bits())).collect()
}

struct Setup {
    memory: Memory,
    levels: Vec<(usize, Image)>,
    layers: Layers,
    is_buffer: bool,
    sampler: Sampler,
}

impl Setup {
    fn new(memory: Memory, image: Image, sampler: Sampler) -> Setup {
        Setup { memory, levels: vec![(0, image)], layers: Layers::None, is_buffer: false, sampler }
    }

    fn words(&mut self, fetch: &Fetch, inputs: &[u64]) -> [u32; 4] {
        let Setup { memory, levels, layers, is_buffer, sampler } = self;
        fetch.run(&SampledTexture { levels, layers: *layers, is_buffer: *is_buffer, sampler }, memory, inputs)
    }

    fn first(&mut self, fetch: &Fetch, inputs: &[f32]) -> f32 {
        f32::from_bits(self.words(fetch, &bits(inputs))[0])
    }
}

fn line(values: &[f32], sampler: Sampler) -> Setup {
    Setup::new(floats(values), Image::packed(FLOAT, [values.len() as u32, 1, 1]), sampler)
}

#[test]
fn the_nearest_texel_is_where_the_coordinate_lies() {
    let tex = fetch("tex.1d.v4.f32.f32", 1, &[]);
    let mut plain = line(&[10.0, 11.0, 12.0, 13.0], Sampler::default());
    for (x, expected) in
        [(0.0, 10.0), (0.99, 10.0), (1.0, 11.0), (3.5, 13.0), (4.0, 13.0), (-5.0, 10.0), (1e30, 13.0), (f32::NAN, 10.0)]
    {
        assert_eq!(plain.first(&tex, &[x]), expected, "{x}");
    }
    let beyond = |address: AddressMode, x: f32| {
        let sampler = Sampler { address: [address; 3], normalised_coordinates: true, border: [-1.0; 4], ..Sampler::default() };
        line(&[10.0, 11.0, 12.0, 13.0], sampler).first(&tex, &[x])
    };
    for (x, wrap, mirror, border) in [
        (0.1, 10.0, 10.0, 10.0),
        (1.1, 10.0, 13.0, -1.0),
        (1.3, 11.0, 12.0, -1.0),
        (2.3, 11.0, 11.0, -1.0),
        (-0.1, 13.0, 10.0, -1.0),
        (-0.3, 12.0, 11.0, -1.0),
        (-1.1, 13.0, 13.0, -1.0),
    ] {
        assert_eq!(beyond(AddressMode::Wrap, x), wrap, "wrap {x}");
        assert_eq!(beyond(AddressMode::Mirror, x), mirror, "mirror {x}");
        assert_eq!(beyond(AddressMode::Border, x), border, "border {x}");
    }
}

#[test]
fn mixing_has_256_steps() {
    let tex = fetch("tex.1d.v4.f32.f32", 1, &[]);
    let sampler = Sampler { filter: Filter::Linear, ..Sampler::default() };
    let mut texture = line(&[0.0, 256.0, 512.0], sampler);
    assert_eq!(texture.first(&tex, &[0.5]), 0.0);
    assert_eq!(texture.first(&tex, &[1.0]), 128.0);
    assert_eq!(texture.first(&tex, &[1.5]), 256.0);
    assert_eq!(texture.first(&tex, &[0.2]), 0.0);
    assert_eq!(texture.first(&tex, &[9.0]), 512.0);
    // 1/600 is nearer to zero than to the first step; 3/600 is nearer to the first.
    assert_eq!(texture.first(&tex, &[0.5 + 1.0 / 600.0]), 0.0);
    assert_eq!(texture.first(&tex, &[0.5 + 3.0 / 600.0]), 1.0);
    assert_eq!(texture.first(&tex, &[1.4999]), 256.0);
    // Compared with the plain formula for many coordinates.
    for step in 0..400 {
        let x = 0.37f32 + step as f32 * 0.011;
        let position = f64::from(x) - 0.5;
        let (left, fraction) = (position.floor(), position - position.floor());
        let a = ((fraction * 256.0 + 0.5).floor() / 256.0) as f32;
        let at = |i: f64| [0.0f32, 256.0, 512.0][(i.clamp(0.0, 2.0)) as usize];
        assert_eq!(texture.first(&tex, &[x]), (1.0 - a) * at(left) + a * at(left + 1.0), "{x}");
    }
}

#[test]
fn axes_are_mixed_together() {
    let sampler = Sampler { filter: Filter::Linear, ..Sampler::default() };
    let values: Vec<f32> = (0..60).map(|i| ((i * 37) % 64) as f32).collect();
    let mut plane = Setup::new(floats(&values), Image::packed(FLOAT, [5, 4, 3]), sampler);
    let at = |x: usize, y: usize, z: usize| values[(z * 4 + y) * 5 + x];
    let tex = fetch("tex.2d.v4.f32.f32", 2, &[]);
    // Weights of 1/4 and 1/2 are exact.
    let expected = 0.75 * 0.5 * at(1, 2, 0) + 0.25 * 0.5 * at(2, 2, 0) + 0.75 * 0.5 * at(1, 3, 0) + 0.25 * 0.5 * at(2, 3, 0);
    assert_eq!(plane.first(&tex, &[1.75, 3.0]), expected);
    let tex = fetch("tex.3d.v4.f32.f32", 4, &[]);
    let mean: f32 = [(1, 1, 1), (2, 1, 1), (1, 2, 1), (2, 2, 1), (1, 1, 2), (2, 1, 2), (1, 2, 2), (2, 2, 2)]
        .iter()
        .map(|&(x, y, z)| 0.125 * at(x, y, z))
        .sum();
    assert_eq!(plane.first(&tex, &[2.0, 2.0, 2.0, 0.0]), mean);
    let tex = fetch("tex.a2d.v4.f32.f32", 4, &[]);
    plane.layers = Layers::Array;
    let inputs = |layer: u64| [layer, bits(&[1.5])[0], bits(&[0.5])[0], 0];
    assert_eq!(f32::from_bits(plane.words(&tex, &inputs(2))[0]), at(1, 0, 2));
    assert_eq!(f32::from_bits(plane.words(&tex, &inputs(9))[0]), at(1, 0, 2), "layers end at the last");
    let gather = fetch("tld4.r.2d.v4.f32.f32", 2, &[]);
    let four = plane.words(&gather, &bits(&[2.0, 2.0])).map(f32::from_bits);
    assert_eq!(four, [at(1, 2, 0), at(2, 2, 0), at(2, 1, 0), at(1, 1, 0)]);
    let moved = fetch("tex.2d.v4.f32.f32", 2, &[2]);
    let inputs: Vec<u64> = bits(&[1.5, 1.5]).into_iter().chain([1, 0xffff_ffff]).collect();
    assert_eq!(f32::from_bits(plane.words(&moved, &inputs)[0]), at(2, 0, 0));
}

#[test]
fn texels_are_read_by_number() {
    let tex = fetch("tex.1d.v4.u32.s32", 1, &[]);
    let bytes = TexelFormat { channel: Channel::Signed, bits: 16, channels: 2 };
    let memory = Memory(vec![1, 0, 0xff, 0xff, 2, 0, 0xfe, 0xff]);
    let mut texture = Setup::new(memory, Image::packed(bytes, [2, 1, 1]), Sampler::default());
    assert_eq!(texture.words(&tex, &[0]), [1, 0xffff_ffff, 0, 1]);
    assert_eq!(texture.words(&tex, &[7]), [2, 0xffff_fffe, 0, 1]);
    texture.is_buffer = true;
    assert_eq!(texture.words(&tex, &[2]), [0; 4]);
    assert_eq!(texture.words(&tex, &[0xffff_ffff]), [0; 4]);
}

#[test]
fn integers_become_floats_where_that_is_asked_for() {
    let tex = fetch("tex.1d.v4.f32.f32", 1, &[]);
    let value = |format: TexelFormat, bytes: &[u8], srgb: bool| {
        let sampler = Sampler { normalised_values: true, srgb, ..Sampler::default() };
        let mut texture = Setup::new(Memory(bytes.to_vec()), Image::packed(format, [1, 1, 1]), sampler);
        texture.words(&tex, &bits(&[0.5])).map(f32::from_bits)
    };
    let format = |channel, bits, channels| TexelFormat { channel, bits, channels };
    assert_eq!(value(format(Channel::Unsigned, 8, 4), &[0, 255, 51, 128], false), [0.0, 1.0, 0.2, 128.0 / 255.0]);
    assert_eq!(value(format(Channel::Signed, 8, 4), &[0x80, 0x81, 127, 0], false), [-1.0, -1.0, 1.0, 0.0]);
    assert_eq!(value(format(Channel::Unsigned, 16, 1), &[0xff, 0xff], false), [1.0, 0.0, 0.0, 1.0]);
    assert_eq!(value(format(Channel::Float, 16, 2), &[0x00, 0x3c, 0x00, 0xc0], false), [1.0, -2.0, 0.0, 1.0]);
    let colour = value(format(Channel::Unsigned, 8, 4), &[255, 0, 188, 128], true);
    assert_eq!((colour[0], colour[1], colour[3]), (1.0, 0.0, 128.0 / 255.0));
    assert!((colour[2] - 0.5).abs() < 0.01);
}

#[test]
fn levels_are_chosen_and_mixed() {
    let image = |width| Image::packed(FLOAT, [width, 1, 1]);
    let texture = |level_filter| Setup {
        memory: floats(&[1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 3.0]),
        levels: vec![(0, image(4)), (16, image(2)), (24, image(1))],
        layers: Layers::None,
        is_buffer: false,
        sampler: Sampler { level_filter, normalised_coordinates: true, ..Sampler::default() },
    };
    let tex = fetch("tex.level.1d.v4.f32.f32", 1, &[1]);
    let (mut point, mut linear) = (texture(Filter::Point), texture(Filter::Linear));
    for (level, near, mixed) in [(-1.0, 1.0, 1.0), (0.25, 1.0, 1.25), (0.5, 2.0, 1.5), (1.75, 3.0, 2.75), (9.0, 3.0, 3.0)] {
        assert_eq!(point.first(&tex, &[0.5, level]), near);
        assert_eq!(linear.first(&tex, &[0.5, level]), mixed);
    }
    linear.sampler.level_bias = 1.0;
    linear.sampler.most_level = 1.5;
    assert_eq!(linear.first(&tex, &[0.5, 0.0]), 2.0);
    assert_eq!(linear.first(&tex, &[0.5, 5.0]), 2.5);
    let grad = fetch("tex.grad.1d.v4.f32.f32", 1, &[1, 1]);
    // Two texels apart is level one.
    assert_eq!(point.first(&grad, &[0.5, 0.5, 0.1]), 2.0);
    let base = fetch("tex.1d.v4.f32.f32", 1, &[]);
    assert_eq!(point.first(&base, &[0.5]), 1.0);
}

#[test]
fn directions_meet_faces() {
    let tex = fetch("tex.cube.v4.f32.f32", 4, &[]);
    let values: Vec<f32> = (0..24).map(|i| i as f32).collect();
    let mut cube = Setup::new(floats(&values), Image::packed(FLOAT, [2, 2, 6]), Sampler::default());
    cube.layers = Layers::Cube;
    // The texel of face f at (s, t) is 4f + 2t + s.
    for (direction, expected) in [
        ([1.0, 0.5, 0.5], 0.0),
        ([1.0, -0.5, -0.5], 3.0),
        ([-1.0, 0.5, 0.5], 5.0),
        ([0.5, 1.0, -0.5], 9.0),
        ([0.5, -1.0, -0.5], 15.0),
        ([-0.5, 0.5, 1.0], 16.0),
        ([-0.5, -0.5, -1.0], 23.0),
    ] {
        let [x, y, z] = direction;
        assert_eq!(cube.first(&tex, &[x, y, z, 0.0]), expected, "{direction:?}");
    }
}

fn access(mnemonic: &str, operands: impl IntoIterator<Item = Operand>) -> SurfaceAccess {
    let inst = InstData::of(mnemonic, operands).unwrap_or_else(|| panic!("{mnemonic}"));
    let access = SurfaceAccess::of(&inst).unwrap_or_else(|| panic!("{mnemonic}"));
    assert_eq!(SurfaceAccess::from_bits(access.bits()), Some(access));
    access
}

fn surface(coordinates: usize) -> Operand {
    let base = Address { base: Base::Reg(Reg::from_u32(0)), offset: 0 };
    Operand::Texture(Box::new(TextureOperand { base, rest: vec![vector(coordinates)] }))
}

#[test]
fn surfaces_end_where_they_say() {
    let image =
        Image { row_pitch: 64, ..Image::packed(TexelFormat { channel: Channel::Unsigned, bits: 8, channels: 4 }, [5, 3, 1]) };
    let place = |access: &SurfaceAccess, x: i32, y: i32| access.place(&image, &[x as u32 as u64, y as u32 as u64]);
    let trap = access("suld.b.2d.b32.trap", [reg(), surface(2)]);
    assert_eq!(place(&trap, 16, 2), Ok(Some(2 * 64 + 16)));
    assert!(place(&trap, 20, 0).is_err() && place(&trap, 0, 3).is_err() && place(&trap, -4, 0).is_err());
    let zero = access("suld.b.2d.v2.b16.zero", [vector(2), surface(2)]);
    assert_eq!((place(&zero, 16, 1), place(&zero, 20, 0)), (Ok(Some(80)), Ok(None)));
    let clamp = access("sust.b.2d.b32.clamp", [surface(2), reg()]);
    assert_eq!((place(&clamp, 99, 99), place(&clamp, -1, -1)), (Ok(Some(2 * 64 + 16)), Ok(Some(0))));
    let wide = access("suld.b.2d.v4.b32.clamp", [vector(4), surface(2)]);
    let narrow = Image::packed(image.format, [3, 3, 1]);
    assert_eq!(wide.place(&narrow, &[0, 0]), Ok(None), "wider than a row");
    let texel = access("sust.p.2d.v4.b32.trap", [surface(2), vector(4)]);
    assert_eq!(place(&texel, 4, 1), Ok(Some(64 + 16)));
    assert_eq!(texel.stored(&image, &[1, 300, 0, 255]), 0xff00_ff01);
    let min = access("sured.b.min.2d.s32.trap", [surface(2), reg()]);
    assert_eq!(min.reduced(&image, 3, 0xffff_ffff), 0xffff_ffff);
    let max = access("sured.b.max.2d.u32.trap", [surface(2), reg()]);
    assert_eq!(max.reduced(&image, 3, 0xffff_fff0), 0xffff_fff0);
}
