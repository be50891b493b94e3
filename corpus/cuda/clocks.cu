// Clocks go forward, and a thread may sleep.
//
// Launch: any 1-D grid. ordered[i] receives 1 if each of the three clocks of thread i did not go back.

extern "C" __global__ void clocks(int *ordered, unsigned sleep)
{
    long long c0 = clock64();
    unsigned long long t0, t1;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t0));
    clock_t s0 = clock();
    __nanosleep(sleep);
    clock_t s1 = clock();
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t1));
    long long c1 = clock64();
    // The short clock wraps around, so its difference is what counts.
    bool fine = c1 >= c0 && t1 >= t0 && (int)(s1 - s0) >= 0;
    ordered[blockIdx.x * blockDim.x + threadIdx.x] = fine;
}
