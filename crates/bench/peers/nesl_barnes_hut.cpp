// Barnes-Hut over the levels of a quad-tree, as the NESL program does it. Bodies are in Morton order; a body walks down the
// tree with a stack.
#include "peer.h"
#include <vector>
static const int LEVELS = 15;
struct Cell { float mass, x, y; int count, first, end; };
static i64 n;
static float *m, *x, *y, *fx, *fy;
void setup(i64 size) {
    n = size, m = filled<float>(n, [](i64 i) { return 0.5f + unit((uint32_t)i, 41); }), x = units(n, 42), y = units(n, 43);
    fx = make<float>(n), fy = make<float>(n);
}
static uint32_t spread(uint32_t a) {
    a = (a | a << 8) & 0x00FF00FF, a = (a | a << 4) & 0x0F0F0F0F, a = (a | a << 2) & 0x33333333;
    return (a | a << 1) & 0x55555555;
}
static uint32_t code(float x, float y) {
    uint32_t side = 1u << LEVELS;
    auto cell = [=](float v) { return std::min(side - 1, (uint32_t)(v * (float)side)); };
    return spread(cell(x)) | spread(cell(y)) << 1;
}
void run() {
    std::vector<std::pair<uint32_t, int>> order(n);
    #pragma omp parallel for schedule(static)
    for (i64 i = 0; i < n; i++) order[i] = {code(x[i], y[i]), (int)i};
    std::sort(order.begin(), order.end());
    std::vector<std::vector<Cell>> tree(LEVELS + 1);
    std::vector<std::vector<int>> starts(LEVELS + 1);
    #pragma omp parallel for schedule(dynamic)
    for (int level = 0; level <= LEVELS; level++) {
        int shift = 2 * (LEVELS - level);
        for (i64 i = 0; i < n; i++) {
            bool begins = i == 0 || order[i].first >> shift != order[i - 1].first >> shift;
            if (begins) tree[level].push_back({0, 0, 0, 0, 0, 0}), starts[level].push_back((int)i);
            Cell& c = tree[level].back();
            int b = order[i].second;
            c.mass += m[b], c.x += m[b] * x[b], c.y += m[b] * y[b], c.count++;
        }
        for (Cell& c : tree[level]) c.x /= c.mass, c.y /= c.mass;
    }
    #pragma omp parallel for schedule(dynamic)
    for (int level = 0; level < LEVELS; level++) {
        size_t part = 0;
        for (size_t c = 0; c < tree[level].size(); c++) {
            int end = c + 1 < starts[level].size() ? starts[level][c + 1] : (int)n;
            tree[level][c].first = (int)part;
            while (part < starts[level + 1].size() && starts[level + 1][part] < end) part++;
            tree[level][c].end = (int)part;
        }
    }
    const float opening = 0.5f;
    #pragma omp parallel for schedule(dynamic, 256)
    for (i64 i = 0; i < n; i++) {
        int b = order[i].second, stack[4 * (LEVELS + 1)][2], top = 0;
        float px = x[b], py = y[b], sx = 0, sy = 0;
        stack[top][0] = 0, stack[top++][1] = 0;
        while (top) {
            top--;
            int level = stack[top][0];
            const Cell& c = tree[level][stack[top][1]];
            float size = 1.0f / (float)(1 << level), dx = c.x - px, dy = c.y - py, square = dx * dx + dy * dy;
            if (size * size < opening * opening * square || level == LEVELS || c.count == 1) {
                square += 1e-4f;
                float force = c.mass / (square * sqrtf(square));
                sx += force * dx, sy += force * dy;
            } else {
                for (int k = c.first; k < c.end; k++) stack[top][0] = level + 1, stack[top++][1] = k;
            }
        }
        fx[b] = sx, fy[b] = sy;
    }
}
double checksum() { return weighed(fx, n) + weighed(fy, n, n); }
