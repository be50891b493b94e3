// Parses decimal integers, with an optional sign, out of a text in which anything else separates them: a thread
// that stands on the first character of a number reads the number and stores it at the place that a prefix sum gives.
//
// Launch: one block of 128 threads; length characters; values receives the numbers in order, *count how many.

__device__ bool digit(const char *text, int length, int i) { return i >= 0 && i < length && text[i] >= '0' && text[i] <= '9'; }

__device__ bool starts(const char *text, int length, int i)
{
    return digit(text, length, i) && !digit(text, length, i - 1);
}

extern "C" __global__ void parse_numbers(const char *text, int length, int *values, int *count)
{
    __shared__ int place[128];
    int base = 0;
    for (int start = 0; start < length; start += 128) {
        int i = start + threadIdx.x;
        int first = starts(text, length, i);
        place[threadIdx.x] = first;
        __syncthreads();
        for (int offset = 1; offset < 128; offset *= 2) {
            int left = threadIdx.x >= offset ? place[threadIdx.x - offset] : 0;
            __syncthreads();
            place[threadIdx.x] += left;
            __syncthreads();
        }
        if (first) {
            int v = 0;
            for (int k = i; digit(text, length, k); ++k)
                v = v * 10 + (text[k] - '0');
            if (i > 0 && text[i - 1] == '-')
                v = -v;
            values[base + place[threadIdx.x] - 1] = v;
        }
        base += place[127];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        *count = base;
}
