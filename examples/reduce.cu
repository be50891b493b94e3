// The sum of an array: a tree in shared memory for each block, then one atomic addition.

extern "C" __global__ void reduce(const float *in, float *sum, int n)
{
    __shared__ float tile[256];
    int t = threadIdx.x;
    int i = blockIdx.x * blockDim.x + t;
    tile[t] = i < n ? in[i] : 0.0f;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half)
            tile[t] += tile[t + half];
        __syncthreads();
    }
    if (t == 0)
        atomicAdd(sum, tile[0]);
}
