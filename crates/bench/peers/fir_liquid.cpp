// 64 taps by liquid-dsp, one stream in each thread.
#include "peer.h"
#include <complex>
#include <liquid/liquid.h>
enum { TAPS = 64 };
static i64 n;
static float *x, *o, h[TAPS];
void setup(i64 size) {
    n = size, x = units(n + TAPS, 1, -0.5f, 0.5f), o = make<float>(n);
    low_pass(h, TAPS, 8000, 1000, (TAPS - 1) / 2.0);
}
void run() {
    #pragma omp parallel
    {
        // Each thread filters its part, with the 63 samples before it.
        i64 part = (n + omp_get_num_threads() - 1) / omp_get_num_threads();
        i64 first = part * omp_get_thread_num(), last = std::min(first + part, n);
        firfilt_rrrf filter = firfilt_rrrf_create(h, TAPS);
        for (i64 i = first; i < std::min<i64>(first + TAPS - 1, last + TAPS - 1); i++) firfilt_rrrf_push(filter, x[i]);
        if (first < last) firfilt_rrrf_execute_block(filter, x + first + TAPS - 1, (unsigned)(last - first), o + first);
        firfilt_rrrf_destroy(filter);
    }
}
double checksum() { return weighed(o, n); }
