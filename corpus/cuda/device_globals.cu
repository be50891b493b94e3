// Variables of the module: initialised scalars, arrays, structures and strings; pointers whose initial value is the address of
// another variable; one that keeps its value from launch to launch.
//
// Launch: device_globals: 1-D grid with at least 16 threads; out holds 16 ints. bump_counter: any grid; adds the number of
// its threads to `counter` and writes what the first thread of each block saw to seen[block].

struct Entry {
    short key;
    double weight;
    const char *name;
};

__device__ int scalar = -42;
__device__ unsigned char bytes[5] = {1, 2, 3, 250, 255};
__device__ double doubles[3] = {0.5, -1.25, 1e10};
__device__ long long zeroes[4];
__device__ int *to_scalar = &scalar;
__device__ double *into_doubles = doubles + 1;
__device__ const char *words[3] = {"loom", "broad", "warp and weft"};
__device__ Entry entries[2] = {{7, 2.5, "seven"}, {-3, -0.75, "minus three"}};
__constant__ int lookup[4] = {10, 20, 30, 40};
__device__ unsigned counter = 5;

__device__ int length(const char *s)
{
    int n = 0;
    while (s[n] != 0)
        ++n;
    return n;
}

extern "C" __global__ void device_globals(int *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= 16)
        return;
    int v = 0;
    if (i == 0)
        v = *to_scalar;
    else if (i < 6)
        v = bytes[i - 1];
    else if (i < 8)
        v = (int)(into_doubles[i - 7] * 4.0);
    else if (i < 11)
        v = length(words[i - 8]) + words[i - 8][0] * 1000;
    else if (i < 13)
        v = entries[i - 11].key * 100 + (int)(entries[i - 11].weight * 4.0) + length(entries[i - 11].name) * 10000;
    else
        v = lookup[i - 12] + (int)zeroes[i - 12];
    out[i] = v;
}

extern "C" __global__ void bump_counter(unsigned *seen)
{
    unsigned before = atomicAdd(&counter, 1);
    if (threadIdx.x == 0)
        seen[blockIdx.x] = before;
}
