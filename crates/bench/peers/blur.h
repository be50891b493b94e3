// A separable blur by its taps, with mirrored edges: columns are summed into one row, which is then summed along.
#include "peer.h"
#include <vector>
static std::vector<float> bell(double sigma) {
    int r = (int)ceil(4.3 * sigma); std::vector<double> e; double sum = 0;
    for (int d = 0; d <= r; d++) e.push_back(exp(-0.5 * d * d / (sigma * sigma))), sum += (d ? 2 : 1) * e[d];
    std::vector<float> taps; for (double v : e) taps.push_back((float)(v / sum));
    return taps;
}
static inline i64 mirrored(i64 i, i64 n) {
    if (n == 1) return 0;
    for (;;) { if (i < 0) i = -i; else if (i >= n) i = 2 * n - 2 - i; else return i; }
}
template <class F> static void blur(const float* in, i64 w, i64 h, const std::vector<float>& taps, F put) {
    int r = (int)taps.size() - 1;
    enum { V = 64 };
    #pragma omp parallel
    {
        std::vector<float> line(w + 2 * r + V);
        #pragma omp for schedule(static)
        for (i64 y = 0; y < h; y++) {
            float* __restrict v = line.data() + r; const float* row[256];
            for (int d = -r; d <= r; d++) row[d + r] = in + mirrored(y + d, h) * w;
            for (i64 i = 0; i < w; i += V) {
                float sum[V]; i64 m = std::min((i64)V, w - i);
                if (m == V) {
                    for (int e = 0; e < V; e++) sum[e] = row[r][i + e] * taps[0];
                    for (int d = 1; d <= r; d++) { float g = taps[d]; const float *p = row[r - d] + i, *q = row[r + d] + i; for (int e = 0; e < V; e++) sum[e] += (p[e] + q[e]) * g; }
                    for (int e = 0; e < V; e++) v[i + e] = sum[e];
                } else for (i64 e = 0; e < m; e++) { float s = row[r][i + e] * taps[0]; for (int d = 1; d <= r; d++) s += (row[r - d][i + e] + row[r + d][i + e]) * taps[d]; v[i + e] = s; }
            }
            for (int d = 1; d <= r; d++) v[-d] = v[mirrored(-d, w)], v[w - 1 + d] = v[mirrored(w - 1 + d, w)];
            for (i64 i = 0; i < w; i += V) {
                float sum[V]; i64 m = std::min((i64)V, w - i);
                for (int e = 0; e < V; e++) sum[e] = v[i + e] * taps[0];
                for (int d = 1; d <= r; d++) { float g = taps[d]; const float *p = v + i - d, *q = v + i + d; for (int e = 0; e < V; e++) sum[e] += (p[e] + q[e]) * g; }
                for (i64 e = 0; e < m; e++) put(y, i + e, sum[e]);
            }
        }
    }
}
