// Floating-point atomics: addition of float, double, __half2 and __half, and minimum and maximum by compare-and-swap. Values are small
// integers, so that every order gives the same sum.
//
// Launch: any 1-D grid of up to 1024 threads in all. Everything starts at zero.

#include <cuda_fp16.h>

__device__ void atomic_max_float(float *place, float v)
{
    int seen = atomicAdd((int *)place, 0), expected;
    do {
        expected = seen;
        if (__int_as_float(expected) >= v)
            return;
        seen = atomicCAS((int *)place, expected, __float_as_int(v));
    } while (seen != expected);
}

extern "C" __global__ void atomics_float(float *f, double *d, __half2 *h, __half *single)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&f[0], (float)(i % 100));
    float old = atomicAdd(&f[1], 1.0f);
    atomic_max_float(&f[2], old * 0.5f);
    atomicAdd(&d[0], i * 0.25);
    atomicAdd(h, __floats2half2_rn(1.0f, (i & 1) ? 0.5f : -0.5f));
    atomicAdd(single, __float2half(0.5f));
    atomicExch(&f[3], 42.0f);
}
