// The nesting depth at each character of an expression, and whether its brackets balance: a prefix sum of +1 and -1 whose
// least value must not be negative and whose last must be zero.
//
// Launch: one block of 256 threads, length up to 256. *balanced receives 1 or 0.

extern "C" __global__ void bracket_depth(const char *text, int length, signed char *depth, int *balanced)
{
    __shared__ int level[256];
    int t = threadIdx.x;
    int step = 0;
    if (t < length) {
        switch (text[t]) {
        case '(':
        case '[':
        case '{': step = 1; break;
        case ')':
        case ']':
        case '}': step = -1; break;
        default: break;
        }
    }
    level[t] = step;
    __syncthreads();
    for (int offset = 1; offset < 256; offset *= 2) {
        int left = t >= offset ? level[t - offset] : 0;
        __syncthreads();
        level[t] += left;
        __syncthreads();
    }
    if (t < length)
        depth[t] = level[t];
    int fine = __syncthreads_and(level[t] >= 0);
    if (t == 0)
        *balanced = fine && level[255] == 0;
}
