// Not a peer but the limit of the CPU's arithmetic: a repetition is 1,000,000 rounds on every thread, each of which multiplies and
// adds 12 vectors of 64 bytes: 384 operations on floats. The size is not used; the checksum is how many threads there are.
#include "peer.h"
typedef float vector __attribute__((vector_size(64)));
static float out[1024];
void setup(i64) {}
void run() {
    #pragma omp parallel
    {
        vector a[12], x = {}, y = {};
        float f = 0.999f - (float)omp_get_thread_num() * 1e-6f;
        for (int k = 0; k < 16; k++) x[k] = f, y[k] = 1e-3f;
        for (int k = 0; k < 12; k++) a[k] = x * (float)k;
        for (i64 i = 0; i < 1000000; i++) {
            #pragma GCC unroll 12
            for (int k = 0; k < 12; k++) a[k] = a[k] * x + y;
            // The compiler must believe that every round counts.
            #pragma GCC unroll 12
            for (int k = 0; k < 12; k++) asm volatile("" : "+x"(a[k]));
        }
        vector s = {};
        for (int k = 0; k < 12; k++) s += a[k];
        out[omp_get_thread_num() % 1024] = s[0];
    }
}
double checksum() { return omp_get_max_threads(); }
