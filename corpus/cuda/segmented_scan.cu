// Inclusive prefix sums that start anew wherever head[i] is not zero: a scan of (flag, value) pairs.
//
// Launch: 1-D grid, 256 threads per block. Each block scans its own 256 elements; the first of them is always a head.

extern "C" __global__ void segmented_scan(const float *in, const unsigned char *head, float *out)
{
    __shared__ float value[256];
    __shared__ bool closed[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    value[t] = in[i];
    closed[t] = t == 0 || head[i] != 0;
    __syncthreads();
    for (int offset = 1; offset < 256; offset *= 2) {
        float v = value[t];
        bool c = closed[t];
        if (t >= offset && !c) {
            v += value[t - offset];
            c = closed[t - offset];
        }
        __syncthreads();
        value[t] = v;
        closed[t] = c;
        __syncthreads();
    }
    out[i] = value[t];
}
