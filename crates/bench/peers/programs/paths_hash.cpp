#include "peer.h"
static i64 n;
static float out;
void setup(i64 size) { n = size; }
static inline uint32_t mixed(uint32_t h) {
    h = (h ^ (h >> 16)) * 0x7feb352du, h = (h ^ (h >> 15)) * 0x846ca68bu;
    return h ^ (h >> 16);
}
void run() {
    const float years = 1.0f / 8, deviation = 0.2f * sqrtf(years), drift = (0.03f - 0.5f * 0.2f * 0.2f) * years;
    double all = 0;
    #pragma omp parallel for simd reduction(+:all) schedule(static)
    for (i64 i = 0; i < n; i++) {
        float level = 0, sum = 0;
        for (uint32_t s = 0; s < 8; s++) {
            uint32_t first = (uint32_t)i * 16 + 2 * s + 0x9e3779b9u;
            float a = (float)(int)(mixed(first) >> 8) * (1.0f / 16777216.0f) + 2.9802322e-8f;
            float b = (float)(int)(mixed(first + 1) >> 8) * (1.0f / 16777216.0f);
            level += sqrtf(logf(a) * -2.0f) * cosf(b * 6.2831853f) * deviation + drift;
            sum += expf(level) * 100.0f;
        }
        all += std::max(sum / 8 - 100.0f, 0.0f);
    }
    out = (float)(all / n) * expf(-0.03f);
}
double checksum() { return weighed(&out, 1); }
