// y[i] = alpha * x[i] + y[i] for i < n, with a grid-stride loop.
//
// Launch: any 1-D grid. Arrays hold n elements.

extern "C" __global__ void saxpy(int n, float alpha, const float *__restrict__ x, float *__restrict__ y)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = alpha * x[i] + y[i];
}

extern "C" __global__ void daxpy(long long n, double alpha, const double *x, double *y)
{
    long long stride = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        y[i] = fma(alpha, x[i], y[i]);
}
