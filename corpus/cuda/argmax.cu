// The greatest of n non-negative floats and the first place where it stands: value and place packed in one 64-bit
// word, so that one atomicMax decides.
//
// Launch: any 1-D grid. *best is set to zero by the caller; afterwards its upper half holds the bits of the value
// and its lower half 0xffffffff - place.

extern "C" __global__ void argmax(const float *in, unsigned n, unsigned long long *best)
{
    unsigned long long mine = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned long long packed = (unsigned long long)__float_as_uint(in[i]) << 32 | (0xffffffffu - i);
        mine = max(mine, packed);
    }
    for (int offset = 1; offset < warpSize; offset *= 2)
        mine = max(mine, __shfl_xor_sync(0xffffffff, mine, offset));
    if ((threadIdx.x & 31) == 0)
        atomicMax(best, mine);
}
