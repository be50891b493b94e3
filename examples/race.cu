// The sum of an array, with a mistake that a GPU may forgive for a long time: no barrier between two levels of the tree.

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
    }
    if (t == 0)
        atomicAdd(sum, tile[0]);
}
