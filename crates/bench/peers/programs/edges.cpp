// Bands of rows, with their blurred rows in a buffer of the thread.
#include "peer.h"
static i64 n;
static uint8_t *image, *out;
static uint32_t counts[256];
static const float W[5] = {0.0625f, 0.25f, 0.375f, 0.25f, 0.0625f};
void setup(i64 size) {
    n = size, out = make<uint8_t>(n * n);
    image = filled<uint8_t>(n * n, [](i64 k) { return (uint8_t)(k / n / 7 * 13 + k % n / 11 * 29 + hashed((uint32_t)k, 4) % 20); });
}
static i64 clamped(i64 i) { return std::min(std::max<i64>(i, 0), n - 1); }
void run() {
    memset(counts, 0, sizeof counts);
    const i64 band = 32;
    #pragma omp parallel reduction(+:counts)
    {
        std::string memory((size_t)(2 * (band + 6) * (n + 4) * 4), 0);
        float *along = (float*)memory.data(), *both = along + (band + 6) * (n + 4);
        #pragma omp for schedule(static)
        for (i64 top = 0; top < n; top += band) {
            i64 end = std::min(top + band, n);
            for (i64 i = top - 3; i < end + 3; i++) {
                const uint8_t* from = image + clamped(i) * n;
                float* to = along + (i - top + 3) * (n + 4) + 2;
                for (i64 j = 0; j < std::min<i64>(2, n); j++) { to[j] = 0; for (int k = 0; k < 5; k++) to[j] += from[clamped(j + k - 2)] * W[k]; }
                for (i64 j = 2; j < n - 2; j++) to[j] = from[j-2] * W[0] + from[j-1] * W[1] + from[j] * W[2] + from[j+1] * W[3] + from[j+2] * W[4];
                for (i64 j = std::max<i64>(n - 2, 2); j < n; j++) { to[j] = 0; for (int k = 0; k < 5; k++) to[j] += from[clamped(j + k - 2)] * W[k]; }
            }
            for (i64 i = top - 1; i < end + 1; i++) {
                // Rows beyond the edge repeat the blurred row at the edge.
                i64 at = clamped(i);
                const float* row[5];
                for (int k = 0; k < 5; k++) row[k] = along + (clamped(at + k - 2) - top + 3) * (n + 4) + 2;
                float* to = both + (i - top + 1) * (n + 4) + 2;
                for (i64 j = 0; j < n; j++) to[j] = row[0][j] * W[0] + row[1][j] * W[1] + row[2][j] * W[2] + row[3][j] * W[3] + row[4][j] * W[4];
                to[-1] = to[0], to[n] = to[n - 1];
            }
            for (i64 i = top; i < end; i++) {
                const float *u = both + (i - top) * (n + 4) + 2, *o = u + n + 4, *d = o + n + 4;
                for (i64 j = 0; j < n; j++) {
                    float gx = u[j+1] - u[j-1] + (o[j+1] - o[j-1]) * 2.0f + d[j+1] - d[j-1];
                    float gy = d[j-1] - u[j-1] + (d[j] - u[j]) * 2.0f + d[j+1] - u[j+1];
                    out[i * n + j] = (uint8_t)std::min(sqrtf(gx * gx + gy * gy), 255.0f);
                }
                for (i64 j = 0; j < n; j++) counts[out[i * n + j]]++;
            }
        }
    }
}
double checksum() { return weighed(counts, 256); }
