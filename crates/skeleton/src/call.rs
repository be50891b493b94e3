//! Arguments of a run of a program.

use broadloom_device::{Buffer, Stream};
use broadloom_scalar::Literal;

/// The arguments of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Call<'a> {
    /// The inputs, as bytes.
    pub inputs: &'a [Buffer<u8>],
    /// The outputs, as bytes. An output may also be an input if the program reads each element in the same
    /// place before it writes it.
    pub outputs: &'a [Buffer<u8>],
    /// The scalars.
    pub scalars: &'a [Literal],
    /// The sizes.
    pub sizes: &'a [u64],
    /// The stream.
    pub stream: Stream,
}
