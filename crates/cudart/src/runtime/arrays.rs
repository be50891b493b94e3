//! Arrays for textures and surfaces.

use crate::boundary::exported;
use crate::pointer::{In, Out};
use crate::types::Extent;

/// `cudaChannelFormatDesc`: bits of four channels and their kind.
pub(crate) type Channels = [i32; 5];

/// Returns a channel format.
pub(crate) extern "C" fn cudaCreateChannelDesc(x: i32, y: i32, z: i32, w: i32, kind: i32) -> ChannelFormat {
    ChannelFormat([x, y, z, w, kind])
}

/// `cudaChannelFormatDesc` as a return value.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelFormat(Channels);

exported! { runtime
    /// Creates an array of one or two dimensions.
    fn cudaMallocArray(call, array: Out<usize>, format: In<Channels>, width: usize, height: usize, flags: u32)
        => array.wanted()?, array.set(call.runtime.create_array(format.get()?, [width, height, 0], flags)?);
    /// Creates an array of up to three dimensions, or a layered array.
    fn cudaMalloc3DArray(call, array: Out<usize>, format: In<Channels>, extent: Extent, flags: u32)
        => array.wanted()?, array.set(call.runtime.create_array(format.get()?, [extent.width, extent.height, extent.depth], flags)?);

    /// Destroys an array.
    fn cudaFreeArray(call, array: usize) {
        call.runtime.destroy_array(array)
    }

    /// Returns format, extent and flags of an array.
    fn cudaArrayGetInfo(call, format: Out<Channels>, extent: Out<Extent>, flags: Out<u32>, array: usize) {
        let array = call.runtime.arrays.get(array)?;
        format.set_if_wanted(array.channels);
        extent.set_if_wanted(Extent { width: array.extent[0], height: array.extent[1], depth: array.extent[2] });
        flags.set_if_wanted(array.flags);
        Ok(())
    }

    /// Returns the format of an array.
    fn cudaGetChannelDesc(call, format: Out<Channels>, array: usize) {
        format.set(call.runtime.arrays.get(array)?.channels)
    }
}
