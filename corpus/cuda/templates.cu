// Compile-time programming: a fixed-size matrix class, a variadic sum, compile-time recursion, and constexpr tables.
//
// Launch: 1-D grid with at least n threads.

template <typename T, int N> struct Matrix {
    T at[N][N];
    __device__ static Matrix identity()
    {
        Matrix m = {};
        for (int i = 0; i < N; ++i)
            m.at[i][i] = T(1);
        return m;
    }
    __device__ Matrix operator*(const Matrix &o) const
    {
        Matrix m = {};
        for (int i = 0; i < N; ++i)
            for (int j = 0; j < N; ++j)
                for (int k = 0; k < N; ++k)
                    m.at[i][j] += at[i][k] * o.at[k][j];
        return m;
    }
};

template <typename M> __device__ M power(M base, unsigned exponent)
{
    M result = M::identity();
    for (; exponent != 0; exponent >>= 1) {
        if (exponent & 1)
            result = result * base;
        base = base * base;
    }
    return result;
}

// Fibonacci number in[i], modulo 2^64, as a matrix power.
extern "C" __global__ void fibonacci_matrix(const unsigned *in, unsigned long long *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    Matrix<unsigned long long, 2> step = {{{1, 1}, {1, 0}}};
    out[i] = power(step, in[i]).at[0][1];
}

template <typename... Ts> __device__ double total(Ts... values) { return (0.0 + ... + values); }

template <unsigned N> struct Factorial {
    static constexpr unsigned long long value = N * Factorial<N - 1>::value;
};
template <> struct Factorial<0> {
    static constexpr unsigned long long value = 1;
};

template <typename T, unsigned... Ks> __device__ T taylor(T x)
{
    T sum = 0, p = 1;
    ((sum += p / T(Factorial<Ks>::value), p *= x), ...);
    return sum;
}

// exp(x) by ten terms of its series, and a sum of mixed types.
extern "C" __global__ void folded(const double *x, double *series, double *mixed, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    series[i] = taylor<double, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9>(x[i]);
    mixed[i] = total(i, 2.5f, (unsigned char)i, x[i], -3ll);
}
