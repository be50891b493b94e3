//! Arrays, texture and surface objects and references of the driver.

use crate::boundary::{Call, exported};
use crate::device::check_device;
use crate::memory::Array;
use crate::pointer::{In, Out, Text};
use crate::references::{NORMALISED, READ_AS_INTEGER, Reference, SRGB, Settings, channels, format_of, read_mode, with_channels};
pub(crate) use crate::runtime::textures::{
    cuMipmappedArrayGetLevel, cuSurfObjectDestroy, cuTexObjectDestroy, cuTexObjectGetResourceViewDesc,
};
use crate::status::{Outcome, Status};
use crate::textures::{ResourceWords, TextureDesc};
use crate::work::{CopyBox, Direction};
use std::sync::Arc;

/// `CUDA_ARRAY_DESCRIPTOR`: width, height, format and channels.
type Descriptor = [u64; 3];
/// `CUDA_ARRAY3D_DESCRIPTOR`: width, height, depth, format and channels, flags.
type Descriptor3D = [u64; 5];
/// `CUDA_RESOURCE_DESC`: a kind, what is there, flags.
type Resource = [u64; 18];

/// `CUDA_TEXTURE_DESC`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DriverTextureDesc {
    pub(crate) address: [u32; 3],
    pub(crate) filter: u32,
    pub(crate) flags: u32,
    pub(crate) anisotropy: u32,
    pub(crate) level_filter: u32,
    pub(crate) level_bias: f32,
    pub(crate) least_level: f32,
    pub(crate) most_level: f32,
    pub(crate) border: [f32; 4],
    pub(crate) reserved: [i32; 12],
}

/// A format and the number of channels in one word.
fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

fn word(format: u32, count: u32) -> u64 {
    u64::from(format) | u64::from(count) << 32
}

fn create(call: &Call, array: Out<usize>, extent: [u64; 3], format: u64, flags: u32) -> Outcome {
    array.wanted()?;
    let (format, count) = halves(format);
    array.set(call.runtime.create_array(channels(format, count)?, extent.map(|size| size as usize), flags)?)
}

fn array_of(call: &Call, array: usize) -> Outcome<Arc<Array>> {
    call.runtime.device()?;
    call.runtime.arrays.get(array)
}

/// What an object looks at, in the words of the runtime.
fn resource_of(given: &Resource) -> Outcome<ResourceWords> {
    let (format, count) = halves(given[2]);
    Ok(match given[0] as u32 {
        kind @ (0 | 1) => [u64::from(kind), given[1], 0, 0, 0, 0, 0, 0],
        2 => with_channels(2, given[1], channels(format, count)?, [given[3], 0, 0]),
        3 => with_channels(3, given[1], channels(format, count)?, [given[3], given[4], given[5]]),
        _ => return Err(Status::INVALID_VALUE),
    })
}

/// The same in the words of the driver.
fn driver_resource(words: &ResourceWords) -> Resource {
    let mut resource = [0; 18];
    (resource[0], resource[1]) = (words[0], words[1]);
    if words[0] >= 2 {
        let channels = [words[2] as i32, (words[2] >> 32) as i32, words[3] as i32, (words[3] >> 32) as i32, words[4] as i32];
        let (format, count) = format_of(&channels);
        resource[2] = word(format, count);
        resource[3..6].copy_from_slice(&words[5..8]);
    }
    resource
}

/// The format that an object's memory has.
fn format_in(call: &Call, words: &ResourceWords) -> Outcome<u32> {
    let array = |handle: usize| {
        call.runtime.arrays.get(handle).map(|array| format_of(&array.channels).0).map_err(|_| Status::INVALID_VALUE)
    };
    match words[0] {
        0 => array(words[1] as usize),
        1 => {
            let mipmap = call.runtime.mipmaps.get(words[1] as usize).map_err(|_| Status::INVALID_VALUE)?;
            array(*mipmap.levels.first().ok_or(Status::INVALID_VALUE)?)
        }
        _ => Ok(halves(driver_resource(words)[2]).0),
    }
}

fn texture_desc(given: &DriverTextureDesc, format: u32) -> TextureDesc {
    TextureDesc {
        address: given.address,
        filter: given.filter,
        read: read_mode(given.flags, format),
        srgb: i32::from(given.flags & SRGB != 0),
        border: given.border,
        normalised: i32::from(given.flags & NORMALISED != 0),
        anisotropy: given.anisotropy,
        level_filter: given.level_filter,
        level_bias: given.level_bias,
        least_level: given.least_level,
        most_level: given.most_level,
        ..TextureDesc::default()
    }
}

