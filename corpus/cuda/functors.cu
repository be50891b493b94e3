// Lambdas and function objects with captured state, passed to generic device functions.
//
// Launch: 1-D grid with at least n threads.

template <typename F> __device__ void for_each_index(int n, F f)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        f(i);
}

template <typename F, typename G> struct Composed {
    F f;
    G g;
    template <typename T> __device__ auto operator()(T x) const { return f(g(x)); }
};

template <typename F, typename G> __device__ Composed<F, G> compose(F f, G g) { return {f, g}; }

struct Clamp {
    int low, high;
    __device__ int operator()(int x) const { return x < low ? low : x > high ? high : x; }
};

extern "C" __global__ void functors(const int *in, int *out, int n, int scale, int low, int high)
{
    auto scaled = [scale](int x) { return x * scale; };
    auto f = compose(Clamp{low, high}, compose(scaled, [=](int x) { return x - low; }));
    for_each_index(n, [&](int i) { out[i] = f(in[i]); });
}
