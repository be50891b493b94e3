//! Texture and surface references of modules: variables that a program binds to memory with driver functions.

use crate::objects::image::Image;
use crate::objects::textures::{ResourceWords, TextureDesc};
use crate::status::{Outcome, Status};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Flag: values are read as integers.
pub(crate) const READ_AS_INTEGER: u32 = 1;
/// Flag: coordinates range from 0 to 1.
pub(crate) const NORMALISED: u32 = 2;
/// Flag: values are sRGB.
pub(crate) const SRGB: u32 = 16;

/// Settings of a reference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Bound memory; unbound if the kind is [`UNBOUND`].
    pub(crate) resource: ResourceWords,
    /// Sampling parameters.
    pub(crate) desc: TextureDesc,
    /// `CUarray_format` and number of channels.
    pub(crate) format: (u32, u32),
    /// Flags given by the program.
    pub(crate) flags: u32,
}

/// Resource kind of a reference without bound memory.
pub(crate) const UNBOUND: u64 = 0xff;

impl Default for Settings {
    fn default() -> Settings {
        let resource = [UNBOUND, 0, 0, 0, 0, 0, 0, 0];
        // Address mode 1 is clamp.
        let desc = TextureDesc { address: [1; 3], anisotropy: 1, ..TextureDesc::default() };
        Settings { resource, desc, format: (0x20, 1), flags: 0 }
    }
}

/// Texture or surface reference.
#[derive(Debug)]
pub(crate) struct Reference {
    /// Module and name; `None` for a reference created by the program itself.
    pub(crate) variable: Option<(Arc<Image>, String)>,
    pub(crate) is_surface: bool,
    pub(crate) settings: Mutex<Settings>,
}

impl Reference {
    /// Creates a reference to a variable of a module, or a standalone one.
    pub(crate) fn new(variable: Option<(Arc<Image>, String)>, is_surface: bool) -> Reference {
        Reference { variable, is_surface, settings: Mutex::default() }
    }

    /// Locks and returns the settings.
    pub(crate) fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns bits and kind of the channels of a `CUarray_format`.
pub(crate) fn channels(format: u32, count: u32) -> Outcome<[i32; 5]> {
    let (bits, kind, count) = match format {
        1..=3 => (4 << format, 1, count),
        8..=10 => (8 << (format - 8), 0, count),
        0x10 => (16, 2, count),
        0x20 => (32, 2, count),
        // Normalised formats include their number of channels: 1, 2 and 4 of 8 bits, then of 16 bits,
        // unsigned and then signed.
        0xc0..=0xcb => {
            let place = (format - 0xc0) as i32;
            (if place % 6 < 3 { 8 } else { 16 }, 5 + place, [1, 2, 4][place as usize % 3])
        }
        _ => return Err(Status::INVALID_VALUE),
    };
    if !matches!(count, 1 | 2 | 4) {
        return Err(Status::INVALID_VALUE);
    }
    let bits_of = |channel: u32| if channel < count { bits } else { 0 };
    Ok([bits_of(0), bits_of(1), bits_of(2), bits_of(3), kind])
}

/// Returns the `CUarray_format` and the number of channels.
pub(crate) fn format_of(channels: &[i32; 5]) -> (u32, u32) {
    let count = channels[..4].iter().filter(|bits| **bits > 0).count() as u32;
    let format = match (channels[4], channels[0]) {
        (1, 8) => 1,
        (1, 16) => 2,
        (1, _) => 3,
        (0, 8) => 8,
        (0, 16) => 9,
        (0, _) => 10,
        (2, 16) => 0x10,
        (kind @ 5..=16, _) => 0xc0 + kind as u32 - 5,
        (_, _) => 0x20,
    };
    (format, count)
}

/// Builds a runtime resource description, with the channels from the third word on.
pub(crate) fn with_channels(kind: u64, address: u64, channels: [i32; 5], rest: [u64; 3]) -> ResourceWords {
    let [x, y, z, w, k] = channels.map(|number| u64::from(number as u32));
    [kind, address, x | y << 32, z | w << 32, k, rest[0], rest[1], rest[2]]
}

/// Returns the read mode for flags and a format. Small integers become fractions unless the flags keep them
/// as integers.
pub(crate) fn read_mode(flags: u32, format: u32) -> u32 {
    u32::from(flags & READ_AS_INTEGER == 0 && matches!(format, 1 | 2 | 8 | 9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_and_channels_are_the_same_thing() {
        for format in [1, 2, 3, 8, 9, 10, 0x10, 0x20] {
            for count in [1, 2, 4] {
                assert_eq!(format_of(&channels(format, count).unwrap()), (format, count));
            }
        }
        for format in 0xc0..=0xcb {
            assert_eq!(format_of(&channels(format, 9).unwrap()).0, format);
        }
        assert_eq!(channels(3, 2), Ok([32, 32, 0, 0, 1]));
        assert!(channels(0x99, 1).is_err() && channels(1, 3).is_err());
    }
}
