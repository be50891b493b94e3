// The blur of a row, and its difference from the row, in one pass.
static i64 w, h;
static float *x, *o;
static std::vector<float> taps;
void setup(i64 n) { w = n, h = n * 5 / 3, x = units(3 * w * h, 1), o = make<float>(3 * w * h), taps = bell(1.5); }
void run() {
    for (i64 p = 0; p < 3; p++) {
        const float* in = x + p * w * h; float* out = o + p * w * h;
        blur(in, w, h, taps, [=](i64 y, i64 i, float v) { float s = in[y * w + i]; out[y * w + i] = s + (s - v); });
    }
}
double checksum() { return weighed(o, 3 * w * h); }
