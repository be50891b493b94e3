//! Texture and surface objects, mipmapped arrays.

use crate::boundary::exported;
use crate::location::check_device;
use crate::objects::textures::{ResourceWords, TextureDesc};
use crate::pointer::{In, Out};
use crate::status::Status;
use crate::types::Extent;

pub(crate) use crate::shared_api::textures::*;

exported! { runtime
    fn cudaCreateTextureObject(call, object: Out<u64>, resource: In<ResourceWords>, desc: In<TextureDesc>, view: In<u32>) {
        object.wanted()?;
        // Views with another format or a range of levels are not supported.
        if !view.is_null() {
            return Err(Status::NOT_SUPPORTED);
        }
        object.set(call.runtime.create_texture(resource.get()?, desc.get()?)?)
    }

    fn cudaGetTextureObjectResourceDesc = cudaGetSurfaceObjectResourceDesc(call, resource: Out<ResourceWords>, object: u64) {
        let found = call.runtime.objects.get(object as usize).map_err(|_| Status::INVALID_VALUE)?;
        resource.set(found.resource)
    }

    fn cudaGetTextureObjectTextureDesc(call, desc: Out<TextureDesc>, object: u64) {
        let found = call.runtime.objects.get(object as usize).map_err(|_| Status::INVALID_VALUE)?;
        desc.set(found.texture.ok_or(Status::INVALID_VALUE)?)
    }

    fn cudaCreateSurfaceObject(call, object: Out<u64>, resource: In<ResourceWords>)
        => object.set_by(|| call.runtime.create_surface(resource.get()?));

    fn cudaMallocMipmappedArray(call, mipmap: Out<usize>, format: In<[i32; 5]>, extent: Extent, levels: u32, flags: u32) {
        mipmap.wanted()?;
        let extent = [extent.width, extent.height, extent.depth];
        mipmap.set(call.runtime.create_mipmap(format.get()?, extent, levels, flags)?)
    }

    fn cudaFreeMipmappedArray(call, mipmap: usize) {
        if mipmap == 0 {
            return Ok(());
        }
        let mipmap = call.runtime.mipmaps.remove(mipmap)?;
        mipmap.levels.iter().try_for_each(|level| call.runtime.destroy_array(*level))
    }

    fn cudaDeviceGetTexture1DLinearMaxWidth(call, width: Out<usize>, format: In<[i32; 5]>, device: i32) {
        check_device(device)?;
        format.get()?;
        call.runtime.device()?;
        width.set(1 << 28)
    }
}
