// Quicksort into three parts, as the NESL program does it: both sides are tasks. Short parts are sorted in one thread.
#include "peer.h"
static i64 n;
static float *input, *out;
void setup(i64 size) { n = size, input = units(n, 21), out = make<float>(n); }
static void quicksort(float* p, i64 count) {
    if (count < 2) return;
    if (count < 4096) { std::sort(p, p + count); return; }
    float pivot = p[count / 2];
    float* same = std::partition(p, p + count, [=](float e) { return e < pivot; });
    float* more = std::partition(same, p + count, [=](float e) { return !(pivot < e); });
    #pragma omp task
    quicksort(p, same - p);
    quicksort(more, p + count - more);
}
void run() {
    #pragma omp parallel
    {
        #pragma omp for schedule(static)
        for (i64 i = 0; i < n; i++) out[i] = input[i];
        #pragma omp single
        quicksort(out, n);
    }
}
double checksum() { return weighed(out, n); }
