// A kernel that stops itself with a trap when its input is negative.
//
// Launch: 1-D grid with at least n threads.

extern "C" __global__ void device_trap(const int *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    if (in[i] < 0)
        __trap();
    out[i] = sqrtf((float)in[i]);
}
