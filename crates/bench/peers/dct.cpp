// Columns of 64 points at a time in plain loops, then rows of 8 by vectors of 8.
#include "peer.h"
typedef float v8 __attribute__((vector_size(32)));
static i64 side;
static float *x, *o, D[8][8];
void setup(i64 n) {
    side = n, x = units(n * n, 1, -0.5f, 0.5f), o = make<float>(n * n);
    for (int k = 0; k < 8; k++) for (int i = 0; i < 8; i++) D[k][i] = (k ? 0.5 : sqrt(0.125)) * cos(M_PI * (2 * i + 1) * k / 16);
}
void run() {
    v8 M[8];
    for (int i = 0; i < 8; i++) for (int k = 0; k < 8; k++) M[i][k] = D[k][i];
    #pragma omp parallel for schedule(static)
    for (i64 y = 0; y < side; y += 8) {
        alignas(64) float t[8][64];
        for (i64 left = 0; left < side; left += 64) {
            int width = (int)std::min<i64>(64, side - left);
            const float* s = x + y * side + left;
            for (int k = 0; k < 8; k++) for (int i = 0; i < width; i++) {
                float a = 0;
                for (int r = 0; r < 8; r++) a += D[k][r] * s[r * side + i];
                t[k][i] = a;
            }
            for (int k = 0; k < 8; k++) for (int b = 0; b < width; b += 8) {
                v8 a = M[0] * t[k][b];
                for (int r = 1; r < 8; r++) a += M[r] * t[k][b + r];
                memcpy(o + (y + k) * side + left + b, &a, sizeof a);
            }
        }
    }
}
double checksum() { return weighed(o, side * side); }
