// Coordinates in arrays of their own; four bodies share each load of the others.
#include "peer.h"
static i64 n;
static float *x, *y, *z, *m, *out;
void setup(i64 size) {
    n = size, x = units(n, 1), y = units(n, 2), z = units(n, 3), m = units(n, 4), out = make<float>(4 * n);
}
void run() {
    const float softening = 1e-3f;
    #pragma omp parallel for schedule(static)
    for (i64 i = 0; i < n; i += 4) {
        float ax[4] = {}, ay[4] = {}, az[4] = {};
        float x0 = x[i], x1 = x[i + 1], x2 = x[i + 2], x3 = x[i + 3];
        float y0 = y[i], y1 = y[i + 1], y2 = y[i + 2], y3 = y[i + 3];
        float z0 = z[i], z1 = z[i + 1], z2 = z[i + 2], z3 = z[i + 3];
        float a0 = 0, a1 = 0, a2 = 0, a3 = 0, b0 = 0, b1 = 0, b2 = 0, b3 = 0, c0 = 0, c1 = 0, c2 = 0, c3 = 0;
        #pragma omp simd reduction(+:a0,a1,a2,a3,b0,b1,b2,b3,c0,c1,c2,c3)
        for (i64 j = 0; j < n; j++) {
            float px = x[j], py = y[j], pz = z[j], pm = m[j];
            #define PULL(k) { \
                float dx = px - x##k, dy = py - y##k, dz = pz - z##k; \
                float v = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + softening), p = pm * v * v * v; \
                a##k += dx * p; b##k += dy * p; c##k += dz * p; }
            PULL(0) PULL(1) PULL(2) PULL(3)
        }
        ax[0] = a0, ax[1] = a1, ax[2] = a2, ax[3] = a3, ay[0] = b0, ay[1] = b1, ay[2] = b2, ay[3] = b3;
        az[0] = c0, az[1] = c1, az[2] = c2, az[3] = c3;
        for (int k = 0; k < 4; k++) out[4 * (i + k)] = ax[k], out[4 * (i + k) + 1] = ay[k], out[4 * (i + k) + 2] = az[k];
    }
}
double checksum() { return weighed(out, 4 * n); }
