// 512 taps by the transforms of liquid-dsp, one stream in each thread.
#include "peer.h"
#include <complex>
#include <liquid/liquid.h>
#include <vector>
enum { TAPS = 512, BLOCK = 2048 };
static i64 n;
static float *x, *o, h[TAPS];
void setup(i64 size) {
    n = size, x = units(n + TAPS, 1, -0.5f, 0.5f), o = make<float>(n);
    low_pass(h, TAPS, 8000, 1000, (TAPS - 1) / 2.0);
}
void run() {
    #pragma omp parallel
    {
        // Each thread filters its part, with the block before it: outputs before `first` are not kept.
        i64 part = (n + omp_get_num_threads() - 1) / omp_get_num_threads();
        i64 first = part * omp_get_thread_num(), last = std::min(first + part, n);
        fftfilt_rrrf filter;
        #pragma omp critical
        filter = fftfilt_rrrf_create(h, TAPS, BLOCK);
        std::vector<float> in(BLOCK), out(BLOCK);
        // Output i of the job is output i + TAPS - 1 of the filter.
        for (i64 at = first + TAPS - 1 - BLOCK; at < last + TAPS - 1; at += BLOCK) {
            for (i64 i = 0; i < BLOCK; i++) in[i] = at + i >= 0 && at + i < n + TAPS ? x[at + i] : 0;
            fftfilt_rrrf_execute(filter, in.data(), out.data());
            i64 from = at - (TAPS - 1);
            for (i64 i = std::max<i64>(0, first - from); i < std::min<i64>(BLOCK, last - from); i++) o[from + i] = out[i];
        }
        #pragma omp critical
        fftfilt_rrrf_destroy(filter);
    }
}
double checksum() { return weighed(o, n); }
