// Every form of shuffle, with widths of 32, 16, 8 and 4 lanes, for 32- and 64-bit values.
//
// Launch: 1-D grid, blocks of a multiple of 32 threads. out holds 8 ints per thread.

extern "C" __global__ void shuffles(const int *in, int *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = in[i];
    int *row = out + 8 * i;
    row[0] = __shfl_sync(0xffffffff, v, 5);
    row[1] = __shfl_sync(0xffffffff, v, i * 7, 16);
    row[2] = __shfl_up_sync(0xffffffff, v, 3);
    row[3] = __shfl_up_sync(0xffffffff, v, 2, 8);
    row[4] = __shfl_down_sync(0xffffffff, v, 9);
    row[5] = __shfl_down_sync(0xffffffff, v, 1, 4);
    row[6] = __shfl_xor_sync(0xffffffff, v, 21);
    row[7] = __shfl_xor_sync(0xffffffff, v, 6, 8);
}

// Doubles and 64-bit integers travel as two halves; only the lower half of each warp takes part.
extern "C" __global__ void shuffles_wide(const double *d, const long long *l, double *out_d, long long *out_l)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if ((i & 31) < 16) {
        out_d[i] = __shfl_sync(0x0000ffff, d[i], (i + 1) & 15);
        out_l[i] = __shfl_xor_sync(0x0000ffff, l[i], 10);
    } else {
        out_d[i] = -1.0;
        out_l[i] = -1;
    }
}
