#include "peer.h"
#include <parallel/algorithm>
static i64 n;
static float *x, *y;
void setup(i64 size) { n = size, x = units(n, 16), y = make<float>(n); }
void run() {
    memcpy(y, x, n * 4);
    __gnu_parallel::sort(y, y + n);
}
double checksum() { return weighed(y, n); }
