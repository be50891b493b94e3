// A bitonic network over 32 vectors: 16 rows at a time, one in each lane. A header before it defines `Item` and `items`.
enum { ROW = 32, L = 16 };
typedef Item v16 __attribute__((vector_size(64)));
static i64 rows;
static Item *x, *o;
void setup(i64 n) { rows = n, x = items(rows * ROW), o = make<Item>(rows * ROW); }
template <int K, int J> static inline void step(v16* v) {
    #pragma GCC unroll 32
    for (int i = 0; i < ROW; i++) {
        int l = i ^ J;
        if (l < i) continue;
        v16 a = v[i], b = v[l], low = a < b ? a : b, high = a < b ? b : a;
        if ((i & K) == 0) v[i] = low, v[l] = high; else v[i] = high, v[l] = low;
    }
}
// Turns a block of 16 rows with 16 columns around its diagonal.
static inline void turn(v16* r) {
    typedef int i16 __attribute__((vector_size(64)));
    v16 t[16];
    for (int i = 0; i < 8; i++) {
        t[2*i] = __builtin_shuffle(r[i], r[i + 8], (i16){0,16,1,17,2,18,3,19,4,20,5,21,6,22,7,23});
        t[2*i+1] = __builtin_shuffle(r[i], r[i + 8], (i16){8,24,9,25,10,26,11,27,12,28,13,29,14,30,15,31});
    }
    memcpy(r, t, sizeof t);
}
static inline void turned(v16* r) { turn(r), turn(r), turn(r), turn(r); }
void run() {
    #pragma omp parallel for schedule(static)
    for (i64 b = 0; b < rows; b += L) {
        if (b + L > rows) {
            for (i64 s = b; s < rows; s++) memcpy(o + s * ROW, x + s * ROW, 4 * ROW), std::sort(o + s * ROW, o + (s + 1) * ROW);
            continue;
        }
        v16 v[ROW];
        for (int half = 0; half < 2; half++) {
            for (int i = 0; i < L; i++) memcpy(&v[half * L + i], x + (b + i) * ROW + half * L, 64);
            turned(v + half * L);
        }
        step<2,1>(v); step<4,2>(v); step<4,1>(v); step<8,4>(v); step<8,2>(v); step<8,1>(v);
        step<16,8>(v); step<16,4>(v); step<16,2>(v); step<16,1>(v);
        step<32,16>(v); step<32,8>(v); step<32,4>(v); step<32,2>(v); step<32,1>(v);
        for (int half = 0; half < 2; half++) {
            turned(v + half * L);
            for (int i = 0; i < L; i++) memcpy(o + (b + i) * ROW + half * L, &v[half * L + i], 64);
        }
    }
}
double checksum() { return weighed(o, rows * ROW); }
