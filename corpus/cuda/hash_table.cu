// A hash table with open addressing: insertion by compare-and-swap, counting of equal keys, lookup.
//
// hash_insert: any 1-D grid; keys are not 0xffffffff; key slots start at 0xffffffff, counts at zero; capacity is a power of two, greater
// than the number of distinct keys. hash_lookup: any 1-D grid; found[i] = count of query i.

__device__ unsigned mix(unsigned k)
{
    k ^= k >> 16;
    k *= 0x85ebca6bu;
    k ^= k >> 13;
    k *= 0xc2b2ae35u;
    return k ^ k >> 16;
}

extern "C" __global__ void hash_insert(const unsigned *keys, int n, unsigned *slot, unsigned *count, unsigned capacity)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned key = keys[i];
        for (unsigned at = mix(key) & (capacity - 1);; at = (at + 1) & (capacity - 1)) {
            unsigned seen = atomicCAS(&slot[at], 0xffffffffu, key);
            if (seen == 0xffffffffu || seen == key) {
                atomicAdd(&count[at], 1);
                break;
            }
        }
    }
}

extern "C" __global__ void hash_lookup(const unsigned *queries, int n, const unsigned *slot, const unsigned *count,
                                       unsigned capacity, unsigned *found)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned key = queries[i], result = 0;
        for (unsigned at = mix(key) & (capacity - 1); slot[at] != 0xffffffffu; at = (at + 1) & (capacity - 1))
            if (slot[at] == key) {
                result = count[at];
                break;
            }
        found[i] = result;
    }
}
