//! NumPy's `.npy` files, versions 1 to 3: one little-endian array of numbers. Arrays in Fortran order, as
//! NumPy saves a transposed array, are converted to C order.
//!
//! Format: magic number, two bytes of version, the length of the header in two (version 1) or four bytes, the
//! header as a Python dictionary, the values. Everything is checked, because a file may come from anywhere.

use crate::{Element, HostArray, MAX_BYTES};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Maximum size of a header; real ones have 118 bytes.
const MAX_HEADER: usize = 1 << 16;
const MAX_DIMENSIONS: usize = 32;

/// Error of reading or writing a file.
#[derive(Debug, thiserror::Error)]
pub enum NpyError {
    /// Error of the system.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Not a `.npy` file, or a damaged one.
    #[error("{0}")]
    Broken(String),
    /// Unsupported kind of `.npy` file.
    #[error("{what}; {advice}")]
    Unsupported {
        /// Description of the contents.
        what: String,
        /// Advice on how to save it differently.
        advice: &'static str,
    },
}

fn broken(what: impl Into<String>) -> NpyError {
    NpyError::Broken(what.into())
}

/// Reads a file.
pub fn read_npy(path: &Path) -> Result<HostArray, NpyError> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    if length > MAX_BYTES + MAX_HEADER as u64 {
        return Err(broken(format!("it has {length} bytes, more than the {MAX_BYTES} that are read")));
    }
    read_from(file)
}

fn read_exactly(input: &mut impl Read, count: usize) -> Result<Vec<u8>, NpyError> {
    let mut bytes = vec![];
    input.take(count as u64).read_to_end(&mut bytes)?;
    if bytes.len() < count { Err(broken("it ends too early")) } else { Ok(bytes) }
}

fn read_from(mut input: impl Read) -> Result<HostArray, NpyError> {
    let start = read_exactly(&mut input, 8).map_err(|error| match error {
        NpyError::Broken(_) => broken("it is not a `.npy` file"),
        other => other,
    })?;
    if &start[..6] != MAGIC {
        return Err(broken("it is not a `.npy` file"));
    }
    let length = match start[6] {
        1 => read_exactly(&mut input, 2)?.iter().rev().fold(0, |value, byte| value << 8 | usize::from(*byte)),
        2 | 3 => read_exactly(&mut input, 4)?.iter().rev().fold(0, |value, byte| value << 8 | usize::from(*byte)),
        version => return Err(broken(format!("it has version {version} of the format; 1 to 3 are read"))),
    };
    if length > MAX_HEADER {
        return Err(broken(format!("its header has {length} bytes")));
    }
    let header = read_exactly(&mut input, length)?;
    let header = Header::parse(&String::from_utf8_lossy(&header))?;
    let element = header.element()?;
    let too_large = || broken(format!("its array has more than {MAX_BYTES} bytes"));
    let bytes =
        header.shape.iter().try_fold(element.bytes() as u64, |bytes, &dim| bytes.checked_mul(dim)).ok_or_else(too_large)?;
    if bytes > MAX_BYTES {
        return Err(too_large());
    }
    // The file is read in growing pieces, so that a header with a large size costs nothing.
    let mut values = vec![];
    input.take(bytes + 1).read_to_end(&mut values)?;
    if values.len() as u64 != bytes {
        let more = if values.len() as u64 > bytes { "more" } else { "fewer" };
        return Err(broken(format!("it holds {more} values than its header says")));
    }
    if header.fortran {
        values = in_c_order(&values, &header.shape, element.bytes());
    }
    Ok(HostArray { element, shape: header.shape, bytes: values })
}

/// Converts values from Fortran order to C order.
fn in_c_order(values: &[u8], shape: &[u64], size: usize) -> Vec<u8> {
    let mut turned = Vec::with_capacity(values.len());
    let mut position = vec![0; shape.len()];
    for _ in 0..values.len() / size {
        let number = position.iter().zip(shape).rev().fold(0, |number, (index, dim)| number * dim + index) as usize;
        turned.extend_from_slice(&values[number * size..][..size]);
        for (index, dim) in position.iter_mut().zip(shape).rev() {
            *index += 1;
            if *index < *dim {
                break;
            }
            *index = 0;
        }
    }
    turned
}

struct Header {
    descr: String,
    fortran: bool,
    shape: Vec<u64>,
}

