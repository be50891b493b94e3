// European option prices after Black and Scholes, in float with fast intrinsics and in double with the library's
// functions.
//
// Launch: any 1-D grid. Arrays hold n elements; r is the riskless rate, v the volatility.

__device__ float cumulative(float d)
{
    float k = __fdividef(1.0f, 1.0f + 0.2316419f * fabsf(d));
    float poly = k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    float tail = 0.39894228040143267794f * __expf(-0.5f * d * d) * poly;
    return d > 0 ? 1.0f - tail : tail;
}

extern "C" __global__ void black_scholes_f32(const float *spot, const float *strike, const float *years, float *call,
                                             float *put, float r, float v, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float root = sqrtf(years[i]);
        float d1 = __fdividef(__logf(spot[i] / strike[i]) + (r + 0.5f * v * v) * years[i], v * root);
        float d2 = d1 - v * root;
        float n1 = cumulative(d1), n2 = cumulative(d2), discounted = strike[i] * __expf(-r * years[i]);
        call[i] = spot[i] * n1 - discounted * n2;
        put[i] = discounted * (1.0f - n2) - spot[i] * (1.0f - n1);
    }
}

extern "C" __global__ void black_scholes_f64(const double *spot, const double *strike, const double *years, double *call,
                                             double *put, double r, double v, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        double root = sqrt(years[i]);
        double d1 = (log(spot[i] / strike[i]) + (r + 0.5 * v * v) * years[i]) / (v * root);
        double d2 = d1 - v * root;
        double n1 = normcdf(d1), n2 = 0.5 * erfc(-d2 * 0.70710678118654752440);
        double discounted = strike[i] * exp(-r * years[i]);
        call[i] = spot[i] * n1 - discounted * n2;
        put[i] = discounted * (1.0 - n2) - spot[i] * (1.0 - n1);
    }
}
