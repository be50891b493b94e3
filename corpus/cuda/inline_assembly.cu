// Instructions written by hand: predicates, scopes with local registers, selection, vectors, special registers,
// and addresses turned from one state space to another.
//
// Launch: 1-D grid, blocks of 64 threads, one element per thread.

extern "C" __global__ void inline_assembly(const int *in, int4 *out)
{
    __shared__ int tile[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = in[i], clipped, selected, neighbour;
    asm("{\n\t"
        ".reg .pred low, high;\n\t"
        "setp.lt.s32 low, %1, -100;\n\t"
        "setp.gt.and.s32 high, %1, 100, !low;\n\t"
        "mov.s32 %0, %1;\n\t"
        "@low mov.s32 %0, -100;\n\t"
        "@high mov.s32 %0, 100;\n\t"
        "}"
        : "=r"(clipped)
        : "r"(v));
    asm("slct.s32.s32 %0, %1, %2, %3;" : "=r"(selected) : "r"(v), "r"(-v), "r"(v));
    unsigned address = (unsigned)__cvta_generic_to_shared(&tile[threadIdx.x]);
    asm volatile("st.shared.s32 [%0], %1;" ::"r"(address), "r"(v) : "memory");
    __syncthreads();
    unsigned other = (unsigned)__cvta_generic_to_shared(&tile[threadIdx.x ^ 1]);
    asm volatile("ld.shared.s32 %0, [%1];" : "=r"(neighbour) : "r"(other) : "memory");
    int lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm volatile("st.global.v4.s32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(out + i)), "r"(clipped),
                 "r"(selected), "r"(neighbour), "r"(lane)
                 : "memory");
}
