// Sums of floats that keep their error: Kahan's in float and two-sum / two-product in a double-float dot product.
//
// Launch: 1-D grid with at least `rows` threads; each thread works on one row of length floats. Rounded operations throughout, so that
// no contraction disturbs the error terms.

extern "C" __global__ void sum_kahan(const float *in, float *out, int rows, int length)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows)
        return;
    float sum = 0.0f, lost = 0.0f;
    for (int k = 0; k < length; ++k) {
        float y = __fsub_rn(in[r * length + k], lost), t = __fadd_rn(sum, y);
        lost = __fsub_rn(__fsub_rn(t, sum), y);
        sum = t;
    }
    out[r] = sum;
}

extern "C" __global__ void dot_two_product(const float *a, const float *b, float2 *out, int rows, int length)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows)
        return;
    float high = 0.0f, low = 0.0f;
    for (int k = 0; k < length; ++k) {
        float p = __fmul_rn(a[r * length + k], b[r * length + k]);
        float e = __fmaf_rn(a[r * length + k], b[r * length + k], -p);
        float s = __fadd_rn(high, p), t = __fsub_rn(s, high);
        float rest = __fadd_rn(__fsub_rn(high, __fsub_rn(s, t)), __fsub_rn(p, t));
        high = s;
        low = __fadd_rn(low, __fadd_rn(rest, e));
    }
    out[r] = make_float2(high, low);
}
