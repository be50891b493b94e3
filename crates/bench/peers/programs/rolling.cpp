#include "peer.h"
static i64 n;
static double* x;
static float* y;
void setup(i64 size) { n = size, x = filled<double>(n, [](i64 i) { return (double)(-1.0f + 2.0f * unit((uint32_t)i, 27)); }), y = make<float>(n); }
void run() {
    #pragma omp parallel
    {
        i64 threads = omp_get_num_threads(), me = omp_get_thread_num(), from = n * me / threads, to = n * (me + 1) / threads;
        double sum = 0, squares = 0;
        for (i64 i = std::max<i64>(from - 64, 0); i < from; i++) sum += x[i], squares += x[i] * x[i];
        for (i64 i = from; i < to; i++) {
            double old = i >= 64 ? x[i - 64] : 0;
            sum += x[i] - old, squares += x[i] * x[i] - old * old;
            y[i] = (float)(squares / 64 - sum / 64 * (sum / 64));
        }
    }
}
double checksum() { return weighed(y, n); }
