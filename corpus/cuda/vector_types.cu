// Loads and stores of CUDA's vector types, of 2, 4, 8 and 16 bytes.
//
// Launch: any 1-D grid with at least n threads. Arrays hold n vectors.

// out = in with its components reversed, each scaled by its position from 1 to 4.
extern "C" __global__ void reverse_float4(const float4 *in, float4 *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float4 v = in[i];
    out[i] = make_float4(v.w, 2.0f * v.z, 3.0f * v.y, 4.0f * v.x);
}

// out = (sum, difference) of the components.
extern "C" __global__ void butterfly_int2(const int2 *in, int2 *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = make_int2(in[i].x + in[i].y, in[i].x - in[i].y);
}

// Complex product of a and b.
extern "C" __global__ void multiply_double2(const double2 *a, const double2 *b, double2 *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double2 p = a[i], q = b[i];
    out[i] = make_double2(p.x * q.x - p.y * q.y, p.x * q.y + p.y * q.x);
}

// Integer luma of RGBA bytes: (77 r + 150 g + 29 b) / 256, alpha kept.
extern "C" __global__ void luma_uchar4(const uchar4 *in, uchar2 *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    uchar4 p = in[i];
    out[i] = make_uchar2((77 * p.x + 150 * p.y + 29 * p.z) >> 8, p.w);
}

// Widening dot product of two vectors of four 16-bit integers.
extern "C" __global__ void dot_short4(const short4 *a, const short4 *b, long long *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    short4 p = a[i], q = b[i];
    out[i] = (long long)p.x * q.x + p.y * q.y + (long long)p.z * q.z + p.w * q.w;
}
