// The programs of this folder in C++: reads the input file, computes with all cores where items do not depend on each
// other, writes `peer.raw`.
//
//     g++ -O3 -march=native -fopenmp programs.cpp -o programs -lfftw3f && ./programs NAME
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fftw3.h>
#include <functional>
#include <map>
#include <string>
#include <vector>
using Complex = std::complex<float>;

template <class T> static std::vector<T> load(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) { perror(path); exit(1); }
    fseek(file, 0, SEEK_END);
    std::vector<T> items(ftell(file) / sizeof(T));
    rewind(file);
    if (fread(items.data(), sizeof(T), items.size(), file) != items.size()) exit(1);
    fclose(file);
    return items;
}

template <class T> static void store(const std::vector<T> &items) {
    FILE *file = fopen("peer.raw", "wb");
    if (!file || fwrite(items.data(), sizeof(T), items.size(), file) != items.size() || fclose(file)) exit(1);
}

static std::vector<float> floats() { return load<float>("in.f32"); }
static std::vector<Complex> numbers() { return load<Complex>("in.c64"); }

static void copy() {
    auto x = floats();
    #pragma omp parallel for
    for (size_t i = 0; i < x.size(); i++) x[i] *= 2;
    store(x);
}

// Sums of products at every `down`-th place. The places are the inner loop where they follow each other.
static std::vector<float> filtered(const std::vector<float> &x, const std::vector<float> &h, size_t down) {
    size_t n = h.size(), count = (x.size() - n) / down + 1, tile = 2048;
    std::vector<float> y(count);
    #pragma omp parallel for
    for (size_t t = 0; t < count; t += tile) {
        size_t end = std::min(count, t + tile);
        if (down == 1) {
            for (size_t k = 0; k < n; k += 8)
                for (size_t i = t; i < end; i++) {
                    float sum = y[i];
                    for (size_t u = k; u < std::min(n, k + 8); u++) sum += h[u] * x[i + u];
                    y[i] = sum;
                }
        } else {
            for (size_t i = t; i < end; i++) {
                float sum = 0;
                #pragma omp simd reduction(+ : sum)
                for (size_t k = 0; k < n; k++) sum += h[k] * x[i * down + k];
                y[i] = sum;
            }
        }
    }
    return y;
}

static void fir() {
    std::vector<float> h(64);
    for (int i = 0; i < 64; i++) h[i] = (0.54 - 0.46 * cos(2 * M_PI * i / 63)) / 64;
    store(filtered(floats(), h, 1));
}

static void iir() {
    auto x = floats();
    float b1[6], a1[6], a2[6], s1[6] = {}, s2[6] = {};
    for (int i = 0; i < 6; i++) { b1[i] = 0.1 + 0.02 * i; a1[i] = -0.5 + 0.05 * i; a2[i] = 0.2 + 0.05 * i; }
    for (auto &item : x) {
        float v = item;
        for (int i = 0; i < 6; i++) {
            float y = 0.4f * v + s1[i];
            s1[i] = b1[i] * v - a1[i] * y + s2[i];
            s2[i] = 0.05f * v - a2[i] * y;
            v = y;
        }
        item = v;
    }
    store(x);
}

static void goertzel() {
    const int tones = 12, n = 200;
    auto x = floats();
    std::vector<float> y(x.size() / n * tones);
    float c[tones];
    for (int k = 0; k < tones; k++) c[k] = 2 * cos(2 * M_PI * (0.05 + 0.01 * k));
    #pragma omp parallel for
    for (size_t block = 0; block < x.size() / n; block++) {
        float a[tones] = {}, b[tones] = {};
        for (int i = 0; i < n; i++)
            for (int k = 0; k < tones; k++) {
                float next = x[block * n + i] + c[k] * a[k] - b[k];
                b[k] = a[k];
                a[k] = next;
            }
        for (int k = 0; k < tones; k++) y[block * tones + k] = a[k] * a[k] + b[k] * b[k] - c[k] * a[k] * b[k];
    }
    store(y);
}

