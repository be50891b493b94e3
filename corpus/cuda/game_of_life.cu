// One generation of Conway's Game of Life on a torus of width x height bytes; and the same on rows of 32 cells that are
// packed into words, by bit-parallel addition of the eight neighbours.
//
// game_of_life: 2-D grid that covers the board. game_of_life_packed: one thread per row of a 32 x rows torus, 1-D grid.

extern "C" __global__ void game_of_life(const unsigned char *in, unsigned char *out, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    int alive = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            if (dx != 0 || dy != 0)
                alive += in[(y + dy + height) % height * width + (x + dx + width) % width];
    out[y * width + x] = alive == 3 || (alive == 2 && in[y * width + x]);
}

extern "C" __global__ void game_of_life_packed(const unsigned *in, unsigned *out, unsigned rows)
{
    unsigned r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows)
        return;
    unsigned row[3] = {in[(r + rows - 1) % rows], in[r], in[(r + 1) % rows]};
    unsigned ones = 0, twos = 0, fours = 0;
#pragma unroll
    for (int k = 0; k < 3; ++k)
#pragma unroll
        for (int shift = -1; shift <= 1; ++shift) {
            if (k == 1 && shift == 0)
                continue;
            unsigned v = shift < 0   ? __funnelshift_l(row[k], row[k], 1)
                         : shift > 0 ? __funnelshift_r(row[k], row[k], 1)
                                     : row[k];
            unsigned carry = ones & v;
            ones ^= v;
            fours |= twos & carry;
            twos ^= carry;
        }
    out[r] = twos & ~fours & (ones | row[1]);
}
