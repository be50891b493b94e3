//! Arrays, texture and surface objects, and texture and surface references of the driver.

use crate::boundary::{Call, exported, transfers};
use crate::location::check_device;
use crate::objects::boxes::Direction;
use crate::objects::references::{
    NORMALISED, READ_AS_INTEGER, Reference, SRGB, Settings, channels, format_of, read_mode, with_channels,
};
use crate::objects::textures::{Array, ResourceWords, TextureDesc, channels_of};
use crate::pointer::{In, Out, Text};
use crate::shared_api::copies::copy;
use crate::status::{Outcome, Status};
use crate::work::Transfer;
use std::sync::Arc;

pub(crate) use crate::shared_api::textures::*;

/// `CUDA_ARRAY_DESCRIPTOR`: width, height, format and channels.
type Descriptor = [u64; 3];
/// `CUDA_ARRAY3D_DESCRIPTOR`: width, height, depth, format and channels, flags.
type Descriptor3D = [u64; 5];
/// `CUDA_RESOURCE_DESC`: kind, data, flags.
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

/// Splits a word into format and number of channels.
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

/// Converts a driver resource description to the runtime's form.
fn resource_of(given: &Resource) -> Outcome<ResourceWords> {
    let (format, count) = halves(given[2]);
    Ok(match given[0] as u32 {
        kind @ (0 | 1) => [u64::from(kind), given[1], 0, 0, 0, 0, 0, 0],
        2 => with_channels(2, given[1], channels(format, count)?, [given[3], 0, 0]),
        3 => with_channels(3, given[1], channels(format, count)?, [given[3], given[4], given[5]]),
        _ => return Err(Status::INVALID_VALUE),
    })
}

/// Converts a runtime resource description to the driver's form.
fn driver_resource(words: &ResourceWords) -> Resource {
    let mut resource = [0; 18];
    (resource[0], resource[1]) = (words[0], words[1]);
    if words[0] >= 2 {
        let (format, count) = format_of(&channels_of(words));
        resource[2] = word(format, count);
        resource[3..6].copy_from_slice(&words[5..8]);
    }
    resource
}

/// Returns the format of a resource.
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

/// Returns the address of an offset in a one-dimensional array.
fn in_array(call: &Call, array: usize, offset: usize, bytes: usize) -> Outcome<u64> {
    let array = array_of(call, array)?;
    let row = array.extent[0] * array.element_bytes();
    let fits = array.extent[1] <= 1 && array.extent[2] <= 1 && offset.checked_add(bytes).is_some_and(|end| end <= row);
    if fits { Ok(array.address + offset as u64) } else { Err(Status::INVALID_VALUE) }
}

fn set(call: &Call, reference: usize, change: impl FnOnce(&mut Settings)) -> Outcome {
    call.runtime.set_reference(reference, |settings| {
        change(settings);
        Ok(())
    })
}

fn settings(call: &Call, reference: usize) -> Outcome<Settings> {
    Ok(*call.runtime.references.get(reference)?.settings())
}

/// Binds pitched memory.
fn set_rows(call: &Call, reference: usize, given: In<Descriptor>, address: u64, pitch: usize) -> Outcome {
    let [width, height, format] = given.get()?;
    let (format, count) = halves(format);
    let channels = channels(format, count)?;
    set(call, reference, |settings| {
        settings.format = (format, count);
        settings.resource = with_channels(3, address, channels, [width, height, pitch as u64]);
    })
}

transfers! { driver
    fn cuMemcpyAtoH_v2 / cuMemcpyAtoH_v2_ptds, cuMemcpyAtoHAsync_v2 / cuMemcpyAtoHAsync_v2_ptsz
    (call, to: u64, from: usize, offset: usize, bytes: usize) => Transfer::bytes(to, in_array(call, from, offset, bytes)?, bytes, Direction::DeviceToHost);
    fn cuMemcpyHtoA_v2 / cuMemcpyHtoA_v2_ptds, cuMemcpyHtoAAsync_v2 / cuMemcpyHtoAAsync_v2_ptsz
    (call, to: usize, offset: usize, from: u64, bytes: usize) => Transfer::bytes(in_array(call, to, offset, bytes)?, from, bytes, Direction::HostToDevice);
}