fn driver_texture_desc(desc: &TextureDesc, format: u32) -> DriverTextureDesc {
    let integers = desc.read == 0 && matches!(format, 1 | 2 | 8 | 9);
    let flag = |wanted: bool, flag: u32| if wanted { flag } else { 0 };
    DriverTextureDesc {
        address: desc.address,
        filter: desc.filter,
        flags: flag(integers, READ_AS_INTEGER) | flag(desc.normalised != 0, NORMALISED) | flag(desc.srgb != 0, SRGB),
        anisotropy: desc.anisotropy,
        level_filter: desc.level_filter,
        level_bias: desc.level_bias,
        least_level: desc.least_level,
        most_level: desc.most_level,
        border: desc.border,
        ..DriverTextureDesc::default()
    }
}

/// A place in an array of one dimension.
fn in_array(call: &Call, array: usize, offset: usize, bytes: usize) -> Outcome<u64> {
    let array = array_of(call, array)?;
    let row = array.extent[0] * array.element_bytes();
    let fits = array.extent[1] <= 1 && array.extent[2] <= 1 && offset.checked_add(bytes).is_some_and(|end| end <= row);
    if fits { Ok(array.address + offset as u64) } else { Err(Status::INVALID_VALUE) }
}

fn copy(call: &Call, to: u64, from: u64, bytes: usize, direction: Direction) -> Outcome {
    call.runtime.copy(&*call.stream(0)?, CopyBox::linear(to, from, bytes), direction)
}

fn copy_async(call: &Call, to: u64, from: u64, bytes: usize, direction: Direction, stream: usize) -> Outcome {
    call.runtime.copy_async(&*call.stream(stream)?, CopyBox::linear(to, from, bytes), direction)
}

fn set(call: &Call, reference: usize, change: impl FnOnce(&mut Settings) -> Outcome) -> Outcome {
    call.runtime.set_reference(reference, change)
}

fn settings(call: &Call, reference: usize) -> Outcome<Settings> {
    Ok(*call.runtime.references.get(reference)?.settings())
}

/// Binds rows of memory.
fn set_rows(call: &Call, reference: usize, given: In<Descriptor>, address: u64, pitch: usize) -> Outcome {
    let [width, height, format] = given.get()?;
    let (format, count) = halves(format);
    let channels = channels(format, count)?;
    set(call, reference, |settings| {
        settings.format = (format, count);
        settings.resource = with_channels(3, address, channels, [width, height, pitch as u64]);
        Ok(())
    })
}

