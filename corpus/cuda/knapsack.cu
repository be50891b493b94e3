// The 0/1 knapsack: best value within each capacity 0 .. capacity, by dynamic programming over the items.
//
// Launch: one block of any size; capacity up to 1023. best holds capacity + 1 values.

extern "C" __global__ void knapsack(const int *weight, const unsigned *value, int items, int capacity, unsigned *best)
{
    __shared__ unsigned table[2][1024];
    for (int c = threadIdx.x; c <= capacity; c += blockDim.x)
        table[0][c] = 0;
    __syncthreads();
    for (int item = 0; item < items; ++item) {
        const unsigned *from = table[item & 1];
        unsigned *to = table[~item & 1];
        int w = weight[item];
        unsigned v = value[item];
        for (int c = threadIdx.x; c <= capacity; c += blockDim.x)
            to[c] = c >= w ? max(from[c], from[c - w] + v) : from[c];
        __syncthreads();
    }
    for (int c = threadIdx.x; c <= capacity; c += blockDim.x)
        best[c] = table[items & 1][c];
}
