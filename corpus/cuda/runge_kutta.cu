// Fourth-order Runge-Kutta integration of the Lorenz system in double precision, one trajectory per thread.
//
// Launch: 1-D grid with at least n threads; state holds x, y, z per trajectory.

__device__ void derivative(const double *s, double *d)
{
    d[0] = 10.0 * (s[1] - s[0]);
    d[1] = s[0] * (28.0 - s[2]) - s[1];
    d[2] = s[0] * s[1] - 8.0 / 3.0 * s[2];
}

extern "C" __global__ void runge_kutta(double *state, int n, double h, int steps)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double s[3], k1[3], k2[3], k3[3], k4[3], u[3];
    for (int c = 0; c < 3; ++c)
        s[c] = state[3 * i + c];
    for (int step = 0; step < steps; ++step) {
        derivative(s, k1);
        for (int c = 0; c < 3; ++c)
            u[c] = s[c] + 0.5 * h * k1[c];
        derivative(u, k2);
        for (int c = 0; c < 3; ++c)
            u[c] = s[c] + 0.5 * h * k2[c];
        derivative(u, k3);
        for (int c = 0; c < 3; ++c)
            u[c] = s[c] + h * k3[c];
        derivative(u, k4);
        for (int c = 0; c < 3; ++c)
            s[c] += h / 6.0 * (k1[c] + 2.0 * k2[c] + 2.0 * k3[c] + k4[c]);
    }
    for (int c = 0; c < 3; ++c)
        state[3 * i + c] = s[c];
}
