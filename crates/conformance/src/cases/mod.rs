//! Cases by topic.

use crate::Case;

mod atomics;
mod barriers;
mod codes;
mod conversions;
mod elements;
mod functions;
mod geometry;
mod graphs;
mod halves;
mod integers;
mod language;
mod matrices;
mod meetings;
mod memory;
mod numerics;
mod packed;
mod reductions;
mod rounding;
mod scans;
mod sorting;
mod stencils;
mod strings;
mod warps;

macro_rules! suite {
    ($($topic:ident: $($kernel:ident)*;)*) => {
        /// Every kernel of the corpus.
        pub const SUITE: &[Case] = &[$($(Case { kernel: stringify!($kernel), check: $topic::$kernel },)*)*];
    };
}

suite! {
    elements: vector_add saxpy thread_index vector_types struct_argument horner;
    reductions: reduce_shared reduce_shuffle reduce_atomic reduce_last_block reduce_template reduce_redux argmax
        dot_product;
    scans: scan_hillis_steele scan_blelloch scan_shuffle scan_lookback segmented_scan stream_compaction;
    sorting: bitonic_sort radix_sort odd_even_sort merge_path rank_sort;
    stencils: stencil_1d stencil_2d stencil_3d stencil_25_point heat_diffusion game_of_life convolution sobel
        median_filter;
    matrices: transpose_tiled matmul_tiled matmul_double matmul_half spmv gauss_step lu_decomposition cholesky;
    graphs: bfs shortest_paths pagerank connected_components triangle_count floyd_warshall;
    strings: string_search edit_distance knapsack parse_numbers bracket_depth run_length queens sudoku;
    codes: crc32 sha256 aes base64;
    numerics: nbody mandelbrot black_scholes monte_carlo fft dct8x8;
    geometry: kmeans nearest_neighbours ray_spheres runge_kutta root_finding sum_compensated;
    language: print_values recursion function_pointers virtual_functions templates functors device_globals
        switch_dispatch goto_machine device_assert device_trap clocks managed_variables device_malloc;
    memory: cache_hints dynamic_shared local_arrays type_punning inline_assembly generic_addresses;
    warps: shuffles votes matches cooperative_tiles cooperative_coalesced warp_transpose special_registers;
    meetings: barrier_phases barrier_pipeline cluster_memory;
    barriers: named_barriers barrier_votes spin_lock producer_consumer acquire_release grid_barrier hash_table
        work_queue;
    atomics: atomics_int atomics_wide atomics_float atomics_shared histogram_shared histogram_global;
    integers: bit_tricks bit_fields wide_arithmetic int128 division carry_chain number_theory prime_sieve morton;
    packed: dot_products_packed simd_intrinsics video_instructions saturating;
    rounding: rounding flush_to_zero float_anatomy;
    conversions: conversions;
    functions: double_math float_math fast_math fast_flags;
    halves: half_math bf16_math;
}
