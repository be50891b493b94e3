// Packed panels and a micro-kernel of 12 x 32 elements in registers.
#include "peer.h"
enum { MR = 12, NR = 32, KC = 256, MC = 120 };
typedef float v16 __attribute__((vector_size(64), aligned(64)));
typedef float v16u __attribute__((vector_size(64), aligned(4)));
static void micro(const float* __restrict a, const float* __restrict b, float* c, i64 ldc, int kc, int mr, int nr, bool first) {
    v16 acc[MR][2];
    #pragma GCC unroll 12
    for (int i = 0; i < MR; i++) acc[i][0] = acc[i][1] = v16{} ;
    for (int k = 0; k < kc; k++) {
        v16 b0 = *(const v16*)(b + k * NR), b1 = *(const v16*)(b + k * NR + 16);
        #pragma GCC unroll 12
        for (int i = 0; i < MR; i++) { float s = a[k * MR + i]; acc[i][0] += b0 * s; acc[i][1] += b1 * s; }
    }
    if (mr == MR && nr == NR) {
        #pragma GCC unroll 12
        for (int i = 0; i < MR; i++) {
            v16u* p = (v16u*)(c + i * ldc);
            if (first) { p[0] = acc[i][0]; p[1] = acc[i][1]; } else { p[0] += acc[i][0]; p[1] += acc[i][1]; }
        }
    } else {
        alignas(64) float t[MR][NR];
        #pragma GCC unroll 12
        for (int i = 0; i < MR; i++) { *(v16*)&t[i][0] = acc[i][0]; *(v16*)&t[i][16] = acc[i][1]; }
        for (int i = 0; i < mr; i++) for (int j = 0; j < nr; j++) c[i*ldc+j] = first ? t[i][j] : c[i*ldc+j] + t[i][j];
    }
}
static i64 n;
static float *A, *B, *C, *bp;
void setup(i64 size) {
    n = size, A = units(n * n, 1, -0.5f, 0.5f), B = units(n * n, 2, -0.5f, 0.5f), C = make<float>(n * n);
    bp = make<float>((n + NR - 1) / NR * NR * KC);
}
void run() {
    i64 np = (n + NR - 1) / NR;
    #pragma omp parallel
    {
        float* ap = (float*)aligned_alloc(64, (MC + MR) * KC * 4);
        for (i64 k0 = 0; k0 < n; k0 += KC) {
            int kc = (int)std::min<i64>(KC, n - k0);
            #pragma omp for schedule(static)
            for (i64 p = 0; p < np; p++) {
                float* d = bp + p * NR * KC; int nr = (int)std::min<i64>(NR, n - p * NR);
                for (int k = 0; k < kc; k++) {
                    const float* s = B + (k0 + k) * n + p * NR;
                    for (int j = 0; j < NR; j++) d[k * NR + j] = j < nr ? s[j] : 0.f;
                }
            }
            #pragma omp for schedule(dynamic, 1)
            for (i64 m0 = 0; m0 < n; m0 += MC) {
                int mc = (int)std::min<i64>(MC, n - m0), mp = (mc + MR - 1) / MR;
                for (int q = 0; q < mp; q++) for (int i = 0; i < MR; i++) {
                    float* d = ap + q * MR * KC + i; i64 row = m0 + q * MR + i;
                    if (row < m0 + mc) { const float* s = A + row * n + k0; for (int k = 0; k < kc; k++) d[k * MR] = s[k]; }
                    else for (int k = 0; k < kc; k++) d[k * MR] = 0;
                }
                for (i64 p = 0; p < np; p++) for (int q = 0; q < mp; q++)
                    micro(ap + q * MR * KC, bp + p * NR * KC, C + (m0 + q * MR) * n + p * NR, n, kc,
                          std::min(MR + 0, mc - q * MR), (int)std::min<i64>(NR, n - p * NR), k0 == 0);
            }
        }
        free(ap);
    }
}
double checksum() { return weighed(C, n * n); }
