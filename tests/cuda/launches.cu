// A kernel that launches another one, in a program that looks at no error.
#include "check.h"

__global__ void inner(int *out) { *out = 1; }

__global__ void outer(int *out) { inner<<<1, 1>>>(out); }

int main() {
    int *out;
    cudaMalloc(&out, sizeof *out);
    outer<<<1, 1>>>(out);
    cudaDeviceSynchronize();
    printf("done\n");
}
