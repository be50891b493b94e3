//! Cache of images: modules as the driver's linker produces them.

use broadloom_device::CacheFolder;
use broadloom_device::cache::Cache;

/// Maximum bytes of images kept in memory.
const MEMORY_BYTES: usize = 64 << 20;

/// Cache of images.
pub(crate) type Images = Cache<Vec<u8>>;

/// Opens a cache of images in a folder.
pub(crate) fn open(folder: &CacheFolder, most_bytes: u64) -> Images {
    Cache::new("cuda", folder, most_bytes, MEMORY_BYTES)
}
