// By levels, from the end of an edge that is nearer to the first node.
#include "peer.h"
static i64 n;
static int *offsets, *ends, *level, *front, *next_;
void setup(i64 size) {
    n = size, offsets = make<int>(n + 1), level = make<int>(n), front = make<int>(n), next_ = make<int>(n);
    for (i64 i = 0; i < n; i++) offsets[i + 1] = offsets[i] + (i == 0 ? 8 : (int)(hashed((uint32_t)i, 17) % 17));
    ends = filled<int>(offsets[n], [](i64 k) { return (int)(hashed((uint32_t)k, 18) % (uint32_t)n); });
}
void run() {
    std::fill(level, level + n, -1);
    level[0] = 0, front[0] = 0;
    i64 count = 1;
    for (int depth = 1; count > 0; depth++) {
        i64 found = 0;
        for (i64 f = 0; f < count; f++)
            for (int k = offsets[front[f]]; k < offsets[front[f] + 1]; k++)
                if (level[ends[k]] < 0) level[ends[k]] = depth, next_[found++] = ends[k];
        std::swap(front, next_), count = found;
    }
}
double checksum() { return weighed(level, n); }
