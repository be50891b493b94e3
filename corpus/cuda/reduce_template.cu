// One reduction, written once for any type and operation: sum of doubles, least of 64-bit integers, greatest of
// floats, bitwise or of bytes.
//
// Launch: one block of 128 threads; n elements; out receives one value.

struct Sum {
    template <typename T> __device__ T operator()(T a, T b) const { return a + b; }
};
struct Least {
    template <typename T> __device__ T operator()(T a, T b) const { return a < b ? a : b; }
};
struct Greatest {
    template <typename T> __device__ T operator()(T a, T b) const { return a > b ? a : b; }
};
struct Union {
    template <typename T> __device__ T operator()(T a, T b) const { return a | b; }
};

template <int Threads, typename T, typename Op> __device__ void reduce(const T *in, int n, T identity, Op op, T *out)
{
    __shared__ T tile[Threads];
    T acc = identity;
    for (int i = threadIdx.x; i < n; i += Threads)
        acc = op(acc, in[i]);
    tile[threadIdx.x] = acc;
    __syncthreads();
#pragma unroll
    for (int half = Threads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            tile[threadIdx.x] = op(tile[threadIdx.x], tile[threadIdx.x + half]);
        __syncthreads();
    }
    if (threadIdx.x == 0)
        *out = tile[0];
}

extern "C" __global__ void sum_f64(const double *in, int n, double *out) { reduce<128>(in, n, 0.0, Sum(), out); }

extern "C" __global__ void least_s64(const long long *in, int n, long long *out)
{
    reduce<128>(in, n, 0x7fffffffffffffffll, Least(), out);
}

extern "C" __global__ void greatest_f32(const float *in, int n, float *out)
{
    reduce<128>(in, n, __int_as_float(0xff800000), Greatest(), out);
}

extern "C" __global__ void union_u8(const unsigned char *in, int n, unsigned char *out)
{
    reduce<128>(in, n, (unsigned char)0, Union(), out);
}
