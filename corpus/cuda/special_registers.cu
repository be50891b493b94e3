// What a thread can read about itself: lane, warp, masks of lanes before and after it, sizes, dynamic shared memory.
//
// Launch: 1-D grid, blocks of any size with 64 bytes of dynamic shared memory. out holds 10 words per thread.

#define READ(name, place) asm volatile("mov.u32 %0, %%" name ";" : "=r"(place))

extern "C" __global__ void special_registers(unsigned *out)
{
    unsigned *row = out + 10 * (blockIdx.x * blockDim.x + threadIdx.x);
    unsigned v;
    READ("laneid", v);
    row[0] = v;
    READ("lanemask_eq", v);
    row[1] = v;
    READ("lanemask_lt", v);
    row[2] = v;
    READ("lanemask_le", v);
    row[3] = v;
    READ("lanemask_gt", v);
    row[4] = v;
    READ("lanemask_ge", v);
    row[5] = v;
    READ("dynamic_smem_size", v);
    row[6] = v;
    READ("nctaid.x", v);
    row[7] = v;
    // The number of a multiprocessor is below their count.
    unsigned sm, sms;
    READ("smid", sm);
    READ("nsmid", sms);
    row[8] = sm < sms;
    row[9] = warpSize;
}
