// Message passing with acquire and release: a ring of threads in the whole grid hands a token on; and the same with relaxed accesses
// between fences.
//
// Launch: 1-D grid whose blocks are all resident at once. slot holds one payload per thread, flag one word per thread, all zero.
// out[i] = 1 + 2 + ... + (i + 1).

__device__ unsigned load_acquire(const unsigned *p)
{
    unsigned v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(__cvta_generic_to_global(p)) : "memory");
    return v;
}

__device__ void store_release(unsigned *p, unsigned v)
{
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(p)), "r"(v) : "memory");
}

extern "C" __global__ void acquire_release(unsigned *slot, unsigned *flag, unsigned *out)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, sum = i + 1;
    if (i > 0) {
        while (load_acquire(&flag[i - 1]) == 0)
            ;
        sum += slot[i - 1];
    }
    slot[i] = sum;
    store_release(&flag[i], 1);
    out[i] = sum;
}

extern "C" __global__ void relaxed_fences(unsigned *slot, unsigned *flag, unsigned *out)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, sum = i + 1, seen = 0;
    if (i > 0) {
        do {
            asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(seen) : "l"(&flag[i - 1]) : "memory");
        } while (seen == 0);
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
        sum += slot[i - 1];
    }
    slot[i] = sum;
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    asm volatile("st.relaxed.gpu.u32 [%0], %1;" ::"l"(&flag[i]), "r"(1) : "memory");
    out[i] = sum;
}

// A lock made of atom.acquire and atom.release, with sequentially consistent fences in its critical section.
extern "C" __global__ void acquire_release_lock(unsigned *lock, unsigned *total)
{
    bool done = false;
    while (!done) {
        unsigned old;
        asm volatile("atom.acquire.gpu.global.cas.b32 %0, [%1], 0, 1;"
                     : "=r"(old)
                     : "l"(__cvta_generic_to_global(lock))
                     : "memory");
        if (old == 0) {
            *total += threadIdx.x;
            asm volatile("fence.sc.gpu;" ::: "memory");
            asm volatile("atom.release.gpu.global.exch.b32 %0, [%1], 0;"
                         : "=r"(old)
                         : "l"(__cvta_generic_to_global(lock))
                         : "memory");
            done = true;
        }
    }
}
