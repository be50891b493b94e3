// Every 32-bit integer atomic on global memory, by all threads at once. Their order is not defined, their final values are.
//
// Launch: any 1-D grid. u holds 11 words, s 3, as the caller sets them. For exch and cas, the final word is one that some
// thread wrote.

extern "C" __global__ void atomics_int(unsigned *u, int *s)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&u[0], i);
    atomicSub(&u[1], 3 * i);
    atomicMin(&u[2], i * 7919u % 1009u);
    atomicMax(&u[3], i * 7919u % 1009u);
    atomicAnd(&u[4], ~(1u << (i % 20)));
    atomicOr(&u[5], 1u << (i % 24));
    atomicXor(&u[6], i * 2654435761u);
    atomicInc(&u[7], 99);
    atomicDec(&u[8], 49);
    atomicExch(&u[9], i);
    atomicCAS(&u[10], 12345u, i);
    atomicAdd(&s[0], (int)i % 5 - 2);
    atomicMin(&s[1], 500 - (int)i);
    atomicMax(&s[2], (int)i - 500);
}

// Old values: the tickets that atomicAdd hands out are all different.
extern "C" __global__ void atomics_tickets(unsigned *next, unsigned *ticket)
{
    ticket[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(next, 2u);
}
