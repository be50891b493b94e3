// Per row: the span whose source is inside, zero elsewhere; places once for the three planes.
#include "peer.h"
static i64 side;
static float *x, *o;
void setup(i64 size) { side = size, x = units(3 * side * side, 1), o = make<float>(3 * side * side); }
void run() {
    const int n = (int)side; const float c = cosf(0.5f), s = sinf(0.5f), middle = (n - 1) * .5f; const i64 plane = side * side;
    #pragma omp parallel for schedule(dynamic, 16)
    for (int y = 0; y < n; y++) {
        float yy = y - middle; float* __restrict q = o + (i64)y * n;
        auto in = [&](int i) { float xx = i - middle, sx = xx * c + yy * s + middle, sy = yy * c - xx * s + middle; return sx >= 0 && sx <= n - 1 && sy >= 0 && sy <= n - 1; };
        int a = 0, b = n; while (a < b && !in(a)) a++; while (b > a && !in(b - 1)) b--;
        for (int p = 0; p < 3; p++) { memset(q + p * plane, 0, a * 4); memset(q + p * plane + b, 0, (n - b) * 4); }
        for (int i = a; i < b; i++) {
            float xx = i - middle, sx = xx * c + yy * s + middle, sy = yy * c - xx * s + middle;
            int x0 = std::max(0, std::min((int)sx, n - 2)), y0 = std::max(0, std::min((int)sy, n - 2));
            float ax = sx - x0, ay = sy - y0; const float* t = x + (i64)y0 * n + x0;
            for (int p = 0; p < 3; p++, t += plane) {
                float u = t[0] + (t[1] - t[0]) * ax, v = t[n] + (t[n+1] - t[n]) * ax;
                q[p * plane + i] = u + (v - u) * ay;
            }
        }
    }
}
double checksum() { return weighed(o, 3 * side * side); }
