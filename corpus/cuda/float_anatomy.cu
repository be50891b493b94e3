// Floats taken apart: classification, sign, next value, exponent and fraction, remainders, minimum and maximum with NaN.
//
// Launch: 1-D grid with at least n threads. classes holds 1 word, parts 8 floats, wide 4 doubles per thread.

extern "C" __global__ void float_anatomy(const float *a, const float *b, unsigned *classes, float *parts, double *wide, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float x = a[i], y = b[i], *row = parts + 8 * i;
    classes[i] = isnan(x) | isinf(x) << 1 | isfinite(x) << 2 | signbit(x) << 3 | (x < y) << 4 | (x >= y) << 5 |
                 (x != y) << 6 | (isnan(x) || isnan(y)) << 7;
    row[0] = fminf(x, y);
    row[1] = fmaxf(x, y);
    row[2] = copysignf(x, y);
    row[3] = fabsf(x);
    row[4] = nextafterf(x, y);
    int exponent = 0;
    row[5] = isfinite(x) ? frexpf(x, &exponent) : 0.0f;
    row[6] = exponent;
    row[7] = ldexpf(1.5f, exponent);
    double *out = wide + 4 * i, whole;
    out[0] = fmin((double)x, (double)y);
    out[1] = isfinite(x) && isfinite(y) && y != 0.0f ? remainder((double)x, (double)y) : 0.0;
    out[2] = isfinite(x) ? modf((double)x, &whole) + whole : 0.0;
    out[3] = isfinite(x) && x != 0.0f ? logb((double)x) : 0.0;
}
