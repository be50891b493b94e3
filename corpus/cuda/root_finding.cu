// Solves x = cos(a x) by bisection and x^n = a by Newton's method, in double precision; iterations differ by thread.
//
// Launch: 1-D grid with at least n threads.

extern "C" __global__ void bisect(const double *a, double *root, int *steps, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double low = 0.0, high = 1.0;
    int k = 0;
    while (high - low > 1e-12) {
        double mid = 0.5 * (low + high);
        if (mid < cos(a[i] * mid))
            low = mid;
        else
            high = mid;
        ++k;
    }
    root[i] = 0.5 * (low + high);
    steps[i] = k;
}

extern "C" __global__ void newton(const double *a, const int *power, double *root, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double x = a[i] > 1.0 ? a[i] : 1.0;
    for (int k = 0; k < 200; ++k) {
        double p = 1.0;
        for (int j = 1; j < power[i]; ++j)
            p *= x;
        double next = x - (p * x - a[i]) / (power[i] * p);
        if (fabs(next - x) <= 1e-15 * fabs(x))
            break;
        x = next;
    }
    root[i] = x;
}
