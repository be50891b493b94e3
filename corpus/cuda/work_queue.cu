// Persistent threads that draw tasks of very different sizes from a shared counter: Collatz lengths of 1 .. n.
//
// Launch: any 1-D grid. *next starts at zero. steps holds n words.

extern "C" __global__ void work_queue(unsigned *next, unsigned n, unsigned *steps)
{
    for (;;) {
        unsigned task = atomicAdd(next, 1);
        if (task >= n)
            return;
        unsigned long long v = task + 1;
        unsigned k = 0;
        for (; v != 1; ++k)
            v = v & 1 ? 3 * v + 1 : v >> 1;
        steps[task] = k;
    }
}
