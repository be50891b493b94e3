// Transposes 32 x 32 bits, and an 8 x 8 matrix of floats held in the registers of 8 lanes, with shuffles alone.
//
// Launch: 1-D grid, blocks of a multiple of 32 threads.

// out[32 w + c] holds column c of the bit matrix whose rows are in[32 w ..].
extern "C" __global__ void transpose_bits(const unsigned *in, unsigned *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    unsigned v = in[i];
    unsigned masks[5] = {0x0000ffff, 0x00ff00ff, 0x0f0f0f0f, 0x33333333, 0x55555555};
#pragma unroll
    for (int k = 0, j = 16; k < 5; ++k, j >>= 1) {
        unsigned other = __shfl_xor_sync(0xffffffff, v, j);
        unsigned low = masks[k];
        v = lane & j ? (v & ~low) | (other >> j & low) : (v & low) | (other << j & ~low);
    }
    out[i] = v;
}

// Lane r of each group of 8 holds row r of an 8 x 8 matrix; afterwards column r.
extern "C" __global__ void transpose_registers(const float *in, float *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 7;
    float row[8];
#pragma unroll
    for (int k = 0; k < 8; ++k)
        row[k] = in[8 * i + k];
#pragma unroll
    for (int j = 4; j > 0; j >>= 1)
#pragma unroll
        for (int k = 0; k < 8; ++k)
            if ((k & j) == 0) {
                bool upper = (lane & j) != 0;
                float give = upper ? row[k] : row[k + j];
                float got = __shfl_xor_sync(0xffffffff, give, j);
                if (upper)
                    row[k] = got;
                else
                    row[k + j] = got;
            }
#pragma unroll
    for (int k = 0; k < 8; ++k)
        out[8 * i + k] = row[k];
}
