// Segments are split between threads at equal numbers of elements.
#include "peer.h"
#ifdef __AVX512F__
#include <immintrin.h>
#endif
static i64 n;
static int* ptr;
static float *x, *y;
void setup(i64 size) {
    n = size, ptr = make<int>(n + 1), y = make<float>(n);
    for (i64 r = 0; r < n; r++) ptr[r + 1] = ptr[r] + ragged((uint32_t)r, 10);
    x = units(ptr[n], 14);
}
static float sum(int s, int e) {
#ifdef __AVX512F__
    __m512 acc = _mm512_setzero_ps();
    for (; s + 16 <= e; s += 16) acc = _mm512_add_ps(acc, _mm512_loadu_ps(x + s));
    if (s < e) acc = _mm512_add_ps(acc, _mm512_maskz_loadu_ps((__mmask16)((1u << (e - s)) - 1), x + s));
    return _mm512_reduce_add_ps(acc);
#else
    float sum = 0;
    for (; s < e; s++) sum += x[s];
    return sum;
#endif
}
void run() {
    i64 all = ptr[n];
    #pragma omp parallel
    {
        int threads = omp_get_num_threads(), me = omp_get_thread_num();
        i64 a = me == 0 ? 0 : std::lower_bound(ptr, ptr + n, (int)(all * me / threads)) - ptr;
        i64 b = me == threads - 1 ? n : std::lower_bound(ptr, ptr + n, (int)(all * (me + 1) / threads)) - ptr;
        for (i64 r = a; r < b; r++) y[r] = sum(ptr[r], ptr[r + 1]);
    }
}
double checksum() { return weighed(y, n); }
