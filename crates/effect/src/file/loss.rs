//! Properties of an image that a file format cannot store.
//!
//! Everything that a format cannot hold is named. Pixels that would be shown wrongly are converted where that is exact,
//! which is told, and refused elsewhere.

use super::{Format, Problem, chunks, exif, exr, fields, segments, tiff};
use crate::image::{Alpha, ColorSpace, Image, Length, Orientation, Plane, SampleType, is_srgb_gamma};

/// Returns what is lost or converted when an image is written in a format, each as a sentence without its end.
/// `samples` is the wanted sample type.
pub(super) fn losses(format: Format, image: &Image, samples: Option<SampleType>) -> Vec<String> {
    let mut sentences = vec![];
    let missing = missing(format, image);
    if !missing.is_empty() {
        sentences.push(format!("not written, because {} does not hold it: {}", format.name(), missing.join(", ")));
    }
    let metadata = image.metadata();
    if format == Format::Tiff && !metadata.pages.is_empty() {
        let count = metadata.pages.len() + 1;
        sentences.push(format!("only the first of {count} pages is changed; the others are copied as they are"));
    }
    let is_rgb = is_rgb(format, image);
    if format == Format::Hdr {
        sentences.push("samples are rounded to 8 bits with an exponent that the colours of a pixel share".to_owned());
    }
    if let Some(profile) = metadata.color.profile.as_ref().filter(|profile| !chunks::fits(profile, is_rgb))
        && holds_blocks(format)
    {
        let (of, is) = (if profile.components() == Some(1) { "grey" } else { "RGB" }, if is_rgb { "RGB" } else { "grey" });
        sentences.push(format!("the ICC profile is not written: it is for {of}, and the image is {is}"));
    }
    let untrue = fields::untrue(image);
    if format == Format::Tiff && !untrue.is_empty() {
        sentences.push(format!("fields that are false where pixels have moved are not written: {}", untrue.join(", ")));
    }
    if let Some((_, true)) = metadata.exif.as_ref().and_then(|block| exif::fields(block))
        && format == Format::Tiff
    {
        sentences.push("the thumbnail of EXIF is not written".to_owned());
    }
    if !holds_orientation(format) && image.orientation() != Orientation::Upright {
        sentences.push(format!("the pixels are turned upright: {} holds no orientation", format.name()));
    }
    sentences.extend(encoding(format, image, samples));
    sentences.extend(alpha(format, image));
    sentences
}

/// Returns a remark on samples whose encoding the format does not tell.
fn encoding(format: Format, image: &Image, samples: Option<SampleType>) -> Option<String> {
    let color = &image.metadata().color;
    let is_float = match format {
        Format::Exr | Format::Hdr | Format::Pfm => true,
        Format::Jpeg | Format::WebP => false,
        Format::Tiff => matches!(samples.unwrap_or(tiff::sample_type(image)), SampleType::F16 | SampleType::F32),
        Format::Png | Format::Dpx => return None,
    };
    if holds_blocks(format) && color.profile.is_some() {
        return None;
    }
    match (image.color(), is_float) {
        (ColorSpace::Srgb, true) if color.cicp.is_none() => {
            let what =
                if color.gamma.is_some_and(|gamma| color.srgb.is_none() && !is_srgb_gamma(gamma)) { "its gamma" } else { "sRGB" };
            Some(format!(
                "samples stay encoded by {what}, and floats of {} are taken for linear light; --linear converts them",
                format.name()
            ))
        }
        (ColorSpace::Linear, false) => {
            Some(format!("samples are linear light, and integers of {} are taken for sRGB", format.name()))
        }
        _ => None,
    }
}

/// Returns a remark on colours that are multiplied or divided by alpha.
fn alpha(format: Format, image: &Image) -> Option<String> {
    if !image.has_alpha() {
        return None;
    }
    match (format, image.alpha()) {
        (Format::Png | Format::WebP | Format::Dpx, Alpha::Associated) => {
            let lost = match image.colors_without_alpha() {
                0 => String::new(),
                count => format!("; colours of {count} pixels with an alpha of 0 are not shown"),
            };
            Some(format!("colours are divided by alpha: {} holds straight alpha{lost}", format.name()))
        }
        (Format::Exr, Alpha::Straight) => Some("colours are multiplied by alpha: EXR holds associated alpha".to_owned()),
        _ => None,
    }
}

/// Returns whether a format can say how an image is oriented.
pub(super) fn holds_orientation(format: Format) -> bool {
    holds_blocks(format) || format == Format::Dpx
}

/// Returns whether a format holds ICC profiles, EXIF and XMP.
fn holds_blocks(format: Format) -> bool {
    matches!(format, Format::Png | Format::Tiff | Format::Jpeg | Format::WebP)
}

/// Returns whether an image is written in colours.
fn is_rgb(format: Format, image: &Image) -> bool {
    match format {
        Format::Tiff => tiff::is_rgb(image),
        _ => super::png::is_rgb(image),
    }
}

