#include "peer.h"
#include <vector>
static i64 n;
static float *x, *o;
void setup(i64 size) {
    n = size, o = make<float>(n * n);
    x = filled<float>(n * n, [](i64 i) { return unit((uint32_t)i, 1) < 0.35f ? 1.0f : 0.0f; });
}
void run() {
    #pragma omp parallel
    {
        std::vector<float> t(n + 2);
        #pragma omp for schedule(static)
        for (i64 y = 0; y < n; y++) {
            const float *u = x + (y ? y - 1 : n - 1) * n, *c = x + y * n, *d = x + (y + 1 < n ? y + 1 : 0) * n;
            float* __restrict r = t.data() + 1; float* __restrict q = o + y * n;
            for (i64 i = 0; i < n; i++) r[i] = u[i] + c[i] + d[i];
            r[-1] = r[n - 1]; r[n] = r[0];
            for (i64 i = 0; i < n; i++) {
                float s = r[i-1] + r[i] + r[i+1];
                q[i] = s == 3.f ? 1.f : s == 4.f ? c[i] : 0.f;
            }
        }
    }
}
double checksum() { return weighed(o, n * n); }
