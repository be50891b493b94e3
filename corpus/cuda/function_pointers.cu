// Calls through tables of function pointers, in constant and in global memory, and through a pointer chosen by the thread.
//
// Launch: 1-D grid with at least n threads.

typedef int (*Binary)(int, int);

__device__ __noinline__ int add(int a, int b) { return a + b; }
__device__ __noinline__ int subtract(int a, int b) { return a - b; }
__device__ __noinline__ int multiply(int a, int b) { return a * b; }
__device__ __noinline__ int divide(int a, int b) { return b == 0 ? 0 : a / b; }

__device__ Binary operations[4] = {add, subtract, multiply, divide};
__constant__ Binary constant_operations[2] = {multiply, add};

extern "C" __global__ void function_pointers(const int *a, const int *b, const unsigned char *op, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = operations[op[i] & 3](a[i], b[i]);
}

__device__ __noinline__ double integrate(double (*f)(double), double from, double to, int steps)
{
    double h = (to - from) / steps, sum = 0.0;
    for (int k = 0; k < steps; ++k)
        sum += f(from + (k + 0.5) * h);
    return sum * h;
}

__device__ __noinline__ double square(double x) { return x * x; }
__device__ __noinline__ double reciprocal(double x) { return 1.0 / x; }

extern "C" __global__ void integrals(const double *to, double *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double (*f)(double) = i % 2 ? square : reciprocal;
    out[i] = integrate(f, 1.0, to[i], 64) + constant_operations[i / 2 % 2](i, 3);
}
