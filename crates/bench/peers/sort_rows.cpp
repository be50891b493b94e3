// Each thread sorts rows, one after the other.
#include "peer.h"
#include <algorithm>
enum { LENGTH = 100 };
static i64 n;
static float *x, *y;
void setup(i64 rows) {
    n = rows * LENGTH, x = units(n, 1), y = make<float>(n);
}
void run() {
    #pragma omp parallel for schedule(static)
    for (i64 row = 0; row < n; row += LENGTH) {
        std::copy(x + row, x + row + LENGTH, y + row);
        std::sort(y + row, y + row + LENGTH);
    }
}
double checksum() { return weighed(y, n); }