impl Header {
    fn parse(text: &str) -> Result<Header, NpyError> {
        let wrong = || broken("its header is not understood");
        let mut rest = text.trim().strip_prefix('{').and_then(|text| text.strip_suffix('}')).ok_or_else(wrong)?.trim();
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        while !rest.is_empty() {
            let (key, after) = string(rest).ok_or_else(wrong)?;
            rest = after.trim_start().strip_prefix(':').ok_or_else(wrong)?.trim_start();
            match key {
                "descr" => {
                    let (text, after) = string(rest).ok_or_else(|| NpyError::Unsupported {
                        what: "it holds records of several fields".to_owned(),
                        advice: "save one field at a time",
                    })?;
                    descr = Some(text.to_owned());
                    rest = after;
                }
                "fortran_order" => {
                    let (value, after) = match rest.strip_prefix("True") {
                        Some(after) => (true, after),
                        None => (false, rest.strip_prefix("False").ok_or_else(wrong)?),
                    };
                    fortran = Some(value);
                    rest = after;
                }
                "shape" => {
                    let (inside, after) = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).ok_or_else(wrong)?;
                    let dims = inside.split(',').map(str::trim).filter(|dim| !dim.is_empty());
                    shape = Some(dims.map(|dim| dim.parse().map_err(|_| wrong())).collect::<Result<Vec<u64>, _>>()?);
                    rest = after;
                }
                _ => return Err(wrong()),
            }
            rest = rest.trim_start();
            rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        }
        let shape = shape.ok_or_else(wrong)?;
        if shape.len() > MAX_DIMENSIONS {
            return Err(broken(format!("its array has {} dimensions", shape.len())));
        }
        Ok(Header { descr: descr.ok_or_else(wrong)?, fortran: fortran.ok_or_else(wrong)?, shape })
    }

    fn element(&self) -> Result<Element, NpyError> {
        let (order, kind) = match self.descr.as_bytes() {
            [order @ (b'<' | b'|' | b'=' | b'>'), ..] => (*order, &self.descr[1..]),
            _ => (b'|', self.descr.as_str()),
        };
        let element = match kind {
            "b1" | "u1" => Element::U8,
            "i1" => Element::I8,
            "u2" => Element::U16,
            "i2" => Element::I16,
            "f2" => Element::F16,
            "u4" => Element::U32,
            "i4" => Element::I32,
            "f4" => Element::F32,
            "u8" => Element::U64,
            "i8" => Element::I64,
            "f8" => Element::F64,
            _ => {
                return Err(NpyError::Unsupported {
                    what: format!("its values are of the type `{}`", self.descr.escape_default()),
                    advice: "save integers of 8 to 64 bits or floats of 16 to 64 bits",
                });
            }
        };
        if order == b'>' && element.bytes() > 1 {
            return Err(NpyError::Unsupported {
                what: "its values are big-endian".to_owned(),
                advice: "save `a.astype('<' + …)`",
            });
        }
        Ok(element)
    }
}

/// Parses a Python string at the start of a text. Returns it with the rest.
fn string(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    text[1..].split_once(quote)
}

/// Writes a file. `bf16`, which NumPy does not have, and bits are written as unsigned integers.
pub fn write_npy(path: &Path, array: &HostArray) -> Result<(), NpyError> {
    write_file(path, array, descr(array.element))
}

/// Writes a file of truth values, NumPy's `bool`, from bytes that are 0 or 1.
pub fn write_npy_bool(path: &Path, array: &HostArray) -> Result<(), NpyError> {
    if array.element.bytes() != 1 || array.bytes.iter().any(|byte| *byte > 1) {
        return Err(broken("truth values are bytes, 0 or 1"));
    }
    write_file(path, array, "|b1")
}

fn write_file(path: &Path, array: &HostArray, descr: &str) -> Result<(), NpyError> {
    let mut file = File::create(path)?;
    write_to(&mut file, array, descr)?;
    file.flush()?;
    Ok(())
}

/// Returns the type descriptor of a file's values.
fn descr(element: Element) -> &'static str {
    match element {
        Element::B8 | Element::U8 => "|u1",
        Element::I8 => "|i1",
        Element::B16 | Element::U16 | Element::Bf16 => "<u2",
        Element::I16 => "<i2",
        Element::F16 => "<f2",
        Element::B32 | Element::U32 => "<u4",
        Element::I32 => "<i4",
        Element::F32 => "<f4",
        Element::B64 | Element::U64 => "<u8",
        Element::I64 => "<i8",
        Element::F64 => "<f8",
    }
}

