// A grid that waits for itself, and groups of threads.
#include "check.h"
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void turns(int *cells, int *wrong, int rounds) {
    cg::grid_group grid = cg::this_grid();
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(cg::this_thread_block());
    int n = grid.size(), i = grid.thread_rank();
    for (int round = 0; round < rounds; round++) {
        cells[i] = round;
        grid.sync();
        if (cells[(i + n / 2 + 1) % n] != round) atomicAdd(wrong, 1);
        grid.sync();
    }
    int first = tile.shfl(i, 0), all = 0;
    for (int k = 0; k < 8; k++) all += tile.shfl_xor(int(tile.thread_rank()), k);
    if (first != i / 8 * 8 || all != 28) atomicAdd(wrong, 1);
}

int main() {
    int *cells, *wrong, rounds = 5, host = -1;
    CALL(cudaMalloc(&cells, 1024 * sizeof *cells));
    CALL(cudaMalloc(&wrong, sizeof *wrong));
    CALL(cudaMemset(wrong, 0, sizeof *wrong));
    void *arguments[] = {&cells, &wrong, &rounds};
    CALL(cudaLaunchCooperativeKernel((void *)turns, dim3(4), dim3(64), arguments, 0, 0));
    CALL(cudaMemcpy(&host, wrong, sizeof host, cudaMemcpyDeviceToHost));
    CHECK(host == 0);
    printf("ok\n");
}
