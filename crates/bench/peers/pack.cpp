// Each thread counts what it keeps, then writes it behind what the others before it keep.
#include "peer.h"
#ifdef __AVX512F__
#include <immintrin.h>
#endif
static i64 n, kept;
static float *x, *y;
void setup(i64 size) { n = size, x = units(n, 1), y = make<float>(n); }
void run() {
    static i64 counts[1024];
    #pragma omp parallel num_threads(std::min(omp_get_max_threads(), 1024))
    {
        int threads = omp_get_num_threads(), me = omp_get_thread_num();
        i64 a = n * me / threads, b = n * (me + 1) / threads, count = 0;
        #pragma omp simd reduction(+:count)
        for (i64 i = a; i < b; i++) count += x[i] > 0.5f;
        counts[me] = count;
        #pragma omp barrier
        i64 at = 0, i = a;
        for (int t = 0; t < me; t++) at += counts[t];
#ifdef __AVX512F__
        // A whole vector is stored while it stays within what is this thread's.
        i64 end = at + counts[me];
        for (; i + 16 <= b && at + 16 <= end; i += 16) {
            __m512 v = _mm512_loadu_ps(x + i);
            __mmask16 keep = _mm512_cmp_ps_mask(v, _mm512_set1_ps(0.5f), _CMP_GT_OQ);
            _mm512_storeu_ps(y + at, _mm512_maskz_compress_ps(keep, v));
            at += __builtin_popcount(keep);
        }
#endif
        for (; i < b; i++) if (x[i] > 0.5f) y[at++] = x[i];
        if (me == threads - 1) kept = at;
    }
}
double checksum() { return weighed(y, kept); }
