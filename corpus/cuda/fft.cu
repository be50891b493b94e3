// Radix-2 fast Fourier transform of 2 * blockDim.x complex numbers per block, in shared memory: bit reversal, then
// butterflies with twiddles from sincospif.
//
// Launch: 1-D grid, blocks of a power of two up to 512 threads. inverse != 0 computes the inverse, scaled by 1 / n.

extern "C" __global__ void fft(float2 *data, int inverse)
{
    __shared__ float2 tile[1024];
    int t = threadIdx.x, n = 2 * blockDim.x;
    float2 *mine = data + blockIdx.x * n;
    int shift = __clz(n) + 1;
    for (int i = t; i < n; i += blockDim.x)
        tile[__brev(i) >> shift] = mine[i];
    __syncthreads();
    for (int half = 1; half < n; half *= 2) {
        int k = t & (half - 1), at = 2 * t - k;
        float s, c;
        sincospif((inverse ? 1.0f : -1.0f) * k / half, &s, &c);
        float2 a = tile[at], b = tile[at + half];
        float2 w = make_float2(c * b.x - s * b.y, c * b.y + s * b.x);
        tile[at] = make_float2(a.x + w.x, a.y + w.y);
        tile[at + half] = make_float2(a.x - w.x, a.y - w.y);
        __syncthreads();
    }
    float scale = inverse ? 1.0f / n : 1.0f;
    for (int i = t; i < n; i += blockDim.x)
        mine[i] = make_float2(tile[i].x * scale, tile[i].y * scale);
}
