// European call and put options after Black and Scholes; the normal distribution by a polynomial of five terms. One thread per
// option, with the fast functions.
__device__ float cnd(float d) {
    float k = __fdividef(1.0f, 1.0f + 0.2316419f * fabsf(d));
    float c = 0.39894228040143267794f * __expf(-0.5f * d * d) *
              (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
    return d > 0.0f ? 1.0f - c : c;
}

extern "C" __global__ void black_scholes(const float* __restrict__ price, const float* __restrict__ strike,
                                         const float* __restrict__ years, float* __restrict__ call, float* __restrict__ put, int n,
                                         float rate, float volatility) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = price[i], x = strike[i], t = years[i];
    float spread = volatility * sqrtf(t);
    float d1 = __fdividef(__logf(__fdividef(s, x)) + (rate + 0.5f * volatility * volatility) * t, spread);
    float n1 = cnd(d1), n2 = cnd(d1 - spread), present = x * __expf(-rate * t);
    call[i] = s * n1 - present * n2;
    put[i] = present * (1.0f - n2) - s * (1.0f - n1);
}
