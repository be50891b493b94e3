//! Texture and surface objects, mipmapped arrays.

use crate::boundary::exported;
use crate::pointer::Out;
use crate::status::Status;

exported! { runtime
    fn cudaDestroyTextureObject = cudaDestroySurfaceObject | cuTexObjectDestroy = cuSurfObjectDestroy(call, object: u64)
        => call.runtime.destroy_object(object);

    fn cudaGetMipmappedArrayLevel | cuMipmappedArrayGetLevel(call, array: Out<usize>, mipmap: usize, level: u32) {
        let mipmap = call.runtime.mipmaps.get(mipmap)?;
        array.set(*mipmap.levels.get(level as usize).ok_or(Status::INVALID_VALUE)?)
    }

    /// Fails: texture objects never have a resource view.
    fn cudaGetTextureObjectResourceViewDesc | cuTexObjectGetResourceViewDesc(call, _view: Out<u64>, object: u64)
        => call.runtime.objects.get(object as usize).map_err(|_| Status::INVALID_VALUE)?, Err(Status::INVALID_VALUE);
}
