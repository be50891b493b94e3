//! The library of blocks: texts of StreamIt that a program can include.

/// The files of the library, by name.
pub const BLOCKS: &[(&str, &str)] = &[
    ("coding.str", include_str!("../../blocks/coding.str")),
    ("fft.str", include_str!("../../blocks/fft.str")),
    ("fir.str", include_str!("../../blocks/fir.str")),
    ("iir.str", include_str!("../../blocks/iir.str")),
    ("noise.str", include_str!("../../blocks/noise.str")),
    ("radio.str", include_str!("../../blocks/radio.str")),
    ("resample.str", include_str!("../../blocks/resample.str")),
    ("windows.str", include_str!("../../blocks/windows.str")),
];

/// Returns the text of a file of the library.
pub(super) fn find(name: &str) -> Option<&'static str> {
    BLOCKS.iter().find(|(own, _)| *own == name).map(|(_, text)| *text)
}
