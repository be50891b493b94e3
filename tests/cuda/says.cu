// What kernels print, in the order of the program's own lines; an assertion that fails.
#include "check.h"
#include <cassert>

__global__ void say(int n) { printf("thread %d of %s: %5.2f %c %llx\n", threadIdx.x, "block", n / 4.0, 'a' + threadIdx.x, 1ull << 40); }

__global__ void insist(int n) { assert(int(threadIdx.x) < n); }

int main() {
    printf("before\n");
    say<<<1, 2>>>(5);
    CALL(cudaDeviceSynchronize());
    printf("after\n");
    insist<<<1, 4>>>(4);
    CALL(cudaDeviceSynchronize());
    insist<<<1, 4>>>(3);
    CHECK(cudaDeviceSynchronize() == cudaErrorAssert);
    printf("ok\n");
}
