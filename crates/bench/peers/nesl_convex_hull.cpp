// Quickhull, as the NESL program does it. The first passes over all points are parallel loops, later parts are tasks.
#include "peer.h"
#include <vector>
struct Point { float x, y; };
typedef std::vector<Point> Points;
static i64 n;
static float *x, *y;
static Points hull;
void setup(i64 size) { n = size, x = units(n, 31), y = units(n, 32); }
static float cross(Point p, Point a, Point b) { return (a.x - p.x) * (b.y - p.y) - (a.y - p.y) * (b.x - p.x); }
// The points on the left of a line and the one farthest away.
template <class At> static Points outside(At at, i64 count, Point a, Point b, Point& far) {
    int threads = count > 50000 ? omp_get_max_threads() : 1;
    std::vector<Points> found(threads);
    std::vector<float> most(threads, 0.0f);
    std::vector<Point> best(threads);
    #pragma omp parallel num_threads(threads)
    {
        int t = omp_get_thread_num();
        #pragma omp for schedule(static)
        for (i64 i = 0; i < count; i++) {
            Point p = at(i);
            float area = cross(p, a, b);
            if (area > 0) {
                found[t].push_back(p);
                if (area > most[t]) most[t] = area, best[t] = p;
            }
        }
    }
    int first = (int)(std::max_element(most.begin(), most.end()) - most.begin());
    far = best[first];
    for (int t = 1; t < threads; t++) found[0].insert(found[0].end(), found[t].begin(), found[t].end());
    return std::move(found[0]);
}
static Points above(Points points, Point far, Point a, Point b) {
    Points out{a};
    if (points.size() < 2) { out.insert(out.end(), points.begin(), points.end()); return out; }
    auto at = [&](i64 i) { return points[i]; };
    Point f1, f2;
    Points p1 = outside(at, points.size(), a, far, f1), p2 = outside(at, points.size(), far, b, f2);
    Points left = above(std::move(p1), f1, a, far), right = above(std::move(p2), f2, far, b);
    left.insert(left.end(), right.begin(), right.end());
    return left;
}
void run() {
    i64 l = 0, r = 0;
    #pragma omp parallel
    {
        i64 ml = 0, mr = 0;
        #pragma omp for schedule(static) nowait
        for (i64 i = 0; i < n; i++) { if (x[i] < x[ml]) ml = i; if (x[i] > x[mr]) mr = i; }
        #pragma omp critical
        { if (x[ml] < x[l] || (x[ml] == x[l] && ml < l)) l = ml; if (x[mr] > x[r] || (x[mr] == x[r] && mr < r)) r = mr; }
    }
    Point left{x[l], y[l]}, right{x[r], y[r]}, f1, f2;
    auto at = [](i64 i) { return Point{x[i], y[i]}; };
    Points up = outside(at, n, left, right, f1), down = outside(at, n, right, left, f2);
    hull = above(std::move(up), f1, left, right);
    Points lower = above(std::move(down), f2, right, left);
    hull.insert(hull.end(), lower.begin(), lower.end());
}
double checksum() {
    double area = 0;
    for (size_t i = 0; i < hull.size(); i++) {
        Point a = hull[i], b = hull[(i + 1) % hull.size()];
        area += (double)b.x * a.y - (double)a.x * b.y;
    }
    return area / 2;
}