/// Returns the names of what the format has no place for.
fn missing(format: Format, image: &Image) -> Vec<String> {
    let metadata = image.metadata();
    let (has_blocks, is_plain) = (holds_blocks(format), matches!(format, Format::Pfm | Format::Hdr | Format::Dpx));
    let is_small = matches!(format, Format::Jpeg | Format::WebP);
    let mut missing = vec![];
    let mut add = |is_missing: bool, name: &str| missing.extend(is_missing.then(|| name.to_owned()));
    let color = &metadata.color;
    if let Some(profile) = color.profile.as_ref().filter(|_| !has_blocks) {
        let name = profile.name().map_or(String::new(), |name| format!(" `{name}`"));
        add(true, &format!("the ICC profile{name}"));
    }
    add(color.cicp.is_some() && format != Format::Png, "the code points of the colours (cICP)");
    add(color.chromaticities.is_some() && (is_plain || is_small), "chromaticities");
    let is_odd = |gamma: u32| gamma != 100_000 && !is_srgb_gamma(gamma);
    add(color.gamma.is_some_and(is_odd) && color.srgb.is_none() && (is_small || format == Format::Tiff), "the gamma");
    if let Some(resolution) = metadata.resolution {
        let is_known = resolution.per(Length::Inch).is_some();
        // Equal numbers without a unit say nothing.
        let says = is_known || resolution.x != resolution.y;
        add(
            says && (is_plain
                || format == Format::WebP && metadata.exif.is_none()
                || !is_known && matches!(format, Format::Exr | Format::Jpeg)),
            "the resolution",
        );
    }
    add(metadata.exif.is_some() && !has_blocks, "EXIF");
    let is_broken = metadata.exif.as_ref().is_some_and(|block| exif::fields(block).is_none());
    add(is_broken && format == Format::Tiff, "EXIF (the block is broken)");
    add(metadata.xmp.is_some() && !has_blocks, "XMP");
    if format == Format::Jpeg {
        missing.extend(segments::too_long(image));
    }
    if format != Format::Png {
        missing.extend(chunks::names(&metadata.chunks));
    }
    if format != Format::Dpx && metadata.dpx.is_some() {
        missing.push("the header of the DPX".to_owned());
    }
    if format != Format::Jpeg {
        missing.extend(segments::names(image));
    }
    if format != Format::Tiff && !metadata.pages.is_empty() {
        missing.push(format!("the pages behind the first ({})", metadata.pages.len()));
    }
    if format != Format::Tiff {
        missing.extend(fields::unwritten(image, has_blocks, |field| format == Format::Jpeg && segments::holds(field)));
    }
    if format != Format::Exr {
        missing.extend(exr::names(image));
        if image.bounds() != image.display() || (image.bounds().x, image.bounds().y) != (0, 0) {
            missing.push("the data and the display window".to_owned());
        }
    }
    if format == Format::Tiff && !tiff::has_known_names(image) {
        missing.push("the names of the planes".to_owned());
    }
    missing.truncate(40);
    missing
}

/// Fails if the pixels would be shown wrongly in a format and cannot be converted.
pub(super) fn check(format: Format, image: &Image, samples: Option<SampleType>) -> Result<(), Problem> {
    if let Some(profile) = image.metadata().color.profile.as_ref().filter(|_| format == Format::Exr)
        && !profile.is_srgb()
    {
        let name = profile.name().map_or(String::new(), |name| format!(" `{name}`"));
        return Err(Problem::Unsupported(format!(
            "an EXR holds no ICC profile, and its colours would be taken for others than those of the profile{name}: write .png or \
             .tif, or convert the colours to sRGB before"
        )));
    }
    let wanted = match format {
        Format::Exr => return Ok(()),
        Format::Tiff => samples.unwrap_or(tiff::sample_type(image)),
        Format::Hdr | Format::Pfm => SampleType::F32,
        Format::Jpeg | Format::WebP => SampleType::U8,
        Format::Png | Format::Dpx => samples.unwrap_or(SampleType::U16),
    };
    match image.planes().iter().find(|plane| !is_exact(plane, wanted)) {
        None => Ok(()),
        Some(plane) => Err(Problem::Unsupported(format!(
            "the plane `{}` has 32-bit integers that {wanted} does not hold: write .exr",
            plane.name()
        ))),
    }
}

/// Returns whether integers of 32 bits keep their values as another type.
fn is_exact(plane: &Plane, wanted: SampleType) -> bool {
    if plane.sample_type() != SampleType::U32 {
        return true;
    }
    // All integers up to these are values of the type.
    let most = match wanted {
        SampleType::U8 | SampleType::U16 => return false,
        SampleType::F16 => 1 << 11,
        SampleType::F32 => 1 << 24,
        SampleType::U32 => u32::MAX,
    };
    (0..plane.height()).all(|y| plane.row::<u32>(y).is_some_and(|row| row.iter().all(|value| *value <= most)))
}
