//! Textures and surfaces (manual: "Texture Instructions", "Surface Instructions").

use super::access::Request;
use super::{Engine, NextAction, Stop};
use crate::cta::{CodeSite, Cta};
use crate::op::{Arg, Image};
use crate::watch::{Kind, Order, Watch};
use broadloom_device::FaultKind;
use broadloom_device::texture::{Level, Sampler};
use broadloom_eval::texture::{SampledTexture, SurfaceAccess, SurfaceOperation, Texels};
use broadloom_ptx::{Opcode, Space};

/// Texels in device memory, as an instruction of a thread reads them.
struct ThreadTexels<'t, 'e, W> {
    engine: &'t mut Engine<'e, W>,
    cta: &'t mut Cta,
    site: CodeSite<'t>,
    stop: Option<Stop>,
}

impl<W: Watch> Texels<Level> for ThreadTexels<'_, '_, W> {
    fn image<'l>(&self, level: &'l Level) -> &'l broadloom_eval::texture::Image {
        &level.image
    }

    fn texel(&mut self, level: &Level, offset: u64, bytes: u32) -> u128 {
        let mut bits = [0; 16];
        let outcome = self.engine.texel_bytes(self.cta, self.site, level.address + offset, &mut bits[..bytes as usize]);
        if let Err(stop) = outcome {
            self.stop.get_or_insert(stop);
        }
        u128::from_le_bytes(bits)
    }
}

impl<W: Watch> Engine<'_, W> {
    pub(super) fn image(&mut self, cta: &mut Cta, site: CodeSite<'_>, registers: usize) -> Result<NextAction, Stop> {
        let op = site.op;
        let Some(image) = op.image.as_deref() else { return Ok(NextAction::Step) };
        let handle = self.read(cta, site, registers, &image.handle);
        let words: Vec<u64> = image.words.iter().map(|arg| self.read(cta, site, registers, arg)).collect();
        let results = match image.what {
            Image::Fetch(fetch) => {
                let table = self.opaques.clone();
                let texture = match table.texture(handle) {
                    Ok(texture) => texture,
                    Err(why) => return self.no_image(cta, site, registers, handle, why.to_string()),
                };
                let sampled = SampledTexture {
                    levels: &texture.levels,
                    layers: texture.layers,
                    is_buffer: texture.is_buffer,
                    sampler: &texture.sampler,
                };
                let mut texels = ThreadTexels { engine: self, cta, site, stop: None };
                let values = fetch.run(&sampled, &mut texels, &words);
                if let Some(stop) = texels.stop {
                    return Err(stop);
                }
                values.map(u64::from)
            }
            Image::Query(query) => {
                let table = self.opaques.clone();
                let level = words.first().copied().unwrap_or(0) as usize;
                let answer = if op.opcode == Opcode::Txq {
                    table.texture(handle).ok().and_then(|texture| {
                        let image = &texture.levels.get(level)?.image;
                        Some(query.answer(image, texture.layers, texture.levels.len(), &texture.sampler))
                    })
                } else {
                    let surface = table.surface(handle).ok();
                    surface.map(|surface| query.answer(&surface.level.image, surface.layers, 1, &Sampler::default()))
                };
                // An invalid handle has no properties.
                [u64::from(answer.unwrap_or(0)), 0, 0, 0]
            }
            Image::Surface(access) => {
                let table = self.opaques.clone();
                let level = match table.surface(handle) {
                    Ok(surface) => surface.level,
                    Err(why) => return self.no_image(cta, site, registers, handle, why.to_string()),
                };
                self.surface(cta, site, &access, level, &words)?
            }
        };
        self.give_image(cta, site, registers, results);
        Ok(NextAction::Step)
    }

    fn give_image(&mut self, cta: &mut Cta, site: CodeSite<'_>, registers: usize, results: [u64; 4]) {
        let Some(first) = site.op.writes.first() else { return };
        let places: &[Arg] = match first {
            Arg::Vector(places) => places,
            place => std::slice::from_ref(place),
        };
        for (place, value) in places.iter().zip(results) {
            self.write(cta, site.thread, registers, place, value);
        }
        // Textures are always fully resident.
        if let Some(place) = site.op.writes.get(1) {
            self.write(cta, site.thread, registers, place, 1);
        }
    }

    fn no_image(
        &mut self,
        cta: &mut Cta,
        site: CodeSite<'_>,
        registers: usize,
        handle: u64,
        why: String,
    ) -> Result<NextAction, Stop> {
        self.complain(cta, site, FaultKind::OutOfBounds, Space::Tex, Some(handle), why)?;
        self.give_image(cta, site, registers, [0; 4]);
        Ok(NextAction::Step)
    }

    fn texel_bytes(&mut self, cta: &mut Cta, site: CodeSite<'_>, address: u64, bytes: &mut [u8]) -> Result<(), Stop> {
        let request = Request::weak(Space::Global, address, bytes.len() as u64, 1, Kind::Read);
        if let Some(place) = self.approach_with(cta, site, request)? {
            self.load_bytes(cta, site.thread, place, bytes);
        }
        Ok(())
    }

    fn surface(
        &mut self,
        cta: &mut Cta,
        site: CodeSite<'_>,
        access: &SurfaceAccess,
        level: Level,
        words: &[u64],
    ) -> Result<[u64; 4], Stop> {
        let coordinates = usize::from(access.coordinates);
        let offset = match access.place(&level.image, words) {
            Ok(Some(offset)) => offset,
            Ok(None) => return Ok([0; 4]),
            Err(why) => return Err(self.fault(cta, site, FaultKind::Trap, None, why.to_string())),
        };
        let address = level.address + offset;
        let total = u64::from(access.total(&level.image));
        let values = words.get(coordinates..).unwrap_or(&[]);
        let mut bytes = [0; 16];
        let bytes = &mut bytes[..total.min(16) as usize];
        let (kind, order) = match access.doing {
            SurfaceOperation::Load => (Kind::Read, Order::Weak),
            SurfaceOperation::Store | SurfaceOperation::StoreTexel => (Kind::Write, Order::Weak),
            SurfaceOperation::Add
            | SurfaceOperation::Min
            | SurfaceOperation::Max
            | SurfaceOperation::And
            | SurfaceOperation::Or => (Kind::Atomic, Order::Relaxed),
        };
        let request = Request { order, ..Request::weak(Space::Global, address, total, 1, kind) };
        let Some(place) = self.approach_with(cta, site, request)? else { return Ok([0; 4]) };
        self.load_bytes(cta, site.thread, place, bytes);
        let old = bytes.iter().rev().fold(0u128, |bits, byte| bits << 8 | u128::from(*byte));
        let width = 8 * u32::from(access.bytes);
        let put = match access.doing {
            SurfaceOperation::Load => {
                let element = |index: usize| broadloom_eval::truncate((old >> (width * index as u32).min(127)) as u64, width);
                return Ok(std::array::from_fn(element));
            }
            SurfaceOperation::Store | SurfaceOperation::StoreTexel => access.stored(&level.image, values),
            SurfaceOperation::Add
            | SurfaceOperation::Min
            | SurfaceOperation::Max
            | SurfaceOperation::And
            | SurfaceOperation::Or => u128::from(access.reduced(&level.image, old as u64, values.first().copied().unwrap_or(0))),
        };
        let count = bytes.len();
        self.store_bytes(cta, site.thread, place, &put.to_le_bytes()[..count]);
        Ok([0; 4])
    }
}
