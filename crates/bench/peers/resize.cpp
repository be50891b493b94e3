// Bicubic, half as large again: four rows are weighed down into a line, then four places of it along.
#include "peer.h"
#include <vector>
static i64 w, h, nw, nh;
static float *x, *o;
static std::vector<i64> ix, iy;
static std::vector<float> wx, wy;
static double cubic(double t) {
    t = fabs(t);
    return t < 1 ? (1.5 * t - 2.5) * t * t + 1 : t < 2 ? (((t - 5) * t + 8) * t - 4) * -0.5 : 0;
}
static void weights(i64 old, i64 size, std::vector<i64>& at, std::vector<float>& of) {
    for (i64 i = 0; i < size; i++) {
        double centre = (i + 0.5) * old / size - 0.5; i64 first = (i64)floor(centre) - 1;
        for (i64 k = 0; k < 4; k++) at.push_back(std::min(std::max(first + k, (i64)0), old - 1)), of.push_back((float)cubic(first + k - centre));
    }
}
void setup(i64 n) {
    w = n, h = n * 5 / 3, nw = w * 3 / 2, nh = h * 3 / 2, x = units(3 * w * h, 1), o = make<float>(3 * nw * nh);
    weights(w, nw, ix, wx), weights(h, nh, iy, wy);
}
void run() {
    for (i64 p = 0; p < 3; p++) {
        const float* in = x + p * w * h;
        #pragma omp parallel
        {
            std::vector<float> line(w);
            #pragma omp for schedule(static)
            for (i64 y = 0; y < nh; y++) {
                const float *a = in + iy[4*y] * w, *b = in + iy[4*y+1] * w, *c = in + iy[4*y+2] * w, *d = in + iy[4*y+3] * w;
                const float* g = &wy[4*y]; float* __restrict v = line.data(); float* __restrict q = o + p * nw * nh + y * nw;
                for (i64 i = 0; i < w; i++) v[i] = a[i] * g[0] + b[i] * g[1] + c[i] * g[2] + d[i] * g[3];
                for (i64 i = 0; i < nw; i++) {
                    const i64* k = &ix[4*i]; const float* f = &wx[4*i];
                    q[i] = v[k[0]] * f[0] + v[k[1]] * f[1] + v[k[2]] * f[2] + v[k[3]] * f[3];
                }
            }
        }
    }
}
double checksum() { return weighed(o, 3 * nw * nh); }
