// Evaluates the polynomial c[0] + c[1] x + ... + c[degree] x^degree at each x, in float and in double.
//
// Launch: any 1-D grid with at least n threads. c holds degree + 1 coefficients.

template <typename T> __device__ T evaluate(const T *c, int degree, T x)
{
    T y = c[degree];
    for (int k = degree - 1; k >= 0; --k)
        y = y * x + c[k];
    return y;
}

extern "C" __global__ void horner_f32(const float *c, int degree, const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = evaluate(c, degree, x[i]);
}

extern "C" __global__ void horner_f64(const double *c, int degree, const double *x, double *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = evaluate(c, degree, x[i]);
}
