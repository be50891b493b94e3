// Programs that somebody has to stop, and calls that are refused: `stopped kernel` waits in a kernel,
// `stopped host` in the host, both behind a fault that has been found; `stopped calls` passes wrong pointers
// and sizes.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

__global__ void wait_forever(int *data, volatile int *flag) {
    data[64] = 1;
    printf("ready\n");
    while (*flag == 0) {}
}

__global__ void stray(int *data) { data[64] = 1; }

__device__ int table[4];

static void calls() {
    int host[65] = {}, *memory, *other, *pinned;
    cudaMalloc(&memory, 64 * sizeof(int));
    cudaMalloc(&other, 64 * sizeof(int));
    cudaMallocHost(&pinned, 64 * sizeof(int));
    cudaMemcpy(memory, host, sizeof host, cudaMemcpyHostToDevice);
    cudaMemcpy(host, memory, sizeof host, cudaMemcpyDeviceToHost);
    cudaMemcpy(host, memory, 256, cudaMemcpyHostToDevice);
    cudaMemset(memory, 0, 65 * sizeof(int));
    cudaMemcpyToSymbol(table, host, 20);
    cudaFree(memory + 4);
    cudaFreeHost(memory);
    cudaFree(pinned);
    cudaFree(memory);
    cudaFree(memory);
    cudaMemcpy(host, memory, 64, cudaMemcpyDeviceToHost);
    cudaMemcpy(other, memory, 64, cudaMemcpyDefault);
    cudaMemset(memory, 0, 64);
}

int main(int, char **words) {
    setvbuf(stdout, nullptr, _IONBF, 0);
    if (strcmp(words[1], "calls") == 0) {
        calls();
        return 0;
    }
    int *data, *flag;
    cudaMalloc(&data, 64 * sizeof(int));
    cudaMalloc(&flag, sizeof(int));
    cudaMemset(flag, 0, sizeof(int));
    if (strcmp(words[1], "kernel") == 0) {
        wait_forever<<<1, 1>>>(data, flag);
        cudaDeviceSynchronize();
        return 0;
    }
    stray<<<1, 1>>>(data);
    cudaDeviceSynchronize();
    puts("ready");
    for (;;) pause();
}
