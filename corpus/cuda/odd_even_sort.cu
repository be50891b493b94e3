// Sorts n signed 16-bit integers by odd-even transposition.
//
// Launch: one block of at least n / 2 threads; n up to 2048.

extern "C" __global__ void odd_even_sort(short *keys, int n)
{
    __shared__ short tile[2048];
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        tile[i] = keys[i];
    __syncthreads();
    for (int round = 0; round < n; ++round) {
        int i = 2 * threadIdx.x + (round & 1);
        if (i + 1 < n && tile[i] > tile[i + 1]) {
            short t = tile[i];
            tile[i] = tile[i + 1];
            tile[i + 1] = t;
        }
        __syncthreads();
    }
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        keys[i] = tile[i];
}
