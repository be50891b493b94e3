// Rows of each stage in rings: balance, demosaic, matrix and curve, then the mask of the sharpening, for a strip of rows each.
#include "peer.h"
#include <vector>
static i64 w, h;
static float *x, *o;
void setup(i64 n) { w = n, h = n * 5 / 3, x = units(w * h, 1), o = make<float>(3 * w * h); }
static inline i64 mirrored(i64 i, i64 n) { if (i < 0) i = -i; if (i >= n) i = 2 * n - 2 - i; return i; }
static const float M[9] = {1.2f, -.1f, -.1f, -.1f, 1.2f, -.1f, -.1f, -.1f, 1.2f};
enum { ROWS = 32, PAD = 4 };
void run() {
    const float b = 2.f - exp2f(.25f), a = 2.f - 2.f * b, gamma = 1.f / 2.2f;
    #pragma omp parallel
    {
        i64 pitch = w + 2 * PAD + 8;
        std::vector<float> balanced((ROWS + 6) * pitch), done(3 * (ROWS + 2) * pitch), soft(pitch);
        #pragma omp for schedule(static)
        for (i64 y0 = 0; y0 < h; y0 += ROWS) {
            i64 y1 = std::min(h, y0 + ROWS);
            // Rows y0 - 3 to y1 + 3, mirrored as the stage before is.
            for (i64 y = y0 - 3; y < y1 + 3; y++) {
                i64 m = mirrored(y, h); float* __restrict q = &balanced[(y - y0 + 3) * pitch + PAD];
                const float *s = x + m * w, *u = x + mirrored(m - 2, h) * w, *d = x + mirrored(m + 2, h) * w;
                auto one = [&](i64 i, i64 l, i64 r) {
                    float most = std::max(std::max(s[l], s[r]), std::max(u[i], d[i]));
                    float gain = !(m & 1) && !(i & 1) ? 1.5f : (m & 1) && (i & 1) ? 1.25f : 1.f;
                    q[i] = std::min(s[i], most) * gain;
                };
                for (i64 i = 2; i < w - 2; i++) one(i, i - 2, i + 2);
                for (i64 i : {(i64)0, (i64)1, w - 2, w - 1}) one(i, mirrored(i - 2, w), mirrored(i + 2, w));
                for (i64 i = 1; i <= PAD; i++) q[-i] = q[mirrored(-i, w)], q[w - 1 + i] = q[mirrored(w - 1 + i, w)];
            }
            for (i64 y = y0 - 1; y < y1 + 1; y++) {
                if (y < 0 || y >= h) continue;
                // Rows outside of the image follow the rule of the balanced image.
                const float* r[5]; for (i64 j = 0; j < 5; j++) r[j] = &balanced[(y - y0 + 3 + j - 2) * pitch + PAD];
                for (int odd = 0; odd < 2; odd++) for (i64 i = odd; i < w; i += 2) {
                    float c = r[2][i], hor = r[2][i-1] + r[2][i+1], ver = r[1][i] + r[3][i];
                    float dia = r[1][i-1] + r[1][i+1] + r[3][i-1] + r[3][i+1], fh = r[2][i-2] + r[2][i+2], fv = r[0][i] + r[4][i];
                    float g = (c * 4 + (hor + ver) * 2 - fh - fv) * .125f, ar = (c * 5 + hor * 4 - dia - fh + fv * .5f) * .125f;
                    float ac = (c * 5 + ver * 4 - dia - fv + fh * .5f) * .125f, op = (c * 6 + dia * 2 - (fh + fv) * 1.5f) * .125f;
                    bool row = !(y & 1), col = !odd;
                    float red = row ? (col ? c : ar) : (col ? ac : op), blue = row ? (col ? op : ac) : (col ? ar : c), green = row == col ? g : c;
                    for (int k = 0; k < 3; k++) {
                        float v = M[3*k] * red + M[3*k+1] * green + M[3*k+2] * blue;
                        done[(k * (ROWS + 2) + y - y0 + 1) * pitch + PAD + i] = std::min(std::max(v, 0.f), 1.f);
                    }
                }
                for (int k = 0; k < 3; k++) {
                    float* __restrict q = &done[(k * (ROWS + 2) + y - y0 + 1) * pitch + PAD];
                    for (i64 i = 0; i < w; i++) {
                        float v = powf(q[i], gamma), rest = 1 - v;
                        q[i] = v > .5f ? 1 - a * rest * rest - b * rest : a * v * v + b * v;
                    }
                }
            }
            for (int k = 0; k < 3; k++) for (i64 y = y0; y < y1; y++) {
                const float* r[3];
                for (i64 j = 0; j < 3; j++) r[j] = &done[(k * (ROWS + 2) + mirrored(y + j - 1, h) - y0 + 1) * pitch + PAD];
                float* __restrict v = soft.data() + PAD; float* __restrict q = o + (k * h + y) * w;
                for (i64 i = 0; i < w; i++) v[i] = r[0][i] * .25f + r[1][i] * .5f + r[2][i] * .25f;
                v[-1] = v[mirrored(-1, w)], v[w] = v[mirrored(w, w)];
                for (i64 i = 0; i < w; i++) { float s = r[1][i]; q[i] = s + .5f * (s - (v[i-1] * .25f + v[i] * .5f + v[i+1] * .25f)); }
            }
        }
    }
}
double checksum() { return weighed(o, 3 * w * h); }
