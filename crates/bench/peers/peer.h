// What every peer shares: the inputs, and the loop that obeys whoever started it.
//
// A peer defines `void setup(i64 n)`, `void run()` and `double checksum()`. It is started with the size as its argument, answers
// the line "run N" with the nanoseconds that N repetitions took, and the line "sum" with the checksum of its results.
#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <omp.h>
typedef int64_t i64;

// The same numbers as in the benchmark's own inputs: a hash of the index.
static inline uint32_t hashed(uint32_t i, uint32_t seed) {
    uint32_t x = i * 0x9E3779B1u + seed * 0x85EBCA77u;
    x ^= x >> 16, x *= 0x7FEB352Du, x ^= x >> 15, x *= 0x846CA68Bu;
    return x ^ x >> 16;
}
static inline float unit(uint32_t i, uint32_t seed) { return (float)(hashed(i, seed) >> 8) * (1.0f / 16777216.0f); }

// The length of a row. Nine rows of ten have entries: up to `most`, and twice as many with a chance of 0.354 (2 to the power of -1.5), and so on.
static inline int ragged(uint32_t row, uint32_t most) {
    if ((hashed(row, 1) >> 8) % 10 == 0) return 0;
    for (uint32_t k = 0; k < 10 && hashed(row, 2 + k) >> 8 < 5931642; k++) most *= 2;
    return 1 + (int)((hashed(row, 12) >> 8) % most);
}

// Memory whose pages are first touched by the threads that will use them.
template <class T> static T* make(i64 n) {
    T* p = (T*)aligned_alloc(64, ((size_t)n * sizeof(T) + 63) / 64 * 64);
    if (!p) { fprintf(stderr, "out of memory\n"); exit(3); }
    #pragma omp parallel for schedule(static)
    for (i64 i = 0; i < n; i++) p[i] = T();
    return p;
}
template <class T, class F> static T* filled(i64 n, F f) {
    T* p = make<T>(n);
    #pragma omp parallel for schedule(static)
    for (i64 i = 0; i < n; i++) p[i] = f(i);
    return p;
}
static float* units(i64 n, uint32_t seed, float from = 0.0f, float to = 1.0f) {
    return filled<float>(n, [=](i64 i) { return from + (to - from) * unit((uint32_t)i, seed); });
}

// The sum of magnitudes, each times 1 to 7 by its place: order matters, and nothing cancels. `first` is the place of p[0].
template <class T> static double weighed(const T* p, i64 n, i64 first = 0) {
    double sum = 0;
    #pragma omp parallel for reduction(+:sum)
    for (i64 i = 0; i < n; i++) sum += fabs((double)p[i]) * (double)(1 + (first + i) % 7);
    return sum;
}

static void setup(i64 n);
static void run();
static double checksum();

int main(int argc, char** argv) {
    if (argc != 2) return fprintf(stderr, "usage: %s SIZE\n", argv[0]), 2;
    setup(atoll(argv[1]));
    char line[64];
    long long count;
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "run %lld", &count) == 1) {
            auto start = std::chrono::steady_clock::now();
            for (long long k = 0; k < count; k++) run();
            auto time = std::chrono::steady_clock::now() - start;
            printf("%lld\n", (long long)std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
        } else if (!strcmp(line, "sum\n")) {
            printf("%.17g\n", checksum());
        } else {
            return fprintf(stderr, "what is %s", line), 2;
        }
        fflush(stdout);
    }
}