static void resampler() {
    const int up = 3, down = 2, n = 16;
    float h[up][n];
    for (int p = 0; p < up; p++)
        for (int k = 0; k < n; k++) {
            double m = (k * up + p - (n * up - 1) / 2.0) / up;
            h[p][n - 1 - k] = sin(M_PI * m) / (M_PI * m) * (0.5 - 0.5 * cos(2 * M_PI * (k * up + p + 0.5) / (n * up)));
        }
    auto x = floats();
    size_t count = (x.size() - n - down) / down + 1;
    std::vector<float> y(count * up);
    #pragma omp parallel for
    for (size_t i = 0; i < count; i++)
        for (int j = 0; j < up; j++) {
            float sum = 0;
            for (int k = 0; k < n; k++) sum += h[j * down % up][k] * x[i * down + j * down / up + k];
            y[i * up + j] = sum;
        }
    store(y);
}

static void bank() {
    const int bands = 8, n = 32;
    auto x = floats();
    size_t count = (x.size() - n) / bands + 1;
    std::vector<float> y(count * bands);
    float h[n][bands];
    for (int b = 0; b < bands; b++)
        for (int i = 0; i < n; i++)
            h[i][b] = (0.5 - 0.5 * cos(2 * M_PI * (i + 0.5) / n)) * cos(M_PI * (b + 0.5) / bands * (i - (n - 1) / 2.0)) / bands;
    #pragma omp parallel for
    for (size_t t = 0; t < count; t++) {
        float sum[bands] = {};
        for (int i = 0; i < n; i++)
            for (int b = 0; b < bands; b++) sum[b] += h[i][b] * x[t * bands + i];
        memcpy(&y[t * bands], sum, sizeof sum);
    }
    store(y);
}

static void fm() {
    auto x = numbers();
    std::vector<float> d(x.size() - 1), h(80);
    #pragma omp parallel for
    for (size_t i = 0; i < d.size(); i++) d[i] = std::arg(x[i + 1] * std::conj(x[i]));
    for (int i = 0; i < 80; i++) {
        double m = i - 79 / 2.0;
        h[i] = sin(M_PI * m / 8) / (M_PI * m) * (0.54 - 0.46 * cos(2 * M_PI * i / 79));
    }
    auto y = filtered(d, h, 8);
    float z = 0;
    for (auto &item : y) item = z += 0.25f * (item - z);
    store(y);
}

static void agc() {
    auto x = floats();
    float gain = 1;
    for (auto &item : x) {
        item *= gain;
        gain += 0.001f * (0.5f - std::fabs(item));
    }
    store(x);
}

static void crc() {
    auto x = load<uint32_t>("in.i32");
    std::vector<uint32_t> y(x.size() / 64);
    #pragma omp parallel for
    for (size_t i = 0; i < y.size(); i++) {
        uint32_t c = ~0u;
        for (int j = 0; j < 64; j++) {
            uint32_t w = x[i * 64 + j];
            for (int k = 0; k < 32; k++, w >>= 1) c = c >> 1 ^ (((c ^ w) & 1) ? 0xEDB88320u : 0);
        }
        y[i] = ~c;
    }
    store(y);
}

static void viterbi() {
    const int n = 128;
    auto x = floats();
    std::vector<int32_t> y(x.size() / (2 * n) * n);
    #pragma omp parallel for
    for (size_t block = 0; block < x.size() / (2 * n); block++) {
        float cost[4] = {0, 1e6f, 1e6f, 1e6f}, next[4];
        int8_t from[n][4];
        for (int i = 0; i < n; i++) {
            float a = x[block * 2 * n + 2 * i], b = x[block * 2 * n + 2 * i + 1];
            for (int s = 0; s < 4; s++) {
                int bit = s & 1, p = s >> 1, q = p + 2;
                float c0 = cost[p] + ((bit ^ (p & 1)) ? -a : a) + (bit ? -b : b);
                float c1 = cost[q] + ((bit ^ (p & 1) ^ 1) ? -a : a) + ((bit ^ 1) ? -b : b);
                next[s] = c1 < c0 ? c1 : c0;
                from[i][s] = c1 < c0 ? q : p;
            }
            memcpy(cost, next, sizeof cost);
        }
        int best = 0;
        for (int s = 1; s < 4; s++) if (cost[s] < cost[best]) best = s;
        for (int i = n - 1; i >= 0; i--) {
            y[block * n + i] = best & 1;
            best = from[i][best];
        }
    }
    store(y);
}