exported! { driver
    /// Creates an array of one or two dimensions.
    fn cuArrayCreate_v2(call, array: Out<usize>, given: In<Descriptor>) {
        let [width, height, format] = given.get()?;
        create(call, array, [width, height, 0], format, 0)
    }

    /// Creates an array of up to three dimensions, or a layered array.
    fn cuArray3DCreate_v2(call, array: Out<usize>, given: In<Descriptor3D>) {
        let [width, height, depth, format, flags] = given.get()?;
        create(call, array, [width, height, depth], format, flags as u32)
    }

    fn cuArrayDestroy(call, array: usize) => array_of(call, array)?, call.runtime.destroy_array(array);

    /// Returns the description of an array.
    fn cuArrayGetDescriptor_v2(call, given: Out<Descriptor>, array: usize) {
        let array = array_of(call, array)?;
        let (format, count) = format_of(&array.channels);
        given.set([array.extent[0] as u64, array.extent[1] as u64, word(format, count)])
    }

    /// Returns the description of an array.
    fn cuArray3DGetDescriptor_v2(call, given: Out<Descriptor3D>, array: usize) {
        let array = array_of(call, array)?;
        let (format, count) = format_of(&array.channels);
        let [width, height, depth] = array.extent.map(|size| size as u64);
        given.set([width, height, depth, word(format, count), u64::from(array.flags)])
    }

    fn cuMipmappedArrayCreate(call, mipmap: Out<usize>, given: In<Descriptor3D>, levels: u32) {
        mipmap.wanted()?;
        let [width, height, depth, format, flags] = given.get()?;
        let (format, count) = halves(format);
        let extent = [width, height, depth].map(|size| size as usize);
        mipmap.set(call.runtime.create_mipmap(channels(format, count)?, extent, levels, flags as u32)?)
    }

    fn cuMipmappedArrayDestroy(call, mipmap: usize) {
        let mipmap = call.runtime.mipmaps.remove(mipmap)?;
        mipmap.levels.iter().try_for_each(|level| call.runtime.destroy_array(*level))
    }

    /// Returns the maximum number of elements of a linear texture.
    fn cuDeviceGetTexture1DLinearMaxWidth(call, width: Out<usize>, format: u32, count: u32, device: i32) {
        check_device(device)?;
        channels(format, count)?;
        call.runtime.device()?;
        width.set(1 << 28)
    }

    /// Creates a texture object.
    fn cuTexObjectCreate(call, object: Out<u64>, resource: In<Resource>, desc: In<DriverTextureDesc>, view: In<u32>) {
        object.wanted()?;
        // Views with another format or a range of levels are not supported.
        if !view.is_null() {
            return Err(Status::NOT_SUPPORTED);
        }
        let words = resource_of(&resource.get()?)?;
        let desc = texture_desc(&desc.get()?, format_in(call, &words)?);
        object.set(call.runtime.create_texture(words, desc)?)
    }

    /// Returns the resource description of an object.
    fn cuTexObjectGetResourceDesc = cuSurfObjectGetResourceDesc(call, resource: Out<Resource>, object: u64) {
        let found = call.runtime.objects.get(object as usize).map_err(|_| Status::INVALID_VALUE)?;
        resource.set(driver_resource(&found.resource))
    }

    /// Returns the texture description of a texture object.
    fn cuTexObjectGetTextureDesc(call, desc: Out<DriverTextureDesc>, object: u64) {
        let found = call.runtime.objects.get(object as usize).map_err(|_| Status::INVALID_VALUE)?;
        let texture = found.texture.ok_or(Status::INVALID_VALUE)?;
        desc.set(driver_texture_desc(&texture, format_in(call, &found.resource)?))
    }

    /// Creates a surface object.
    fn cuSurfObjectCreate(call, object: Out<u64>, resource: In<Resource>)
        => object.wanted()?, object.set(call.runtime.create_surface(resource_of(&resource.get()?)?)?);

    fn cuMemcpyAtoA_v2 / cuMemcpyAtoA_v2_ptds(call, to: usize, to_offset: usize, from: usize, from_offset: usize, bytes: usize) {
        copy(call, in_array(call, to, to_offset, bytes)?, in_array(call, from, from_offset, bytes)?, bytes, Direction::DeviceToDevice)
    }

    fn cuMemcpyAtoD_v2 / cuMemcpyAtoD_v2_ptds(call, to: u64, from: usize, offset: usize, bytes: usize) {
        copy(call, to, in_array(call, from, offset, bytes)?, bytes, Direction::DeviceToDevice)
    }

    fn cuMemcpyDtoA_v2 / cuMemcpyDtoA_v2_ptds(call, to: usize, offset: usize, from: u64, bytes: usize) {
        copy(call, in_array(call, to, offset, bytes)?, from, bytes, Direction::DeviceToDevice)
    }

    /// Returns a texture reference of a module.
    fn cuModuleGetTexRef(call, reference: Out<usize>, module: usize, name: Text)
        => reference.wanted()?, reference.set(call.runtime.module_reference(module, &name.get()?, false)?);
    /// Returns a surface reference of a module.
    fn cuModuleGetSurfRef(call, reference: Out<usize>, module: usize, name: Text)
        => reference.wanted()?, reference.set(call.runtime.module_reference(module, &name.get()?, true)?);
    /// Creates a standalone texture reference.
    fn cuTexRefCreate(call, reference: Out<usize>)
        => reference.wanted()?, reference.set(call.runtime.references.insert(Reference::new(None, false)));

    /// Destroys a texture reference.
    fn cuTexRefDestroy(call, reference: usize) {
        call.runtime.references.remove(reference).map(drop)
    }

    /// Binds an array. The mandatory flag states that the array's format overrides the reference's.
    fn cuTexRefSetArray(call, reference: usize, array: usize, flags: u32) {
        let format = format_of(&array_of(call, array)?.channels);
        if flags != 1 {
            return Err(Status::INVALID_VALUE);
        }
        set(call, reference, |settings| {
            settings.format = format;
            settings.resource = [0, array as u64, 0, 0, 0, 0, 0, 0];
        })
    }

    /// Binds a mipmapped array.
    fn cuTexRefSetMipmappedArray(call, reference: usize, mipmap: usize, flags: u32) {
        if flags != 1 {
            return Err(Status::INVALID_VALUE);
        }
        let resource = [1, mipmap as u64, 0, 0, 0, 0, 0, 0];
        let format = format_in(call, &resource)?;
        set(call, reference, |settings| {
            settings.format.0 = format;
            settings.resource = resource;
        })
    }

    /// Binds linear memory. The offset is always 0.
    fn cuTexRefSetAddress_v2(call, offset: Out<usize>, reference: usize, address: u64, bytes: usize) {
        call.runtime.memory.device_range(address, bytes as u64)?;
        offset.set_if_wanted(0);
        call.runtime.set_reference(reference, |settings| {
            let channels = channels(settings.format.0, settings.format.1)?;
            settings.resource = with_channels(2, address, channels, [bytes as u64, 0, 0]);
            Ok(())
        })
    }

    /// Binds pitched memory.
    fn cuTexRefSetAddress2D_v2 = cuTexRefSetAddress2D_v3(call, reference: usize, given: In<Descriptor>, address: u64, pitch: usize) {
        set_rows(call, reference, given, address, pitch)
    }

    /// Sets the format of linear memory that is bound later.
    fn cuTexRefSetFormat(call, reference: usize, format: u32, count: i32)
        => channels(format, count as u32)?, set(call, reference, |settings| settings.format = (format, count as u32));

    /// Sets the address mode of an axis.
    fn cuTexRefSetAddressMode(call, reference: usize, axis: i32, mode: u32) {
        call.runtime.set_reference(reference, |settings| {
            *settings.desc.address.get_mut(axis as usize).ok_or(Status::INVALID_VALUE)? = mode;
            Ok(())
        })
    }

    fn cuTexRefSetFilterMode(call, reference: usize, mode: u32) => set(call, reference, |settings| settings.desc.filter = mode);
    /// Sets the filter mode between mipmap levels.
    fn cuTexRefSetMipmapFilterMode(call, reference: usize, mode: u32) => set(call, reference, |settings| settings.desc.level_filter = mode);
    fn cuTexRefSetMipmapLevelBias(call, reference: usize, bias: f32) => set(call, reference, |settings| settings.desc.level_bias = bias);
    /// Sets the lowest and highest mipmap level.
    fn cuTexRefSetMipmapLevelClamp(call, reference: usize, least: f32, most: f32) => set(call, reference, |settings| (settings.desc.least_level, settings.desc.most_level) = (least, most));
    /// Sets the maximum anisotropy, which has no effect.
    fn cuTexRefSetMaxAnisotropy(call, reference: usize, most: u32) => set(call, reference, |settings| settings.desc.anisotropy = most);

    /// Sets the border colour.
    fn cuTexRefSetBorderColor(call, reference: usize, colour: In<[f32; 4]>) {
        let border = colour.get()?;
        set(call, reference, |settings| settings.desc.border = border)
    }

    fn cuTexRefSetFlags(call, reference: usize, flags: u32) => set(call, reference, |settings| settings.flags = flags);

    /// Returns the bound linear memory.
    fn cuTexRefGetAddress_v2(call, address: Out<u64>, reference: usize) {
        let settings = settings(call, reference)?;
        if settings.resource[0] == 2 || settings.resource[0] == 3 { address.set(settings.resource[1]) } else { Err(Status::INVALID_VALUE) }
    }

    /// Returns the bound array.
    fn cuTexRefGetArray = cuSurfRefGetArray(call, array: Out<usize>, reference: usize) {
        let settings = settings(call, reference)?;
        if settings.resource[0] == 0 { array.set(settings.resource[1] as usize) } else { Err(Status::INVALID_VALUE) }
    }

    /// Returns the bound mipmapped array.
    fn cuTexRefGetMipmappedArray(call, mipmap: Out<usize>, reference: usize) {
        let settings = settings(call, reference)?;
        if settings.resource[0] == 1 { mipmap.set(settings.resource[1] as usize) } else { Err(Status::INVALID_VALUE) }
    }

    /// Returns the address mode of an axis.
    fn cuTexRefGetAddressMode(call, mode: Out<u32>, reference: usize, axis: i32) => mode.set(*settings(call, reference)?.desc.address.get(axis as usize).ok_or(Status::INVALID_VALUE)?);
    fn cuTexRefGetFilterMode(call, mode: Out<u32>, reference: usize) => mode.set(settings(call, reference)?.desc.filter);

    fn cuTexRefGetFormat(call, format: Out<u32>, count: Out<i32>, reference: usize) {
        let settings = settings(call, reference)?;
        format.set_if_wanted(settings.format.0);
        count.set_if_wanted(settings.format.1 as i32);
        Ok(())
    }

    /// Returns the filter mode between mipmap levels.
    fn cuTexRefGetMipmapFilterMode(call, mode: Out<u32>, reference: usize) => mode.set(settings(call, reference)?.desc.level_filter);
    fn cuTexRefGetMipmapLevelBias(call, bias: Out<f32>, reference: usize) => bias.set(settings(call, reference)?.desc.level_bias);

    /// Returns the lowest and highest mipmap level.
    fn cuTexRefGetMipmapLevelClamp(call, least: Out<f32>, most: Out<f32>, reference: usize) {
        let settings = settings(call, reference)?;
        least.set(settings.desc.least_level)?;
        most.set(settings.desc.most_level)
    }

    /// Returns the maximum anisotropy.
    fn cuTexRefGetMaxAnisotropy(call, most: Out<i32>, reference: usize) => most.set(settings(call, reference)?.desc.anisotropy as i32);
    /// Returns the border colour.
    fn cuTexRefGetBorderColor(call, colour: Out<[f32; 4]>, reference: usize) => colour.set(settings(call, reference)?.desc.border);
    fn cuTexRefGetFlags(call, flags: Out<u32>, reference: usize) => flags.set(settings(call, reference)?.flags);

    /// Binds an array to a surface reference.
    fn cuSurfRefSetArray(call, reference: usize, array: usize, flags: u32) {
        array_of(call, array)?;
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        set(call, reference, |settings| settings.resource = [0, array as u64, 0, 0, 0, 0, 0, 0])
    }

    /// Accepts a texture reference for a kernel. A kernel sees the references of its module anyway.
    fn cuParamSetTexRef(call, function: usize, _unit: i32, reference: usize)
        => call.runtime.kernel(function).map_err(|_| Status::INVALID_HANDLE)?, settings(call, reference).map(drop);
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
