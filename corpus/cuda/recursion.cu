// Recursive device functions: Fibonacci numbers, Ackermann's function, mutual recursion, and quicksort in local memory.
//
// Launch: 1-D grid with at least n threads.

__device__ __noinline__ unsigned fibonacci(unsigned n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__device__ __noinline__ unsigned ackermann(unsigned m, unsigned n)
{
    if (m == 0)
        return n + 1;
    if (n == 0)
        return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

__device__ __noinline__ bool odd(unsigned n);
__device__ __noinline__ bool even(unsigned n) { return n == 0 || odd(n - 1); }
__device__ __noinline__ bool odd(unsigned n) { return n != 0 && even(n - 1); }

extern "C" __global__ void recursion(const unsigned *in, unsigned *fib, unsigned *ack, unsigned char *parity, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    fib[i] = fibonacci(in[i]);
    ack[i] = ackermann(2, in[i]);
    parity[i] = even(in[i]) ? 0 : 1;
}

__device__ __noinline__ void quicksort(int *a, int low, int high)
{
    if (low >= high)
        return;
    int pivot = a[(low + high) / 2], i = low, j = high;
    while (i <= j) {
        while (a[i] < pivot)
            ++i;
        while (a[j] > pivot)
            --j;
        if (i <= j) {
            int t = a[i];
            a[i++] = a[j];
            a[j--] = t;
        }
    }
    quicksort(a, low, j);
    quicksort(a, i, high);
}

// Each thread sorts its own 16 values.
extern "C" __global__ void quicksort_rows(int *data, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int row[16];
    for (int k = 0; k < 16; ++k)
        row[k] = data[i * 16 + k];
    quicksort(row, 0, 15);
    for (int k = 0; k < 16; ++k)
        data[i * 16 + k] = row[k];
}
