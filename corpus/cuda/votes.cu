// Votes and masks: all, any, ballot, with full masks and with the mask of a divergent branch, and the active mask.
//
// Launch: 1-D grid, blocks of a multiple of 32 threads. out holds 5 words per thread.

extern "C" __global__ void votes(const int *in, unsigned *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = in[i];
    unsigned *row = out + 5 * i;
    row[0] = __all_sync(0xffffffff, v > -100);
    row[1] = __any_sync(0xffffffff, v > 90);
    row[2] = __ballot_sync(0xffffffff, v & 1);
    bool negative = v < 0;
    unsigned members = __ballot_sync(0xffffffff, negative);
    if (negative) {
        row[3] = __ballot_sync(members, v & 2);
        // At least this thread is active, and nobody outside the branch.
        unsigned active = __activemask();
        row[4] = (active & ~members) == 0 && (active >> (i & 31) & 1);
    } else {
        row[3] = __ballot_sync(~members, v & 2);
        unsigned active = __activemask();
        row[4] = (active & members) == 0 && (active >> (i & 31) & 1);
    }
}

// uni votes by hand: 1 where all lanes of the warp hold the same predicate.
extern "C" __global__ void vote_uniform(const int *in, int *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int same;
    asm volatile("{\n\t"
                 ".reg .pred p, q;\n\t"
                 "setp.gt.s32 p, %1, 0;\n\t"
                 "vote.sync.uni.pred q, p, 0xffffffff;\n\t"
                 "selp.s32 %0, 1, 0, q;\n\t"
                 "}"
                 : "=r"(same)
                 : "r"(in[i]));
    out[i] = same;
}
