// The median of 25 by 99 exchanges of whole vectors (Devillard's network).
#include "peer.h"
#include <vector>
static i64 w, h;
static float *x, *o;
void setup(i64 n) { w = n, h = n * 5 / 3, x = units(3 * w * h, 1), o = make<float>(3 * w * h); }
#define S(a, b) { float t = std::min(v##a, v##b); v##b = std::max(v##a, v##b); v##a = t; }
#define L(k) float v##k = r[k / 5][i + k % 5];
static void row(const float* const* r, float* __restrict q) {
    #pragma GCC ivdep
    for (i64 i = 0; i < w; i++) {
    L(0) L(1) L(2) L(3) L(4) L(5) L(6) L(7) L(8) L(9) L(10) L(11) L(12) L(13) L(14) L(15) L(16) L(17) L(18) L(19) L(20) L(21) L(22) L(23) L(24)
    S(0,1) S(3,4) S(2,4) S(2,3) S(6,7) S(5,7) S(5,6) S(9,10) S(8,10) S(8,9) S(12,13)
    S(11,13) S(11,12) S(15,16) S(14,16) S(14,15) S(18,19) S(17,19) S(17,18) S(21,22) S(20,22) S(20,21)
    S(23,24) S(2,5) S(3,6) S(0,6) S(0,3) S(4,7) S(1,7) S(1,4) S(11,14) S(8,14) S(8,11)
    S(12,15) S(9,15) S(9,12) S(13,16) S(10,16) S(10,13) S(20,23) S(17,23) S(17,20) S(21,24) S(18,24)
    S(18,21) S(19,22) S(8,17) S(9,18) S(0,18) S(0,9) S(10,19) S(1,19) S(1,10) S(11,20) S(2,20)
    S(2,11) S(12,21) S(3,21) S(3,12) S(13,22) S(4,22) S(4,13) S(14,23) S(5,23) S(5,14) S(15,24)
    S(6,24) S(6,15) S(7,16) S(7,19) S(13,21) S(15,23) S(7,13) S(7,15) S(1,9) S(3,11) S(5,17)
    S(11,17) S(9,17) S(4,10) S(6,12) S(7,14) S(4,6) S(4,7) S(12,14) S(10,14) S(6,7) S(10,12)
    S(6,10) S(6,17) S(12,17) S(7,17) S(7,10) S(12,18) S(7,12) S(10,18) S(12,20) S(10,20) S(10,12)
    q[i] = v12;
    }
}
void run() {
    for (i64 p = 0; p < 3; p++) {
        #pragma omp parallel
        {
            i64 pitch = w + 64; std::vector<float> rows(5 * pitch);
            #pragma omp for schedule(static)
            for (i64 y = 0; y < h; y++) {
                const float* r[5];
                for (i64 j = 0; j < 5; j++) {
                    const float* s = x + p * w * h + std::min(std::max(y + j - 2, (i64)0), h - 1) * w; float* q = &rows[j * pitch];
                    memcpy(q + 2, s, w * 4); q[0] = q[1] = s[0], q[w + 2] = q[w + 3] = s[w - 1], r[j] = q;
                }
                row(r, o + p * w * h + y * w);
            }
        }
    }
}
double checksum() { return weighed(o, 3 * w * h); }
