// Stockham's transform by radix 4 in five passes, 16 transforms at a time, one in each lane.
#include "peer.h"
enum { N = 1024, L = 16 };
typedef float v16 __attribute__((vector_size(64)));
static i64 batch;
static float *in, *out, wr[N], wi[N];
void setup(i64 points) {
    batch = std::max<i64>(points / N, 1), in = units(2 * batch * N, 1, -0.5f, 0.5f), out = make<float>(2 * batch * N);
    for (int i = 0; i < N; i++) wr[i] = cos(-2 * M_PI * i / N), wi[i] = sin(-2 * M_PI * i / N);
}
// Turns a block of 16 rows with 16 columns around its diagonal.
static inline void turn(v16* r) {
    typedef int i16 __attribute__((vector_size(64)));
    v16 t[16];
    for (int i = 0; i < 8; i++) {
        t[2*i] = __builtin_shuffle(r[i], r[i + 8], (i16){0,16,1,17,2,18,3,19,4,20,5,21,6,22,7,23});
        t[2*i+1] = __builtin_shuffle(r[i], r[i + 8], (i16){8,24,9,25,10,26,11,27,12,28,13,29,14,30,15,31});
    }
    memcpy(r, t, sizeof t);
}
static inline void turned(v16* r) { turn(r), turn(r), turn(r), turn(r); }
void run() {
    #pragma omp parallel
    {
        v16* buffer = (v16*)aligned_alloc(64, 4 * N * sizeof(v16));
        #pragma omp for schedule(dynamic, 1)
        for (i64 b = 0; b < batch; b += L) {
            v16 *xr = buffer, *xi = buffer + N, *yr = buffer + 2 * N, *yi = buffer + 3 * N;
            int lanes = (int)std::min<i64>(L, batch - b);
            v16 r[L];
            for (int i = 0; i < N; i += 8) {
                for (int l = 0; l < L; l++) memcpy(&r[l], in + 2 * ((b + std::min(l, lanes - 1)) * N + i), sizeof r[l]);
                turned(r);
                for (int k = 0; k < 8; k++) xr[i + k] = r[2 * k], xi[i + k] = r[2 * k + 1];
            }
            for (int n = N, s = 1; n > 1; n /= 4, s *= 4) {
                int m = n / 4;
                for (int p = 0; p < m; p++) {
                    float w1r = wr[p*s], w1i = wi[p*s], w2r = wr[2*p*s], w2i = wi[2*p*s], w3r = wr[3*p*s], w3i = wi[3*p*s];
                    for (int q = 0; q < s; q++) {
                        int i0 = q + s*p, i1 = i0 + s*m, i2 = i1 + s*m, i3 = i2 + s*m, o = q + s*4*p;
                        v16 apr = xr[i0] + xr[i2], api = xi[i0] + xi[i2], amr = xr[i0] - xr[i2], ami = xi[i0] - xi[i2];
                        v16 bpr = xr[i1] + xr[i3], bpi = xi[i1] + xi[i3], bmr = xr[i1] - xr[i3], bmi = xi[i1] - xi[i3];
                        yr[o] = apr + bpr, yi[o] = api + bpi;
                        v16 t1r = amr + bmi, t1i = ami - bmr, t2r = apr - bpr, t2i = api - bpi, t3r = amr - bmi, t3i = ami + bmr;
                        yr[o+s] = t1r*w1r - t1i*w1i, yi[o+s] = t1r*w1i + t1i*w1r;
                        yr[o+2*s] = t2r*w2r - t2i*w2i, yi[o+2*s] = t2r*w2i + t2i*w2r;
                        yr[o+3*s] = t3r*w3r - t3i*w3i, yi[o+3*s] = t3r*w3i + t3i*w3r;
                    }
                }
                std::swap(xr, yr), std::swap(xi, yi);
            }
            for (int i = 0; i < N; i += 8) {
                for (int k = 0; k < 8; k++) r[2 * k] = xr[i + k], r[2 * k + 1] = xi[i + k];
                turned(r);
                for (int l = 0; l < lanes; l++) memcpy(out + 2 * ((b + l) * N + i), &r[l], sizeof r[l]);
            }
        }
        free(buffer);
    }
}
double checksum() { return weighed(out, 2 * batch * N); }