exported! { driver
    /// An array of one or two dimensions.
    fn cuArrayCreate_v2(call, array: Out<usize>, given: In<Descriptor>) {
        let [width, height, format] = given.get()?;
        create(call, array, [width, height, 0], format, 0)
    }

    /// An array of up to three dimensions, or of layers.
    fn cuArray3DCreate_v2(call, array: Out<usize>, given: In<Descriptor3D>) {
        let [width, height, depth, format, flags] = given.get()?;
        create(call, array, [width, height, depth], format, flags as u32)
    }

    /// Gives an array back.
    fn cuArrayDestroy(call, array: usize) {
        array_of(call, array)?;
        call.runtime.destroy_array(array)
    }

    /// What an array is.
    fn cuArrayGetDescriptor_v2(call, given: Out<Descriptor>, array: usize) {
        let array = array_of(call, array)?;
        let (format, count) = format_of(&array.channels);
        given.set([array.extent[0] as u64, array.extent[1] as u64, word(format, count)])
    }

    /// What an array is.
    fn cuArray3DGetDescriptor_v2(call, given: Out<Descriptor3D>, array: usize) {
        let array = array_of(call, array)?;
        let (format, count) = format_of(&array.channels);
        let [width, height, depth] = array.extent.map(|size| size as u64);
        given.set([width, height, depth, word(format, count), u64::from(array.flags)])
    }

    /// Arrays that halve in size.
    fn cuMipmappedArrayCreate(call, mipmap: Out<usize>, given: In<Descriptor3D>, levels: u32) {
        mipmap.wanted()?;
        let [width, height, depth, format, flags] = given.get()?;
        let (format, count) = halves(format);
        let extent = [width, height, depth].map(|size| size as usize);
        mipmap.set(call.runtime.create_mipmap(channels(format, count)?, extent, levels, flags as u32)?)
    }

    /// Gives them back.
    fn cuMipmappedArrayDestroy(call, mipmap: usize) {
        let mipmap = call.runtime.mipmaps.remove(mipmap)?;
        mipmap.levels.iter().try_for_each(|level| call.runtime.destroy_array(*level))
    }

    /// Elements of a buffer that a texture may have.
    fn cuDeviceGetTexture1DLinearMaxWidth(call, width: Out<usize>, format: u32, count: u32, device: i32) {
        check_device(device)?;
        channels(format, count)?;
        call.runtime.device()?;
        width.set(1 << 28)
    }

    /// A texture object.
    fn cuTexObjectCreate(call, object: Out<u64>, resource: In<Resource>, desc: In<DriverTextureDesc>, view: In<u32>) {
        object.wanted()?;
        // A view of another format or of some levels is not done.
        if !view.is_null() {
            return Err(Status::NOT_SUPPORTED);
        }
        let words = resource_of(&resource.get()?)?;
        let desc = texture_desc(&desc.get()?, format_in(call, &words)?);
        object.set(call.runtime.create_texture(words, desc)?)
    }

    /// What a texture object looks at.
    fn cuTexObjectGetResourceDesc = cuSurfObjectGetResourceDesc(call, resource: Out<Resource>, object: u64) {
        let found = call.runtime.objects.get(object as usize).map_err(|_| Status::INVALID_VALUE)?;
        resource.set(driver_resource(&found.resource))
    }

    /// How a texture object looks at it.
    fn cuTexObjectGetTextureDesc(call, desc: Out<DriverTextureDesc>, object: u64) {
        let found = call.runtime.objects.get(object as usize).map_err(|_| Status::INVALID_VALUE)?;
        let texture = found.texture.ok_or(Status::INVALID_VALUE)?;
        desc.set(driver_texture_desc(&texture, format_in(call, &found.resource)?))
    }

    /// A surface object.
    fn cuSurfObjectCreate(call, object: Out<u64>, resource: In<Resource>) {
        object.wanted()?;
        object.set(call.runtime.create_surface(resource_of(&resource.get()?)?)?)
    }

    /// Copies between arrays.
    fn cuMemcpyAtoA_v2 / cuMemcpyAtoA_v2_ptds(call, to: usize, to_offset: usize, from: usize, from_offset: usize, bytes: usize) {
        copy(call, in_array(call, to, to_offset, bytes)?, in_array(call, from, from_offset, bytes)?, bytes, Direction::DeviceToDevice)
    }

    /// Copies out of an array.
    fn cuMemcpyAtoD_v2 / cuMemcpyAtoD_v2_ptds(call, to: u64, from: usize, offset: usize, bytes: usize) {
        copy(call, to, in_array(call, from, offset, bytes)?, bytes, Direction::DeviceToDevice)
    }

    /// Copies into an array.
    fn cuMemcpyDtoA_v2 / cuMemcpyDtoA_v2_ptds(call, to: usize, offset: usize, from: u64, bytes: usize) {
        copy(call, in_array(call, to, offset, bytes)?, from, bytes, Direction::DeviceToDevice)
    }

    /// Copies out of an array to the host.
    fn cuMemcpyAtoH_v2 / cuMemcpyAtoH_v2_ptds(call, to: u64, from: usize, offset: usize, bytes: usize) {
        copy(call, to, in_array(call, from, offset, bytes)?, bytes, Direction::DeviceToHost)
    }

    /// The same in stream order.
    fn cuMemcpyAtoHAsync_v2 / cuMemcpyAtoHAsync_v2_ptsz(call, to: u64, from: usize, offset: usize, bytes: usize, stream: usize) {
        copy_async(call, to, in_array(call, from, offset, bytes)?, bytes, Direction::DeviceToHost, stream)
    }

    /// Copies into an array from the host.
    fn cuMemcpyHtoA_v2 / cuMemcpyHtoA_v2_ptds(call, to: usize, offset: usize, from: u64, bytes: usize) {
        copy(call, in_array(call, to, offset, bytes)?, from, bytes, Direction::HostToDevice)
    }

    /// The same in stream order.
    fn cuMemcpyHtoAAsync_v2 / cuMemcpyHtoAAsync_v2_ptsz(call, to: usize, offset: usize, from: u64, bytes: usize, stream: usize) {
        copy_async(call, in_array(call, to, offset, bytes)?, from, bytes, Direction::HostToDevice, stream)
    }

    /// A texture reference of a module.
    fn cuModuleGetTexRef(call, reference: Out<usize>, module: usize, name: Text) {
        reference.wanted()?;
        reference.set(call.runtime.module_reference(module, &name.get()?, false)?)
    }

    /// A surface reference of a module.
    fn cuModuleGetSurfRef(call, reference: Out<usize>, module: usize, name: Text) {
        reference.wanted()?;
        reference.set(call.runtime.module_reference(module, &name.get()?, true)?)
    }

    /// A texture reference of no module.
    fn cuTexRefCreate(call, reference: Out<usize>) {
        reference.wanted()?;
        reference.set(call.runtime.references.insert(Reference::new(None, false)))
    }

    /// Gives it back.
    fn cuTexRefDestroy(call, reference: usize) {
        call.runtime.references.remove(reference).map(drop)
    }

    /// Binds an array. The flag says that its format is the reference's, which it has to be.
    fn cuTexRefSetArray(call, reference: usize, array: usize, flags: u32) {
        let format = format_of(&array_of(call, array)?.channels);
        if flags != 1 {
            return Err(Status::INVALID_VALUE);
        }
        set(call, reference, |settings| {
            settings.format = format;
            settings.resource = [0, array as u64, 0, 0, 0, 0, 0, 0];
            Ok(())
        })
    }

    /// Binds arrays that halve in size.
    fn cuTexRefSetMipmappedArray(call, reference: usize, mipmap: usize, flags: u32) {
        if flags != 1 {
            return Err(Status::INVALID_VALUE);
        }
        let resource = [1, mipmap as u64, 0, 0, 0, 0, 0, 0];
        let format = format_in(call, &resource)?;
        set(call, reference, |settings| {
            settings.format.0 = format;
            settings.resource = resource;
            Ok(())
        })
    }

    /// Binds linear memory; nothing of it is before its start.
    fn cuTexRefSetAddress_v2(call, offset: Out<usize>, reference: usize, address: u64, bytes: usize) {
        call.runtime.memory.device_range(address, bytes as u64)?;
        offset.set_if_wanted(0);
        set(call, reference, |settings| {
            let channels = channels(settings.format.0, settings.format.1)?;
            settings.resource = with_channels(2, address, channels, [bytes as u64, 0, 0]);
            Ok(())
        })
    }

    /// Binds rows of memory.
    fn cuTexRefSetAddress2D_v2 = cuTexRefSetAddress2D_v3(call, reference: usize, given: In<Descriptor>, address: u64, pitch: usize) {
        set_rows(call, reference, given, address, pitch)
    }

    /// The format of linear memory that is bound later.
    fn cuTexRefSetFormat(call, reference: usize, format: u32, count: i32) {
        channels(format, count as u32)?;
        set(call, reference, |settings| {
            settings.format = (format, count as u32);
            Ok(())
        })
    }

    /// What is beyond the edges of an axis.
    fn cuTexRefSetAddressMode(call, reference: usize, axis: i32, mode: u32) {
        set(call, reference, |settings| {
            *settings.desc.address.get_mut(axis as usize).ok_or(Status::INVALID_VALUE)? = mode;
            Ok(())
        })
    }

    /// How values are combined.
    fn cuTexRefSetFilterMode(call, reference: usize, mode: u32) {
        set(call, reference, |settings| {
            settings.desc.filter = mode;
            Ok(())
        })
    }

    /// How levels are combined.
    fn cuTexRefSetMipmapFilterMode(call, reference: usize, mode: u32) {
        set(call, reference, |settings| {
            settings.desc.level_filter = mode;
            Ok(())
        })
    }

    /// What is added to levels.
    fn cuTexRefSetMipmapLevelBias(call, reference: usize, bias: f32) {
        set(call, reference, |settings| {
            settings.desc.level_bias = bias;
            Ok(())
        })
    }

    /// The least and the greatest level.
    fn cuTexRefSetMipmapLevelClamp(call, reference: usize, least: f32, most: f32) {
        set(call, reference, |settings| {
            (settings.desc.least_level, settings.desc.most_level) = (least, most);
            Ok(())
        })
    }

    /// How slanted a view may be, which makes no difference here.
    fn cuTexRefSetMaxAnisotropy(call, reference: usize, most: u32) {
        set(call, reference, |settings| {
            settings.desc.anisotropy = most;
            Ok(())
        })
    }

    /// What is beyond the edges.
    fn cuTexRefSetBorderColor(call, reference: usize, colour: In<[f32; 4]>) {
        set(call, reference, |settings| {
            settings.desc.border = colour.get()?;
            Ok(())
        })
    }

    /// How values and coordinates are read.
    fn cuTexRefSetFlags(call, reference: usize, flags: u32) {
        set(call, reference, |settings| {
            settings.flags = flags;
            Ok(())
        })
    }

    /// The linear memory that is bound.
    fn cuTexRefGetAddress_v2(call, address: Out<u64>, reference: usize) {
        let settings = settings(call, reference)?;
        if settings.resource[0] == 2 || settings.resource[0] == 3 { address.set(settings.resource[1]) } else { Err(Status::INVALID_VALUE) }
    }

    /// The array that is bound.
    fn cuTexRefGetArray = cuSurfRefGetArray(call, array: Out<usize>, reference: usize) {
        let settings = settings(call, reference)?;
        if settings.resource[0] == 0 { array.set(settings.resource[1] as usize) } else { Err(Status::INVALID_VALUE) }
    }

    /// The arrays that are bound.
    fn cuTexRefGetMipmappedArray(call, mipmap: Out<usize>, reference: usize) {
        let settings = settings(call, reference)?;
        if settings.resource[0] == 1 { mipmap.set(settings.resource[1] as usize) } else { Err(Status::INVALID_VALUE) }
    }

    /// What is beyond the edges of an axis.
    fn cuTexRefGetAddressMode(call, mode: Out<u32>, reference: usize, axis: i32) {
        let settings = settings(call, reference)?;
        mode.set(*settings.desc.address.get(axis as usize).ok_or(Status::INVALID_VALUE)?)
    }

    /// How values are combined.
    fn cuTexRefGetFilterMode(call, mode: Out<u32>, reference: usize) {
        let settings = settings(call, reference)?;
        mode.set(settings.desc.filter)
    }

    /// The format.
    fn cuTexRefGetFormat(call, format: Out<u32>, count: Out<i32>, reference: usize) {
        let settings = settings(call, reference)?;
        format.set_if_wanted(settings.format.0);
        count.set_if_wanted(settings.format.1 as i32);
        Ok(())
    }

    /// How levels are combined.
    fn cuTexRefGetMipmapFilterMode(call, mode: Out<u32>, reference: usize) {
        let settings = settings(call, reference)?;
        mode.set(settings.desc.level_filter)
    }

    /// What is added to levels.
    fn cuTexRefGetMipmapLevelBias(call, bias: Out<f32>, reference: usize) {
        let settings = settings(call, reference)?;
        bias.set(settings.desc.level_bias)
    }

    /// The least and the greatest level.
    fn cuTexRefGetMipmapLevelClamp(call, least: Out<f32>, most: Out<f32>, reference: usize) {
        let settings = settings(call, reference)?;
        least.set(settings.desc.least_level)?;
        most.set(settings.desc.most_level)
    }

    /// How slanted a view may be.
    fn cuTexRefGetMaxAnisotropy(call, most: Out<i32>, reference: usize) {
        let settings = settings(call, reference)?;
        most.set(settings.desc.anisotropy as i32)
    }

    /// What is beyond the edges.
    fn cuTexRefGetBorderColor(call, colour: Out<[f32; 4]>, reference: usize) {
        let settings = settings(call, reference)?;
        colour.set(settings.desc.border)
    }

    /// How values and coordinates are read.
    fn cuTexRefGetFlags(call, flags: Out<u32>, reference: usize) {
        let settings = settings(call, reference)?;
        flags.set(settings.flags)
    }

    /// Binds an array to a surface reference.
    fn cuSurfRefSetArray(call, reference: usize, array: usize, flags: u32) {
        array_of(call, array)?;
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        set(call, reference, |settings| {
            settings.resource = [0, array as u64, 0, 0, 0, 0, 0, 0];
            Ok(())
        })
    }

    /// Binds a texture reference to a kernel, which sees those of its module anyhow.
    fn cuParamSetTexRef(call, function: usize, _unit: i32, reference: usize) {
        call.runtime.kernel(function).map_err(|_| Status::INVALID_HANDLE)?;
        settings(call, reference).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_of_the_driver_and_the_runtime_are_the_same_thing() {
        let mut rows: Resource = [0; 18];
        rows[..6].copy_from_slice(&[3, 0x1000, word(0x20, 4), 64, 8, 1024]);
        let words = resource_of(&rows).unwrap();
        assert_eq!((words[5], words[6], words[7]), (64, 8, 1024));
        assert_eq!(driver_resource(&words), rows);
        let desc =
            DriverTextureDesc { flags: NORMALISED | SRGB | READ_AS_INTEGER, level_bias: 0.5, ..DriverTextureDesc::default() };
        let there = texture_desc(&desc, 1);
        assert_eq!((there.normalised, there.srgb, there.read), (1, 1, 0));
        assert_eq!(driver_texture_desc(&there, 1).flags, desc.flags);
        assert_eq!((size_of::<DriverTextureDesc>(), size_of::<Resource>()), (104, 144));
    }
}
