// Sorts each row of 1024 keys by a bitonic network in shared memory. A block of 512 threads per row, a pair of keys per thread.
constexpr int KEYS = 1024;

extern "C" __global__ void __launch_bounds__(KEYS / 2) bitonic_sort(const unsigned* __restrict__ in, unsigned* __restrict__ out) {
    __shared__ unsigned keys[KEYS];
    const unsigned* from = in + (size_t)blockIdx.x * KEYS;
    unsigned* to = out + (size_t)blockIdx.x * KEYS;
    int t = threadIdx.x;
    keys[t] = from[t];
    keys[t + KEYS / 2] = from[t + KEYS / 2];
    for (int size = 2; size <= KEYS; size <<= 1) {
        for (int distance = size >> 1; distance > 0; distance >>= 1) {
            __syncthreads();
            int low = 2 * t - (t & (distance - 1)), high = low + distance;
            unsigned a = keys[low], b = keys[high];
            bool descending = (low & size) != 0;
            if ((a > b) != descending) {
                keys[low] = b;
                keys[high] = a;
            }
        }
    }
    __syncthreads();
    to[t] = keys[t];
    to[t + KEYS / 2] = keys[t + KEYS / 2];
}
