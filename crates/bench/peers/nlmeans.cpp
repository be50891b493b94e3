// For each row and offset: squared differences of three rows are summed down into a line, then along, and weighed.
#include "peer.h"
#include <vector>
enum { FAR = 3, NEAR = 1, PAD = FAR + NEAR };
static i64 w, h, pitch;
static float *x, *o, *padded;
void setup(i64 n) {
    w = n, h = n * 5 / 3, pitch = w + 2 * PAD + 16;
    x = units(3 * w * h, 1), o = make<float>(3 * w * h), padded = make<float>((h + 2 * PAD) * pitch);
}
static inline i64 mirrored(i64 i, i64 n) { if (i < 0) i = -i; if (i >= n) i = 2 * n - 2 - i; return i; }
// exp of a negative number: a polynomial of the fraction, the exponent by its bits.
static inline float power(float v) {
    v = std::max(v, -87.f) * 1.44269504f; float k = floorf(v), f = v - k;
    float p = 1.f + f * (0.693147182f + f * (0.240226463f + f * (0.0555032850f + f * (0.00961801270f + f * (0.00134046073f + f * 0.000154720020f)))));
    int32_t e = ((int32_t)k + 127) << 23; float s; memcpy(&s, &e, 4);
    return p * s;
}
void run() {
    const float scale = 1.f / (0.1f * 0.1f) / 9.f;
    for (i64 p = 0; p < 3; p++) {
        const float* in = x + p * w * h; float* out = o + p * w * h;
        #pragma omp parallel
        {
            #pragma omp for schedule(static)
            for (i64 y = 0; y < h + 2 * PAD; y++) {
                const float* s = in + mirrored(y - PAD, h) * w; float* q = padded + y * pitch;
                memcpy(q + PAD, s, w * 4);
                for (i64 i = 0; i < PAD; i++) q[i] = s[mirrored(i - PAD, w)], q[PAD + w + i] = s[mirrored(w + i, w)];
            }
            std::vector<float> line(w + 32), total(w), weights(w);
            #pragma omp for schedule(static)
            for (i64 y = 0; y < h; y++) {
                float *__restrict d = line.data(), *__restrict sum = total.data(), *__restrict all = weights.data();
                for (i64 i = 0; i < w; i++) sum[i] = all[i] = 0;
                for (i64 dy = -FAR; dy <= FAR; dy++) for (i64 dx = -FAR; dx <= FAR; dx++) {
                    const float* a = padded + (y + PAD - 1) * pitch + PAD - 1; const float* b = a + dy * pitch + dx;
                    for (i64 i = 0; i < w + 2; i++) {
                        float u = a[i] - b[i], v = a[i + pitch] - b[i + pitch], t = a[i + 2 * pitch] - b[i + 2 * pitch];
                        d[i] = u * u + v * v + t * t;
                    }
                    const float* c = b + pitch + 1;
                    for (i64 i = 0; i < w; i++) { float g = power(-(d[i] + d[i+1] + d[i+2]) * scale); sum[i] += g * c[i]; all[i] += g; }
                }
                for (i64 i = 0; i < w; i++) out[y * w + i] = sum[i] / all[i];
            }
        }
    }
}
double checksum() { return weighed(o, 3 * w * h); }
