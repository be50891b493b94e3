// Median of the 3 x 3 neighbourhood, by a network of minimum and maximum; edges clamped.
//
// Launch: 2-D grid that covers the image of unsigned 16-bit values.

template <typename T> __device__ void order(T &a, T &b)
{
    T low = min(a, b), high = max(a, b);
    a = low;
    b = high;
}

extern "C" __global__ void median_filter(const unsigned short *in, unsigned short *out, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    unsigned short v[9];
    for (int k = 0; k < 9; ++k) {
        int sx = min(max(x + k % 3 - 1, 0), width - 1), sy = min(max(y + k / 3 - 1, 0), height - 1);
        v[k] = in[sy * width + sx];
    }
    // Sort every column, then the middle is decided by the greatest low, the median middle and the least high.
    for (int c = 0; c < 3; ++c) {
        order(v[c], v[c + 3]);
        order(v[c + 3], v[c + 6]);
        order(v[c], v[c + 3]);
    }
    unsigned short low = max(max(v[0], v[1]), v[2]), high = min(min(v[6], v[7]), v[8]);
    unsigned short middle = max(min(v[3], v[4]), min(max(v[3], v[4]), v[5]));
    out[y * width + x] = max(min(low, middle), min(max(low, middle), high));
}
