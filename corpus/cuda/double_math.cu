// The double-precision math library: trigonometry, exponentials and logarithms, powers, error and gamma functions.
//
// Launch: 1-D grid with at least n threads. x is positive; out holds 6 doubles per thread.

extern "C" __global__ void double_trigonometry(const double *x, double *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double v = x[i], *row = out + 6 * i;
    double s, c;
    sincos(v * 3.0, &s, &c);
    row[0] = sin(v);
    row[1] = cos(v);
    row[2] = tan(v);
    row[3] = s * c;
    row[4] = atan2(v, 2.0) + asin(1.0 / (1.0 + v));
    row[5] = sinpi(v * 0.25);
}

extern "C" __global__ void double_exponentials(const double *x, double *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double v = x[i], *row = out + 6 * i;
    row[0] = exp(v) + exp2(-v);
    row[1] = log(v) + log2(v) + log10(v);
    row[2] = pow(v, 1.75);
    row[3] = expm1(v * 1e-3) + log1p(v * 1e-3);
    row[4] = sinh(v) + tanh(v);
    row[5] = cbrt(v) + hypot(v, 3.0) + rsqrt(v) + sqrt(v);
}

extern "C" __global__ void double_special(const double *x, double *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double v = x[i], *row = out + 6 * i;
    row[0] = erf(v);
    row[1] = erfc(v);
    row[2] = lgamma(v);
    row[3] = tgamma(v * 0.5);
    row[4] = fmod(v * 7.0, 0.9);
    row[5] = floor(v) + ceil(v * 0.5) + rint(v * 2.5) + trunc(v * 1.5);
}
