// A lock in global memory that single threads take and give back, while they update two ordinary words that must agree; and a
// lock with tickets, served in order.
//
// Launch: any 1-D grid. lock, data and tickets start at zero: spin_lock leaves data = {threads, sum of i},
// ticket_lock leaves tickets = {threads, threads} and data[0] = threads.

extern "C" __global__ void spin_lock(int *lock, unsigned *data)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            data[0] += 1;
            data[1] += i;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}

extern "C" __global__ void ticket_lock(unsigned *tickets, unsigned *data)
{
    unsigned mine = atomicAdd(&tickets[0], 1);
    bool done = false;
    while (!done) {
        if (*(volatile unsigned *)&tickets[1] == mine) {
            __threadfence();
            data[0] = mine + 1;
            __threadfence();
            atomicAdd(&tickets[1], 1);
            done = true;
        }
    }
}
