// c[i] = a[i] + b[i] for i < n.
//
// Launch: any 1-D grid with at least n threads. Arrays hold n floats.

extern "C" __global__ void vector_add(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}
