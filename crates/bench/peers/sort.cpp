// A radix sort of three passes over eleven bits; each thread counts and scatters its part.
#include "peer.h"
#include <vector>
enum { DIGITS = 2048 };
static i64 n;
static int32_t *x, *y, *other;
static std::vector<i64> counts;
void setup(i64 size) {
    n = size, y = make<int32_t>(n), other = make<int32_t>(n);
    x = filled<int32_t>(n, [](i64 i) { return (int32_t)hashed((uint32_t)i, 1); });
    counts.resize((size_t)omp_get_max_threads() * DIGITS);
}
void run() {
    #pragma omp parallel
    {
        int threads = omp_get_num_threads(), me = omp_get_thread_num();
        i64 a = n * me / threads, b = n * (me + 1) / threads;
        i64* own = &counts[(size_t)me * DIGITS];
        for (int pass = 0; pass < 3; pass++) {
            // The sign stands in the last digit, upside down.
            int shift = 11 * pass;
            uint32_t mask = pass == 2 ? 1023 : 2047, flip = pass == 2 ? 512 : 0;
            const uint32_t* from = (const uint32_t*)(pass == 0 ? x : pass == 1 ? y : other);
            uint32_t* to = (uint32_t*)(pass == 1 ? other : y);
            std::fill(own, own + DIGITS, 0);
            for (i64 i = a; i < b; i++) own[((from[i] >> shift) & mask) ^ flip]++;
            #pragma omp barrier
            #pragma omp single
            {
                i64 sum = 0;
                for (int digit = 0; digit < DIGITS; digit++)
                    for (int t = 0; t < threads; t++) {
                        i64& count = counts[(size_t)t * DIGITS + digit];
                        i64 before = sum;
                        sum += count, count = before;
                    }
            }
            for (i64 i = a; i < b; i++) { uint32_t v = from[i]; to[own[((v >> shift) & mask) ^ flip]++] = v; }
            #pragma omp barrier
        }
    }
}
double checksum() { return weighed(y, n); }
