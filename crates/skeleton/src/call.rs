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
    /// The values of the program's scalar parameters, in order.
    pub scalars: &'a [Literal],
    /// The sizes of this call, in the order of [`Count::Size`](crate::Count::Size).
    pub sizes: &'a [u64],
    /// The stream that runs the launches.
    pub stream: Stream,
}