fn write_to(output: &mut impl Write, array: &HostArray, descr: &str) -> io::Result<()> {
    let shape: Vec<String> = array.shape.iter().map(|dim| format!("{dim},")).collect();
    let shape = match &shape[..] {
        [one] => one.clone(),
        many => many.join(" ").trim_end_matches(',').to_owned(),
    };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    // The values start at a multiple of 64 bytes.
    let padding = (64 - (MAGIC.len() + 4 + header.len() + 1) % 64) % 64;
    header.extend(std::iter::repeat_n(' ', padding));
    header.push('\n');
    output.write_all(MAGIC)?;
    output.write_all(&[1, 0])?;
    output.write_all(&(header.len() as u16).to_le_bytes())?;
    output.write_all(header.as_bytes())?;
    output.write_all(&array.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(array: &HostArray) -> Vec<u8> {
        let mut bytes = vec![];
        write_to(&mut bytes, array, descr(array.element)).unwrap();
        bytes
    }

    /// Builds a file of version 1 with this header.
    fn with_header(header: &str, values: &[u8]) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        file.extend([1, 0]);
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.as_bytes());
        file.extend(values);
        file
    }

    #[test]
    fn what_is_written_reads_back() {
        for &element in Element::ALL {
            for shape in [vec![], vec![0], vec![3], vec![2, 3], vec![1, 2, 3]] {
                let count: u64 = shape.iter().product();
                let array = HostArray { element, shape, bytes: (0..count as usize * element.bytes()).map(|i| i as u8).collect() };
                let bytes = written(&array);
                assert_eq!((bytes.len() - array.bytes.len()) % 64, 0);
                let again = read_from(&bytes[..]).unwrap();
                assert_eq!((&again.shape, &again.bytes), (&array.shape, &array.bytes));
                assert_eq!(again.element.bytes(), element.bytes());
            }
        }
    }

    #[test]
    fn reads_what_numpy_writes() {
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }      \n";
        let array = read_from(&with_header(header, &[0, 0, 128, 63, 0, 0, 0, 64])[..]).unwrap();
        assert_eq!(array.to_string(), "f32[2]\n  0: 1.0 2.0");
        let mut long = MAGIC.to_vec();
        long.extend([2, 0]);
        long.extend((header.len() as u32).to_le_bytes());
        long.extend(header.as_bytes());
        long.extend([0; 8]);
        assert_eq!(read_from(&long[..]).unwrap().shape, [2]);
        assert_eq!(
            read_from(&with_header("{'descr':'|b1','fortran_order':True,'shape':(1,)}", &[1])[..]).unwrap().element,
            Element::U8
        );
    }

    #[test]
    fn fortran_order_is_turned() {
        let header = "{'descr': '<u2', 'fortran_order': True, 'shape': (2, 3, 2), }";
        // `numpy.arange(12).reshape(2, 3, 2)` saved in Fortran order.
        let values: Vec<u8> = [0u16, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11].iter().flat_map(|value| value.to_le_bytes()).collect();
        let array = read_from(&with_header(header, &values)[..]).unwrap();
        assert_eq!(array.shape, [2, 3, 2]);
        assert_eq!(array.bytes, (0..12u16).flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>());
        let empty = read_from(&with_header(&header.replace("3", "0"), &[])[..]).unwrap();
        assert_eq!((empty.shape, empty.bytes.len()), (vec![2, 0, 2], 0));
    }

    #[test]
    fn broken_files_are_refused() {
        let good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
        for (file, part) in [
            (vec![], "not a `.npy`"),
            (b"PK\x03\x04aaaaaaaa".to_vec(), "not a `.npy`"),
            (MAGIC.to_vec(), "not a `.npy`"),
            ([&MAGIC[..], &[9, 0, 0, 0]].concat(), "version 9"),
            ([&MAGIC[..], &[1, 0, 10, 0]].concat(), "ends too early"),
            ([&MAGIC[..], &[2, 0, 255, 255, 255, 255]].concat(), "its header has"),
            (with_header("", &[]), "not understood"),
            (with_header("{}", &[]), "not understood"),
            (with_header("{'descr': '<f4'", &[]), "not understood"),
            (with_header("{'what': '<f4'}", &[]), "not understood"),
            (with_header(good, &[0; 7]), "fewer values"),
            (with_header(good, &[0; 9]), "more values"),
            (with_header(&good.replace("(2,)", "(-2,)"), &[]), "not understood"),
            (with_header(&good.replace("(2,)", "(99999999999,)"), &[]), "more than"),
            (with_header(&good.replace("(2,)", "(4294967296,4294967296,4294967296)"), &[]), "more than"),
            (with_header(&good.replace("<f4", ">f4"), &[0; 8]), "big-endian"),
            (with_header(&good.replace("<f4", "<c8"), &[0; 16]), "`<c8`"),
            (with_header(&good.replace("<f4", "|O"), &[0; 16]), "`|O`"),
            (with_header(&good.replace("'<f4'", "[('a','<f4')]"), &[0; 8]), "several fields"),
            (with_header(&good.replace("(2,)", &format!("({})", "1,".repeat(99))), &[0; 4]), "99 dimensions"),
        ] {
            let error = read_from(&file[..]).unwrap_err().to_string();
            assert!(error.contains(part), "{part:?} missing in {error:?}");
        }
    }
}
