//! Items in files: `int` and `float` as 4 bytes, `double` as 8, `complex` as two floats, all little-endian.
//! `bit` items are packed, the most significant bit of a byte first.

use crate::core::{Type, Value};
use std::io::{self, Read, Write};

/// A reader of items.
pub(super) struct Reader {
    file: Box<dyn Read + Send>,
    /// The unread bits of a byte, and their number.
    bits: (u8, u32),
}

impl Reader {
    pub(super) fn new(file: Box<dyn Read + Send>) -> Self {
        Reader { file, bits: (0, 0) }
    }

    /// Fills a buffer. Returns false at the end of the file. A partial item at the end is dropped.
    fn bytes(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        match self.file.read_exact(buffer) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) fn read(&mut self, ty: &Type) -> io::Result<Option<Value>> {
        let (mut four, mut eight) = ([0; 4], [0; 8]);
        Ok(match ty {
            Type::Bit => {
                if self.bits.1 == 0 {
                    let mut byte = [0];
                    if !self.bytes(&mut byte)? {
                        return Ok(None);
                    }
                    self.bits = (byte[0], 8);
                }
                self.bits.1 -= 1;
                Some(Value::Bit(self.bits.0 >> self.bits.1 & 1 != 0))
            }
            Type::Int => self.bytes(&mut four)?.then(|| Value::Int(i32::from_le_bytes(four))),
            Type::Float => self.bytes(&mut four)?.then(|| Value::Float(f32::from_le_bytes(four))),
            Type::Double => self.bytes(&mut eight)?.then(|| Value::Double(f64::from_le_bytes(eight))),
            Type::Complex => self.bytes(&mut eight)?.then(|| {
                let [a, b, c, d, e, f, g, h] = eight;
                Value::Complex(f32::from_le_bytes([a, b, c, d]), f32::from_le_bytes([e, f, g, h]))
            }),
            Type::Void | Type::Boolean | Type::Struct(_) | Type::Array(_) | Type::Portal(_) | Type::Text | Type::Unknown => {
                return Err(io::ErrorKind::Unsupported.into());
            }
        })
    }
}

/// A writer of items.
pub(super) struct Writer {
    file: Box<dyn Write + Send>,
    /// Bits that wait for a full byte, and their number.
    bits: (u8, u32),
}

impl Writer {
    pub(super) fn new(file: Box<dyn Write + Send>) -> Self {
        Writer { file, bits: (0, 0) }
    }

    pub(super) fn write(&mut self, value: &Value) -> io::Result<()> {
        match value {
            Value::Bit(bit) => {
                self.bits = (self.bits.0 << 1 | u8::from(*bit), self.bits.1 + 1);
                if self.bits.1 == 8 {
                    let byte = std::mem::take(&mut self.bits).0;
                    self.file.write_all(&[byte])?;
                }
                Ok(())
            }
            Value::Int(value) => self.file.write_all(&value.to_le_bytes()),
            Value::Float(value) => self.file.write_all(&value.to_le_bytes()),
            Value::Double(value) => self.file.write_all(&value.to_le_bytes()),
            Value::Complex(real, imaginary) => {
                self.file.write_all(&real.to_le_bytes())?;
                self.file.write_all(&imaginary.to_le_bytes())
            }
            Value::Unset | Value::Boolean(_) | Value::Array(_) | Value::Struct(_) | Value::Portal(_) | Value::Text(_) => {
                Err(io::ErrorKind::Unsupported.into())
            }
        }
    }

    /// Writes the last bits, padded with zeros.
    pub(super) fn close(&mut self) -> io::Result<()> {
        let (bits, count) = std::mem::take(&mut self.bits);
        if count > 0 {
            self.file.write_all(&[bits << (8 - count)])?;
        }
        self.file.flush()
    }
}
