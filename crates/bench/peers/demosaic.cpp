// Malvar, He and Cutler on a mosaic of red, green, green and blue. Rows are copied to where their mirrored ends have room.
#include "peer.h"
#include <vector>
static i64 n;
static float *x, *o;
void setup(i64 size) { n = size, x = units(n * n, 1), o = make<float>(3 * n * n); }
void run() {
    const i64 h = n, w = n;
    float *R = o, *G = o + h * w, *B = o + 2 * h * w;
    #pragma omp parallel
    {
        std::vector<float> buf(5 * (w + 4));
        #pragma omp for schedule(static)
        for (i64 y = 0; y < h; y++) {
            float* p[5];
            for (int j = 0; j < 5; j++) {
                i64 s = y + j - 2; if (s < 0) s = -s; if (s >= h) s = 2 * h - 2 - s;
                p[j] = buf.data() + j * (w + 4) + 2; const float* q = x + s * w;
                memcpy(p[j], q, w * 4);
                p[j][-1] = q[1]; p[j][-2] = q[2]; p[j][w] = q[w-2]; p[j][w+1] = q[w-3];
            }
            const float *a = p[0], *b = p[1], *c = p[2], *d = p[3], *e = p[4];
            float *__restrict ro = R + y * w, *__restrict go = G + y * w, *__restrict bo = B + y * w;
            // The colour of the row itself, red or blue, and the other one.
            float *__restrict same = (y & 1) ? bo : ro, *__restrict other = (y & 1) ? ro : bo;
            int colour = y & 1;
            #pragma omp simd
            for (int i = 0; i < (int)w; i++) {
                float C = c[i], n2 = b[i] + d[i], e2 = c[i-1] + c[i+1], dg = b[i-1] + b[i+1] + d[i-1] + d[i+1];
                float vv = a[i] + e[i], hh = c[i-2] + c[i+2];
                float g = (4 * C + 2 * (n2 + e2) - vv - hh) * .125f;
                float hor = (5 * C + 4 * e2 - dg - hh + .5f * vv) * .125f;
                float ver = (5 * C + 4 * n2 - dg - vv + .5f * hh) * .125f;
                float opp = (6 * C + 2 * dg - 1.5f * (vv + hh)) * .125f;
                bool col = (i & 1) == colour;
                same[i] = col ? C : hor; go[i] = col ? g : C; other[i] = col ? opp : ver;
            }
        }
    }
}
double checksum() { return weighed(o, 3 * n * n); }
