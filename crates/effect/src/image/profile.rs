//! ICC profiles: what decides whether colours may be taken for sRGB.
//!
//! A profile is copied and never applied. Two questions are answered from its tags: whether its curves are that of sRGB,
//! and whether its primaries are. A profile that is not understood has neither.

use super::{ColorSpace, Image, Profile, srgb_to_linear};

/// White point D50 in XYZ.
pub(super) const D50: [f64; 3] = [0.9642, 1.0, 0.8249];
/// Largest difference of a curve to that of sRGB, in linear light.
const CURVE: f32 = 2e-3;
/// Largest difference of a primary to that of sRGB, in XYZ.
const PRIMARY: f64 = 4e-3;
/// Primaries of sRGB in XYZ of D50, as IEC 61966-2-1 adapts them.
const SRGB: [(&[u8; 4], [f64; 3]); 3] =
    [(b"rXYZ", [0.4361, 0.2225, 0.0139]), (b"gXYZ", [0.3851, 0.7169, 0.0971]), (b"bXYZ", [0.1431, 0.0606, 0.7141])];

/// XYZ of red, green and blue.
type Primaries = [[f64; 3]; 3];

impl Profile {
    /// Returns the data of a tag.
    fn tag(&self, name: &[u8; 4]) -> Option<&[u8]> {
        let word = |at: usize| Some(u32::from_be_bytes(self.bytes.get(at..at.checked_add(4)?)?.try_into().ok()?));
        let count = word(128)?.min(1024) as usize;
        let at = (0..count).map(|index| 132 + index * 12).find(|at| self.bytes.get(*at..*at + 4) == Some(name))?;
        let (start, len) = (word(at + 4)? as usize, word(at + 8)? as usize);
        self.bytes.get(start..start.checked_add(len)?)
    }

    /// Returns whether samples are encoded by the curve of sRGB.
    pub fn has_srgb_curve(&self) -> bool {
        let names: &[&[u8; 4]] = if self.components() == Some(1) { &[b"kTRC"] } else { &[b"rTRC", b"gTRC", b"bTRC"] };
        // A profile with tables for devices is not described by its curves alone.
        self.tag(b"A2B0").is_none() && names.iter().all(|name| self.tag(name).is_some_and(is_srgb_curve))
    }

    /// Returns whether colours are those of sRGB.
    pub fn is_srgb(&self) -> bool {
        let is_near = |(name, expected): &(&[u8; 4], [f64; 3])| {
            let Some(data) = self.tag(name).filter(|data| data.starts_with(b"XYZ ")) else { return false };
            (0..3)
                .zip(expected)
                .all(|(index, expected)| fixed(data, 8 + index * 4).is_some_and(|value| (value - expected).abs() <= PRIMARY))
        };
        self.has_srgb_curve() && (self.components() == Some(1) || SRGB.iter().all(is_near))
    }

    /// Returns the data of the curves of red, green and blue, or of grey, and of the primaries; `None` if tables describe
    /// the colours.
    pub(super) fn curves_and_primaries(&self) -> Option<(Vec<&[u8]>, Option<Primaries>)> {
        if self.tag(b"A2B0").is_some() || self.bytes.get(20..24) != Some(b"XYZ ") {
            return None;
        }
        let names: &[&[u8; 4]] = if self.components() == Some(1) { &[b"kTRC"] } else { &[b"rTRC", b"gTRC", b"bTRC"] };
        let curves = names.iter().map(|name| self.tag(name)).collect::<Option<Vec<&[u8]>>>()?;
        let primary = |name: &[u8; 4]| {
            let data = self.tag(name).filter(|data| data.starts_with(b"XYZ "))?;
            Some([fixed(data, 8)?, fixed(data, 12)?, fixed(data, 16)?])
        };
        match self.components() {
            Some(1) => Some((curves, None)),
            Some(3) => Some((curves, Some([primary(b"rXYZ")?, primary(b"gXYZ")?, primary(b"bXYZ")?]))),
            _ => None,
        }
    }

    /// Returns the name of the profile, for messages.
    pub(crate) fn name(&self) -> Option<String> {
        let data = self.tag(b"desc")?;
        let text = match data.get(..4)? {
            b"desc" => {
                let len = u32::from_be_bytes(data.get(8..12)?.try_into().ok()?) as usize;
                String::from_utf8_lossy(data.get(12..12usize.checked_add(len)?)?).into_owned()
            }
            b"mluc" => {
                let len = u32::from_be_bytes(data.get(20..24)?.try_into().ok()?) as usize;
                let start = u32::from_be_bytes(data.get(24..28)?.try_into().ok()?) as usize;
                let (words, _) = data.get(start..start.checked_add(len)?)?.as_chunks::<2>();
                String::from_utf16_lossy(&words.iter().map(|word| u16::from_be_bytes(*word)).collect::<Vec<u16>>())
            }
            _ => return None,
        };
        let text: String = text.chars().filter(|letter| !letter.is_control()).take(60).collect();
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }
}

