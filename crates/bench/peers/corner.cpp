// Strips of rows; every stage of a strip stays in cache, what strips share is computed again.
#include "peer.h"
#include <vector>
static i64 n;
static float *x, *o, k5[5], k9[9];
static int held(int v, int most) { return v < 0 ? 0 : v > most ? most : v; }
static void bell(float* k, int r, double sigma) {
    double sum = 0, all[16];
    for (int i = -r; i <= r; i++) sum += all[i + r] = exp(-0.5 * i * i / (sigma * sigma));
    for (int i = 0; i <= 2 * r; i++) k[i] = (float)(all[i] / sum);
}
void setup(i64 size) { n = size, x = units(n * n, 1), o = make<float>(n * n), bell(k5, 2, 1), bell(k9, 4, 2); }
static void last(const float* __restrict A, const float* __restrict M, const float* __restrict C, float* __restrict q, int w, const float* g) {
    const float g0 = g[0], g1 = g[1], g2 = g[2], g3 = g[3], g4 = g[4];
    #define H9(v) ((v[i-4] + v[i+4]) * g0 + (v[i-3] + v[i+3]) * g1 + (v[i-2] + v[i+2]) * g2 + (v[i-1] + v[i+1]) * g3 + v[i] * g4)
    #pragma GCC ivdep
    for (int i = 0; i < w; i++) {
        float a = H9(A), m = H9(M), c = H9(C), tt = (a + c) * .5f, s = sqrtf((a - c) * (a - c) * .25f + m * m);
        q[i] = .5f * (tt + s) + (tt - s);
    }
}
void run() {
    const int h = n, w = n, S = 40;
    float a0 = k5[0], a1 = k5[1], a2 = k5[2], g[5]; for (int i = 0; i < 5; i++) g[i] = k9[i];
    #pragma omp parallel
    {
        const int ld = w + 16;
        std::vector<float> bl((S + 12) * ld), pr(3 * (S + 10) * ld), t(w + 16), tv(3 * ld);
        #pragma omp for schedule(dynamic, 1)
        for (int y0 = 0; y0 < h; y0 += S) {
            int y1 = std::min(h, y0 + S), b0 = std::max(0, y0 - 5), b1 = std::min(h, y1 + 5);
            int p0 = std::max(0, y0 - 4), p1 = std::min(h, y1 + 4);
            for (int y = b0; y < b1; y++) {
                const float* r[5]; for (int j = 0; j < 5; j++) r[j] = x + (i64)held(y + j - 2, h - 1) * w;
                float* __restrict v = t.data() + 2; float* __restrict q = &bl[(y - b0) * ld + 1];
                for (int i = 0; i < w; i++) v[i] = (r[0][i] + r[4][i]) * a0 + (r[1][i] + r[3][i]) * a1 + r[2][i] * a2;
                v[-2] = v[-1] = v[0]; v[w] = v[w + 1] = v[w - 1];
                for (int i = 0; i < w; i++) q[i] = (v[i-2] + v[i+2]) * a0 + (v[i-1] + v[i+1]) * a1 + v[i] * a2;
                q[-1] = q[0]; q[w] = q[w - 1];
            }
            for (int y = p0; y < p1; y++) {
                const float *u = &bl[(held(y - 1, h - 1) - b0) * ld + 1], *d = &bl[(held(y + 1, h - 1) - b0) * ld + 1], *c = &bl[(y - b0) * ld + 1];
                float *__restrict A = &pr[((y - p0) * 3) * ld], *__restrict M = A + ld, *__restrict C = M + ld;
                for (int i = 0; i < w; i++) {
                    float ix = (c[i+1] - c[i-1]) * .5f, iy = (d[i] - u[i]) * .5f;
                    A[i] = ix * ix; M[i] = ix * iy; C[i] = iy * iy;
                }
            }
            for (int y = y0; y < y1; y++) {
                for (int p = 0; p < 3; p++) {
                    const float* r[9]; for (int j = 0; j < 9; j++) r[j] = &pr[((held(y + j - 4, h - 1) - p0) * 3 + p) * ld];
                    float* __restrict v = &tv[p * ld + 4];
                    for (int i = 0; i < w; i++)
                        v[i] = (r[0][i] + r[8][i]) * g[0] + (r[1][i] + r[7][i]) * g[1] + (r[2][i] + r[6][i]) * g[2] + (r[3][i] + r[5][i]) * g[3] + r[4][i] * g[4];
                    for (int j = 1; j <= 4; j++) { v[-j] = v[0]; v[w - 1 + j] = v[w - 1]; }
                }
                last(&tv[4], &tv[4] + ld, &tv[4] + 2 * ld, o + (i64)y * w, w, g);
            }
        }
    }
}
double checksum() { return weighed(o, n * n); }
