// Cooperative groups: sums over tiles of 32, 8 and 4 threads, ranks, and a barrier of the whole block.
//
// Launch: 1-D grid, 64 threads per block, one element per thread. out holds 4 ints per thread.

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

template <typename Tile> __device__ int tile_sum(Tile tile, int v)
{
    for (int offset = tile.size() / 2; offset > 0; offset /= 2)
        v += tile.shfl_down(v, offset);
    return tile.shfl(v, 0);
}

extern "C" __global__ void cooperative_tiles(const int *in, int *out)
{
    __shared__ int sums[16];
    cg::thread_block block = cg::this_thread_block();
    int i = block.group_index().x * block.size() + block.thread_rank();
    auto warp = cg::tiled_partition<32>(block);
    auto eight = cg::tiled_partition<8>(warp);
    auto four = cg::tiled_partition<4>(block);
    int *row = out + 4 * i;
    row[0] = tile_sum(warp, in[i]);
    row[1] = tile_sum(eight, in[i]) + eight.meta_group_rank();
    int s = tile_sum(four, in[i]);
    if (four.thread_rank() == 0)
        sums[four.meta_group_rank()] = s;
    block.sync();
    row[2] = sums[15 - four.meta_group_rank()];
    row[3] = four.any(in[i] > 50) * 2 + eight.all(in[i] > -50) + (int)warp.ballot(in[i] & 1);
}
