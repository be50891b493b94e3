// Loads and stores with cache operators, read-only loads, volatile accesses and prefetches; the values are the same as ever.
//
// Launch: 1-D grid with at least n threads. out[i] = in[i] summed over eight ways to read it (8 * in[i]).

extern "C" __global__ void cache_hints(const int *in, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const int *p = in + i;
    asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(p)));
    int sum = __ldg(p) + __ldcg(p) + __ldca(p) + __ldcs(p) + __ldlu(p) + __ldcv(p);
    sum += *(const volatile int *)p + *p;
    switch (i & 3) {
    case 0: __stcg(out + i, sum); break;
    case 1: __stcs(out + i, sum); break;
    case 2: __stwt(out + i, sum); break;
    case 3: __stwb(out + i, sum); break;
    }
}

// Read-only vector loads of several types: out[i] = dot(a[i], b[i]) + c[i].
extern "C" __global__ void read_only(const float4 *a, const float4 *b, const double *c, double *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float4 u = __ldg(a + i), v = __ldcs(b + i);
    out[i] = (double)u.x * v.x + (double)u.y * v.y + (double)u.z * v.z + (double)u.w * v.w + __ldg(c + i);
}