/// Returns a profile of version 4 for RGB: a name, the matrix to XYZ of D50, the adaptation of the white point, and the
/// parameters of the curve: one exponent, or five numbers of the piecewise curve.
pub(super) fn written(name: &str, matrix: [[f64; 3]; 3], adaptation: [[f64; 3]; 3], curve: &[f64]) -> Vec<u8> {
    let fixed = |values: &[f64]| -> Vec<u8> {
        values.iter().flat_map(|value| ((value * 65536.0).round() as i32).to_be_bytes()).collect()
    };
    let text = |text: &str| {
        let words: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let head =
            [b"mluc\0\0\0\0\0\0\0\x01\0\0\0\x0cenUS".as_slice(), &(words.len() as u32).to_be_bytes(), &28u32.to_be_bytes()];
        [head.concat(), words].concat()
    };
    let point = |values: [f64; 3]| [b"XYZ \0\0\0\0".to_vec(), fixed(&values)].concat();
    let column = |index: usize| point([matrix[0][index], matrix[1][index], matrix[2][index]]);
    let kind = if curve.len() == 1 { 0u16 } else { 3 };
    let curve = [b"para\0\0\0\0".as_slice(), &kind.to_be_bytes(), &[0, 0], &fixed(curve)].concat();
    let tags: Vec<(&[u8; 4], Vec<u8>)> = vec![
        (b"desc", text(name)),
        (b"cprt", text("No copyright")),
        (b"wtpt", point(D50)),
        (b"chad", [b"sf32\0\0\0\0".to_vec(), fixed(adaptation.as_flattened())].concat()),
        (b"rXYZ", column(0)),
        (b"gXYZ", column(1)),
        (b"bXYZ", column(2)),
        (b"rTRC", curve.clone()),
        (b"gTRC", curve.clone()),
        (b"bTRC", curve),
    ];
    let (mut table, mut data) = ((tags.len() as u32).to_be_bytes().to_vec(), vec![]);
    let start = 128 + 4 + 12 * tags.len();
    for (name, content) in tags {
        table.extend(name);
        table.extend(((start + data.len()) as u32).to_be_bytes());
        table.extend((content.len() as u32).to_be_bytes());
        data.extend(content);
        data.resize(data.len().next_multiple_of(4), 0);
    }
    let mut header = vec![0; 128];
    header[..4].copy_from_slice(&((start + data.len()) as u32).to_be_bytes());
    header[8..12].copy_from_slice(&[4, 0x30, 0, 0]);
    header[12..24].copy_from_slice(b"mntrRGB XYZ ");
    // The year, month and day of the date.
    header[24..30].copy_from_slice(&[0x07, 0xe8, 0, 1, 0, 1]);
    header[36..40].copy_from_slice(b"acsp");
    header[68..80].copy_from_slice(&fixed(&D50));
    [header, table, data].concat()
}

/// Returns a number with 16 bits behind the point.
pub(super) fn fixed(data: &[u8], at: usize) -> Option<f64> {
    let bytes = data.get(at..at + 4)?.try_into().ok()?;
    Some(f64::from(i32::from_be_bytes(bytes)) / 65536.0)
}

/// Returns whether the data of a curve is the curve of sRGB.
fn is_srgb_curve(data: &[u8]) -> bool {
    let is_near = |curve: &dyn Fn(f32) -> Option<f32>| {
        (0..=64).map(|step| step as f32 / 64.0).all(|x| curve(x).is_some_and(|y| (y - srgb_to_linear(x)).abs() <= CURVE))
    };
    match data.get(..4) {
        Some(b"curv") => {
            let Some(count) = data.get(8..12).map(|bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])) else {
                return false;
            };
            let Some(entries) = (count as usize).checked_mul(2).and_then(|len| data.get(12..12usize.checked_add(len)?)) else {
                return false;
            };
            let entries = entries.as_chunks::<2>().0;
            // One entry is an exponent, none is the identity.
            entries.len() >= 16
                && is_near(&|x| {
                    let place = x * (entries.len() - 1) as f32;
                    let lower = (place as usize).min(entries.len() - 2);
                    let value = |index: usize| f32::from(u16::from_be_bytes(entries[index])) / 65535.0;
                    Some(value(lower) + (place - lower as f32) * (value(lower + 1) - value(lower)))
                })
        }
        Some(b"para") if data.get(8..10) == Some(&[0, 3]) => {
            let numbers: Option<Vec<f64>> = (0..5).map(|index| fixed(data, 12 + index * 4)).collect();
            let Some(&[g, a, b, c, d]) = numbers.as_deref() else { return false };
            is_near(&|x: f32| {
                let x = f64::from(x);
                Some(if x >= d { (a * x + b).powf(g) as f32 } else { (c * x) as f32 })
            })
        }
        _ => false,
    }
}

/// Returns whether light encoded with an exponent is near to that of sRGB. `gamma` is the exponent of encoding times
/// 100,000.
pub(crate) fn is_srgb_gamma(gamma: u32) -> bool {
    // The value that PNG has for sRGB is 45455. The curves differ by less than a hundredth.
    (45_000..=46_000).contains(&gamma)
}

impl Image {
    /// Returns why samples that are taken for sRGB may be encoded by another curve; `None` if the file says nothing of the
    /// kind.
    pub fn encoding_doubt(&self) -> Option<String> {
        let color = &self.metadata().color;
        if self.color() == ColorSpace::Linear {
            return None;
        }
        if let Some(cicp) = color.cicp {
            // 13 is sRGB.
            return (cicp[1] != 13).then(|| format!("its code points name the transfer function {}", cicp[1]));
        }
        if let Some(profile) = &color.profile {
            let name = profile.name().map_or(String::new(), |name| format!(" `{name}`"));
            return (!profile.has_srgb_curve()).then(|| format!("its ICC profile{name} has other curves"));
        }
        if let Some(transfer) = color.transfer {
            return Some(format!("its DPX has the transfer characteristic {transfer}"));
        }
        let gamma = color.gamma.filter(|gamma| color.srgb.is_none() && !is_srgb_gamma(*gamma))?;
        Some(format!("its gamma is {}", f64::from(gamma) / 1e5))
    }
}