static fftwf_complex *raw(Complex *items) { return reinterpret_cast<fftwf_complex *>(items); }

// Transforms rows of n items in place.
static void transform(std::vector<Complex> &rows, int n) {
    auto plan = fftwf_plan_dft_1d(n, raw(rows.data()), raw(rows.data()), FFTW_FORWARD, FFTW_ESTIMATE | FFTW_UNALIGNED);
    #pragma omp parallel for
    for (size_t row = 0; row < rows.size() / n; row++) fftwf_execute_dft(plan, raw(&rows[row * n]), raw(&rows[row * n]));
}

static void channelizer() {
    const int m = 32, n = 8;
    float h[n][m];
    for (int k = 0; k < n; k++)
        for (int p = 0; p < m; p++) {
            double t = k * m + p - (m * n - 1) / 2.0;
            h[k][p] = sin(M_PI * t / m) / (M_PI * t) * (0.54 - 0.46 * cos(2 * M_PI * (k * m + p) / (m * n - 1)));
        }
    auto x = numbers();
    std::vector<Complex> y((x.size() / m - n + 1) * m);
    #pragma omp parallel for
    for (size_t row = 0; row < y.size() / m; row++) {
        const float *from = reinterpret_cast<float *>(&x[row * m]);
        float sum[2 * m] = {};
        for (int k = 0; k < n; k++)
            for (int p = 0; p < m; p++) {
                sum[2 * p] += h[k][p] * from[2 * (k * m + p)];
                sum[2 * p + 1] += h[k][p] * from[2 * (k * m + p) + 1];
            }
        memcpy(static_cast<void *>(&y[row * m]), sum, sizeof sum);
    }
    transform(y, m);
    store(y);
}

static void ofdm() {
    auto x = numbers();
    x.resize(x.size() / 64 * 64);
    transform(x, 64);
    std::vector<Complex> y(x.size() / 64 * 80);
    #pragma omp parallel for
    for (size_t row = 0; row < x.size() / 64; row++)
        for (int i = 0; i < 80; i++) y[row * 80 + i] = 0.125f * x[row * 64 + (i + 48) % 64];
    store(y);
}

static void spectrum() {
    const int n = 256;
    auto x = numbers();
    std::vector<Complex> rows(((x.size() - n) / 128 + 1) * n);
    float w[n];
    for (int i = 0; i < n; i++) w[i] = 0.5 - 0.5 * cos(2 * M_PI * i / n);
    #pragma omp parallel for
    for (size_t row = 0; row < rows.size() / n; row++)
        for (int i = 0; i < n; i++) rows[row * n + i] = w[i] * x[row * 128 + i];
    transform(rows, n);
    std::vector<float> y(rows.size());
    #pragma omp parallel for
    for (size_t i = 0; i < y.size(); i++) y[i] = std::norm(rows[i]);
    store(y);
}

static void squelch() {
    auto x = floats();
    std::vector<float> y;
    for (size_t i = 0; i < x.size();) {
        size_t n = 0;
        while (n < 1000 && i + n < x.size() && std::fabs(x[i + n]) > 1) n++;
        if (n < 1000 && i + n == x.size()) break;
        if (n) y.push_back(n);
        y.insert(y.end(), &x[i], &x[i + n]);
        i += n ? n : 1;
    }
    store(y);
}

int main(int count, char **arguments) {
    std::map<std::string, std::function<void()>> programs = {
        {"copy", copy}, {"fir", fir}, {"iir", iir}, {"goertzel", goertzel}, {"resampler", resampler}, {"bank", bank}, {"fm", fm},
        {"agc", agc}, {"crc", crc}, {"viterbi", viterbi}, {"channelizer", channelizer}, {"ofdm", ofdm}, {"spectrum", spectrum},
        {"squelch", squelch},
    };
    auto found = programs.find(count > 1 ? arguments[1] : "");
    if (found == programs.end()) return 2;
    found->second();
}
