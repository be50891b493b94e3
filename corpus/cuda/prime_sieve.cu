// The sieve of Eratosthenes on a segment of 1024 numbers per block, as bits in shared memory, with atomicOr; and the count of
// primes by __popc.
//
// Launch: 1-D grid, any block size. Block k sieves [1024 k, 1024 k + 1024). small holds the primes below the root of the
// upper end. *count starts at zero.

extern "C" __global__ void prime_sieve(const unsigned *small, int smalls, unsigned *count)
{
    __shared__ unsigned composite[32];
    unsigned low = blockIdx.x * 1024;
    for (int t = threadIdx.x; t < 32; t += blockDim.x)
        composite[t] = low == 0 && t == 0 ? 3 : 0;
    __syncthreads();
    for (int k = threadIdx.x; k < smalls; k += blockDim.x) {
        unsigned p = small[k];
        unsigned first = max(p * p, (low + p - 1) / p * p);
        for (unsigned m = first - low; m < 1024; m += p)
            atomicOr(&composite[m / 32], 1u << (m % 32));
    }
    __syncthreads();
    for (int t = threadIdx.x; t < 32; t += blockDim.x)
        atomicAdd(count, __popc(~composite[t]));
}
