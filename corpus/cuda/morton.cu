// Space-filling curves: Morton codes in two and three dimensions and back, Gray codes, and Hilbert indices.
//
// Launch: 1-D grid with at least n threads.

__device__ unsigned spread2(unsigned v)
{
    v &= 0xffff;
    v = (v | v << 8) & 0x00ff00ff;
    v = (v | v << 4) & 0x0f0f0f0f;
    v = (v | v << 2) & 0x33333333;
    return (v | v << 1) & 0x55555555;
}

__device__ unsigned long long spread3(unsigned v)
{
    unsigned long long w = v & 0x1fffff;
    w = (w | w << 32) & 0x001f00000000ffffull;
    w = (w | w << 16) & 0x001f0000ff0000ffull;
    w = (w | w << 8) & 0x100f00f00f00f00full;
    w = (w | w << 4) & 0x10c30c30c30c30c3ull;
    return (w | w << 2) & 0x1249249249249249ull;
}

__device__ unsigned hilbert(unsigned x, unsigned y)
{
    unsigned index = 0;
    for (unsigned s = 1u << 15; s > 0; s >>= 1) {
        unsigned rx = (x & s) != 0, ry = (y & s) != 0;
        index += s * s * ((3 * rx) ^ ry);
        if (ry == 0) {
            if (rx == 1) {
                x = 0xffff - x;
                y = 0xffff - y;
            }
            unsigned t = x;
            x = y;
            y = t;
        }
    }
    return index;
}

extern "C" __global__ void morton(const uint4 *point, unsigned *code2, unsigned long long *code3, unsigned *gray,
                                  unsigned *curve, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    uint4 p = point[i];
    code2[i] = spread2(p.x) | spread2(p.y) << 1;
    code3[i] = spread3(p.x) | spread3(p.y) << 1 | spread3(p.z) << 2;
    gray[i] = p.w ^ p.w >> 1;
    curve[i] = hilbert(p.x & 0xffff, p.y & 0xffff);
}
