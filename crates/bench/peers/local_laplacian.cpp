// Pyramids of eight copies of the brightness; each level of the result is chosen from the bands of two copies.
#include "peer.h"
#include <vector>
enum { K = 8, J = 8 };
static i64 w, h, ws[J], hs[J];
static float *x, *o, *guide[J], *copy[J], *out[J], *line;
void setup(i64 n) {
    w = n, h = n * 5 / 3, x = units(3 * w * h, 1), o = make<float>(3 * w * h);
    for (int j = 0; j < J; j++) {
        ws[j] = j ? (ws[j-1] + 1) / 2 : w, hs[j] = j ? (hs[j-1] + 1) / 2 : h;
        guide[j] = make<float>(ws[j] * hs[j]), copy[j] = make<float>(K * ws[j] * hs[j]), out[j] = make<float>(ws[j] * hs[j]);
    }
}
static inline i64 held(i64 i, i64 n) { return std::min(std::max(i, (i64)0), n - 1); }
static void halve(const float* s, float* q, i64 planes, int j) {
    i64 a = ws[j-1], b = hs[j-1], c = ws[j], d = hs[j];
    #pragma omp parallel
    {
        std::vector<float> v(a + 4);
        #pragma omp for schedule(static)
        for (i64 r = 0; r < planes * d; r++) {
            const float* p = s + r / d * a * b; i64 y = 2 * (r % d);
            const float *r0 = p + held(y - 1, b) * a, *r1 = p + held(y, b) * a, *r2 = p + held(y + 1, b) * a, *r3 = p + held(y + 2, b) * a;
            float* t = v.data() + 1;
            for (i64 i = 0; i < a; i++) t[i] = (r0[i] + r3[i]) * .125f + (r1[i] + r2[i]) * .375f;
            t[-1] = t[0], t[a] = t[a + 1] = t[a - 1];
            for (i64 i = 0; i < c; i++) q[r * c + i] = (t[2*i-1] + t[2*i+2]) * .125f + (t[2*i] + t[2*i+1]) * .375f;
        }
    }
}
// A row of the next coarser level, twice as wide and high.
static void doubled(const float* s, i64 a, i64 b, i64 y, i64 width, float* t, float* q) {
    i64 near = y / 2, next = held(near - 1 + y % 2 * 2, b);
    for (i64 i = 0; i < a; i++) t[i] = s[near * a + i] * .75f + s[next * a + i] * .25f;
    for (i64 i = 0; i < width; i++) q[i] = t[i / 2] * .75f + t[held(i / 2 - 1 + i % 2 * 2, a)] * .25f;
}
void run() {
    #pragma omp parallel for schedule(static)
    for (i64 y = 0; y < h; y++) {
        const float *r = x + y * w, *g = r + w * h, *b = g + w * h; float* q = guide[0] + y * w;
        for (i64 i = 0; i < w; i++) q[i] = r[i] * .299f + g[i] * .587f + b[i] * .114f;
        for (int k = 0; k < K; k++) {
            float level = (float)k / (K - 1), *c = copy[0] + (k * h + y) * w;
            for (i64 i = 0; i < w; i++) { float f = (q[i] - level) * (K - 1); c[i] = q[i] + f * expf(-f * f * .5f) * (1.f / (K - 1)); }
        }
    }
    for (int j = 1; j < J; j++) halve(guide[j-1], guide[j], 1, j), halve(copy[j-1], copy[j], K, j);
    for (int j = J - 1; j >= 0; j--) {
        i64 a = ws[j], b = hs[j];
        #pragma omp parallel
        {
            std::vector<float> t(a + 2), up(K * a), coarse(a);
            #pragma omp for schedule(static)
            for (i64 y = 0; y < b; y++) {
                if (j + 1 < J) {
                    for (int k = 0; k < K; k++) doubled(copy[j+1] + k * ws[j+1] * hs[j+1], ws[j+1], hs[j+1], y, a, t.data(), &up[k * a]);
                    doubled(out[j+1], ws[j+1], hs[j+1], y, a, t.data(), coarse.data());
                } else std::fill(up.begin(), up.end(), 0.f), std::fill(coarse.begin(), coarse.end(), 0.f);
                for (i64 i = 0; i < a; i++) {
                    float l = guide[j][y * a + i] * (K - 1), low = std::min(std::max(floorf(l), 0.f), K - 2.f), f = l - low; i64 k = (i64)low;
                    float c0 = copy[j][(k * b + y) * a + i] - up[k * a + i], c1 = copy[j][((k + 1) * b + y) * a + i] - up[(k + 1) * a + i];
                    out[j][y * a + i] = (1 - f) * c0 + f * c1 + coarse[i];
                }
            }
        }
    }
    #pragma omp parallel for schedule(static)
    for (i64 y = 0; y < h; y++) for (int p = 0; p < 3; p++) for (i64 i = 0; i < w; i++) {
        i64 at = y * w + i;
        o[p * w * h + at] = out[0][at] / (guide[0][at] + .01f) * (x[p * w * h + at] + .01f);
    }
}
double checksum() { return weighed(o, 3 * w * h); }
