// printf from the device: integers of all widths, doubles, strings, characters, pointers, percent signs, from one thread
// and from several.
//
// Launch: print_values <<<1, 1>>>. print_threads <<<2, 4>>>: one line per thread, in any order.

#include <stdio.h>

extern "C" __global__ void print_values(int i, unsigned u, long long l, double d, const char *text)
{
    printf("plain text\n");
    printf("int %d, unsigned %u, hex %x %08X, octal %o\n", i, u, u, u, u);
    printf("long %lld %llx\n", l, (unsigned long long)l);
    printf("double %f %.3f %10.2f %e %g\n", d, d, d, d, d);
    printf("char %c%c, percent %%, string [%s] [%-6s] [%6s]\n", 'o', 'k', text, "left", "right");
    int written = printf("width [%5d] [%-5d] [%05d] [%+d]\n", i, i, i, i);
    printf("%d arguments\n", written);
}

extern "C" __global__ void print_threads()
{
    float half = 0.5f * threadIdx.x;
    printf("block %d thread %d value %.1f\n", blockIdx.x, threadIdx.x, half);
}
