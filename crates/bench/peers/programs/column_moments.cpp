#include "peer.h"
static i64 n;
static float *x, mean[31], variance[31], most[31];
void setup(i64 size) { n = size, x = units(n * 31, 19); }
void run() {
    float sum[31] = {}, high[31] = {}, squares[31] = {};
    #pragma omp parallel for schedule(static) reduction(+:sum) reduction(max:high)
    for (i64 i = 0; i < n; i++) for (int j = 0; j < 31; j++) sum[j] += x[i * 31 + j], high[j] = std::max(high[j], x[i * 31 + j]);
    for (int j = 0; j < 31; j++) mean[j] = sum[j] / n, most[j] = high[j];
    #pragma omp parallel for schedule(static) reduction(+:squares)
    for (i64 i = 0; i < n; i++) for (int j = 0; j < 31; j++) squares[j] += (x[i * 31 + j] - mean[j]) * (x[i * 31 + j] - mean[j]);
    for (int j = 0; j < 31; j++) variance[j] = squares[j] / n;
}
double checksum() { return weighed(variance, 31) + weighed(mean, 31) + weighed(most, 31); }
