// Each thread keeps a heap of its part.
#include "peer.h"
#include <functional>
#include <vector>
static i64 n;
static float *x, out[100];
void setup(i64 size) { n = size, x = units(n, 16); }
void run() {
    std::vector<float> all;
    #pragma omp parallel
    {
        std::vector<float> own;
        #pragma omp for schedule(static)
        for (i64 i = 0; i < n; i++) {
            if (own.size() < 100) own.push_back(x[i]), std::push_heap(own.begin(), own.end(), std::greater<>());
            else if (x[i] > own[0]) {
                std::pop_heap(own.begin(), own.end(), std::greater<>());
                own.back() = x[i];
                std::push_heap(own.begin(), own.end(), std::greater<>());
            }
        }
        #pragma omp critical
        all.insert(all.end(), own.begin(), own.end());
    }
    std::sort(all.begin(), all.end(), std::greater<>());
    std::copy(all.begin(), all.begin() + 100, out);
}
double checksum() { return weighed(out, 100); }
