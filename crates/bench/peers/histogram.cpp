// Eight tables per thread, so that equal neighbours do not wait for each other.
#include "peer.h"
static i64 n;
static uint8_t* x;
static i64 out[256];
void setup(i64 size) { n = size, x = filled<uint8_t>(n, [](i64 i) { return (uint8_t)(hashed((uint32_t)i, 1) >> 24); }); }
void run() {
    memset(out, 0, 256 * 8);
    #pragma omp parallel
    {
        static thread_local uint32_t H[8][256]; memset(H, 0, sizeof H);
        #pragma omp for schedule(static)
        for (i64 b = 0; b < n / 8; b++) {
            uint64_t v; memcpy(&v, x + 8 * b, 8);
            H[0][v & 255]++; H[1][(v >> 8) & 255]++; H[2][(v >> 16) & 255]++; H[3][(v >> 24) & 255]++;
            H[4][(v >> 32) & 255]++; H[5][(v >> 40) & 255]++; H[6][(v >> 48) & 255]++; H[7][v >> 56]++;
        }
        #pragma omp critical
        for (int k = 0; k < 256; k++) { i64 s = 0; for (int j = 0; j < 8; j++) s += H[j][k]; out[k] += s; }
    }
    for (i64 i = n / 8 * 8; i < n; i++) out[x[i]]++;
}
double checksum() { return weighed(out, 256); }
