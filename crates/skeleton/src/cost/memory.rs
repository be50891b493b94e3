//! Caches and shared memory: the bytes that stay there, and what is prefetched.

use super::{Costs, LANES};

/// Rows of a strip of a product with sums of 32 bits: they fill three quarters of the vector registers of
/// AVX-512.
const PRODUCT_STRIP: u32 = 12;
/// Maximum rows of a tile of a product. The right factor is copied once for all of them.
const PRODUCT_ROWS: u32 = 1032;
/// Minimum panels of a tile of a product.
pub const PRODUCT_PANELS: u32 = 4;
/// Results of a product that is a sum along its common axis, at most.
const SUMMED_RESULTS: u64 = 1024;
/// Elements of the common axis for each row and column, from which on a product is a sum along it.
const INNER_HEAVY: u64 = 64;
/// Bytes of a line of the cache, the same on all x86 CPUs.
pub const CACHE_LINE: u32 = 64;
/// Maximum distance of two elements that mostly lie in one cache line.
pub const NEIGHBOURS: i64 = 4;
/// Maximum blocks in the second direction of a grid; the same on all GPUs.
pub const GRID_ROWS: u32 = 65535;
/// Maximum bytes of static shared memory of a block; fixed by PTX.
pub const STATIC_SHARED: u64 = 48 << 10;
/// Maximum bytes of shared memory of a block of a sweep.
pub const SWEEP_SHARED: u32 = 40 << 10;
/// Bytes of shared memory for the elements of a tile of a sort: several blocks are resident on a core.
pub const SORT_TILE: u32 = 24 << 10;
/// Bytes of shared memory for the elements of a tile of segments. Blocks leave half of a core's memory to its
/// first cache, which holds a line for every gather in flight.
pub const SEGMENT_TILE: u32 = 20 << 10;
/// Bytes of shared memory for the chosen elements of a tile of a pack.
pub const PACK_TILE: u32 = 32 << 10;
/// Maximum bytes of collected lines of a sort on vectors that are in static shared memory.
pub const SORT_STATIC: u32 = 32 << 10;
/// Minimum reads per position for which a tile of a window is staged in shared memory. On an H200, a box
/// blur of 9 reads takes 87 us from memory and 67 us from a tile, one of 25 reads 145 and 89.
pub const STAGED_READS: u64 = 8;
/// Maximum loaded values of a tile with its halo per position of the tile. If the radius of a call is less
/// than the declared one, most of a larger halo is not used.
pub const STAGED_GROWTH: u64 = 4;
/// Elements of segments that are prefetched before their row is reduced: a core that handles the ends of
/// segments does not prefetch them by itself. By measurement on a Xeon with AVX-512, 128 to 2048 are about
/// equally good.
pub const ELEMENTS_AHEAD: u32 = 512;
/// Rows of a reduction along columns that are prefetched before they are reduced.
pub const ROWS_AHEAD: u32 = 8;
/// Rows of the right factor of a product that are prefetched before they are copied.
pub const FACTOR_ROWS_AHEAD: u32 = 4;
/// Rows of a panel of a product that are prefetched before they are multiplied.
pub const PANEL_ROWS_AHEAD: u32 = 16;
/// Padding elements between rows of a copied factor, which avoids conflicts in the cache.
pub const ROW_PADDING: u32 = 16;
/// Bytes of a core's own cache, if they are not known.
const CORE_CACHE: u64 = 2 << 20;
/// Bytes and number of the vector registers of a core, if they are not known.
pub(super) const VECTOR_REGISTERS: (u32, u32) = (64, 32);

/// Returns whether a band of half as many rows needs enough less memory: `bytes` of `before`. Otherwise rows around
/// the band need most of it.
pub fn smaller_band_pays(bytes: u64, before: u64) -> bool {
    bytes <= before / 4 * 3
}

/// Returns whether bands of `rows` rows that need `needed` rows of an image with `all` rows save memory: at least half
/// of the image, or of two bands.
pub fn band_saves_memory(needed: u32, rows: u32, all: u32) -> bool {
    u64::from(needed) * 2 <= u64::from(all).max(2 * u64::from(rows))
}

/// The blocking of a product on vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocking {
    /// Rows of a strip, whose sums stay in registers.
    pub rows: u32,
    /// Strips of a tile, at most.
    pub strips: u32,
    /// Panels of a tile, at most.
    pub panels: u32,
    /// Elements of a piece of the common axis, at most.
    pub depth: u32,
}

impl Costs<'_> {
    /// Returns the bytes of shared memory of a block, static and dynamic.
    pub fn shared_bytes(&self) -> u32 {
        self.machine.max_shared_bytes
    }

    /// Returns a part of a core's own cache, in bytes.
    pub(super) fn core_cache(&self, part: u64) -> u32 {
        u32::try_from(self.machine.core_cache_bytes.unwrap_or(CORE_CACHE) / part).unwrap_or(u32::MAX)
    }

    /// Returns the bytes of inputs that stay in a core's own cache while a block goes through them twice, and
    /// while its results and other blocks of the core pass through it.
    pub fn read_twice(&self) -> u32 {
        self.core_cache(16)
    }

    /// Returns the maximum bytes of cache lines that a sort on vectors collects before it stores them. They
    /// must leave room for other data.
    pub fn collected_lines(&self) -> u32 {
        self.core_cache(16).min(self.shared_bytes() / 4 * 3)
    }

    /// Returns the minimum bytes of a round of a sort for non-temporal stores: the next round does not find
    /// the elements in the cache.
    pub fn non_temporal(&self) -> u32 {
        self.core_cache(2)
    }

    /// Returns the blocking of a product on vectors, for sums of `bytes` bytes.
    ///
    /// The panels of a tile have half of a core's own cache, and one of them a sixteenth of that.
    pub fn blocking(&self, bytes: u32) -> Blocking {
        let row = LANES * bytes;
        let rows = if bytes == 8 { PRODUCT_STRIP / 2 } else { PRODUCT_STRIP };
        let depth = (self.core_cache(32) / row).clamp(64, 1024);
        let panels = (self.core_cache(2) / (depth * row)).max(PRODUCT_PANELS);
        Blocking { rows, strips: PRODUCT_ROWS.div_ceil(rows), panels, depth }
    }

    /// Returns whether a product is computed as a sum along the common axis: an element of a factor is used
    /// for few results, so copying it into another order does not pay.
    pub fn sums_products(&self, rows: u64, columns: u64, common: u64) -> bool {
        let results = rows.saturating_mul(columns);
        let is_inner = results <= SUMMED_RESULTS && common >= rows.max(columns).saturating_mul(INNER_HEAVY);
        is_inner || rows == 1 || columns == 1
    }

    /// Returns whether factors of a product are copied in another order first, which pays for many rows and
    /// columns.
    pub fn orders_factors(&self) -> bool {
        self.in_vectors()
    }
}
