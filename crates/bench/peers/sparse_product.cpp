// Rows are split between threads at equal numbers of entries; a row is summed by gathers where the CPU has them for 16 lanes.
#include "peer.h"
#ifdef __AVX512F__
#include <immintrin.h>
#endif
static i64 n;
static int *ptr, *col;
static float *val, *x, *y;
void setup(i64 size) {
    n = size, ptr = make<int>(n + 1), x = units(n, 13), y = make<float>(n);
    for (i64 r = 0; r < n; r++) ptr[r + 1] = ptr[r] + ragged((uint32_t)r, 16);
    val = units(ptr[n], 14);
    col = filled<int>(ptr[n], [](i64 i) { return (int)((uint64_t)hashed((uint32_t)i, 15) * (uint64_t)n >> 32); });
}
static float row(int s, int e) {
#ifdef __AVX512F__
    __m512 acc = _mm512_setzero_ps();
    for (; s + 16 <= e; s += 16)
        acc = _mm512_fmadd_ps(_mm512_i32gather_ps(_mm512_loadu_si512(col + s), x, 4), _mm512_loadu_ps(val + s), acc);
    if (s < e) {
        __mmask16 m = (1u << (e - s)) - 1; __m512i c = _mm512_maskz_loadu_epi32(m, col + s);
        acc = _mm512_fmadd_ps(_mm512_mask_i32gather_ps(_mm512_setzero_ps(), m, c, x, 4), _mm512_maskz_loadu_ps(m, val + s), acc);
    }
    return _mm512_reduce_add_ps(acc);
#else
    float sum = 0;
    for (; s < e; s++) sum += val[s] * x[col[s]];
    return sum;
#endif
}
void run() {
    i64 nnz = ptr[n];
    #pragma omp parallel
    {
        int T = omp_get_num_threads(), t = omp_get_thread_num();
        i64 a = t == 0 ? 0 : std::lower_bound(ptr, ptr + n, (int)(nnz * t / T)) - ptr;
        i64 b = t == T - 1 ? n : std::lower_bound(ptr, ptr + n, (int)(nnz * (t + 1) / T)) - ptr;
        for (i64 r = a; r < b; r++) y[r] = row(ptr[r], ptr[r + 1]);
    }
}
double checksum() { return weighed(y, n); }
