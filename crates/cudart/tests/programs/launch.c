// Launches, memory, symbols, errors.

#include "cuda.h"

int main(void) {
    enum { N = 1000 };
    float in[N], out[N], *device_in, *device_out;
    int count = 0, value = 0;
    OK(cudaGetDeviceCount(&count));
    CHECK(count == 1);
    OK(cudaDeviceGetAttribute(&value, 10, 0));
    CHECK(value == 32);
    char properties[1008];
    OK(cudaGetDeviceProperties(properties, 0));
    CHECK(strncmp(properties, "Broadloom on ", 13) == 0);
    CHECK(cudaSetDevice(1) == 101 && cudaGetLastError() == 101);

    for (int i = 0; i < N; i++) in[i] = i;
    OK(cudaMalloc(&device_in, sizeof in));
    OK(cudaMalloc(&device_out, sizeof out));
    OK(cudaMemcpy(device_in, in, sizeof in, TO_DEVICE));
    LAUNCH((N + 127) / 128, 128, 0, scale(device_out, device_in, 2, N));
    OK(cudaGetLastError());
    OK(cudaMemcpy(out, device_out, sizeof out, TO_HOST));
    for (int i = 0; i < N; i++) CHECK(out[i] == 2 * i + 1);

    // The variable, by its host variable.
    float other = 100, read = 0;
    size_t bytes = 0;
    OK(cudaGetSymbolSize(&bytes, &bias));
    CHECK(bytes == 4);
    OK(cudaMemcpyToSymbol(&bias, &other, 4, 0, TO_DEVICE));
    LAUNCH(8, 128, 0, scale(device_out, device_in, 1, N));
    OK(cudaMemcpy(out, device_out, sizeof out, DEFAULT));
    CHECK(out[7] == 107);
    OK(cudaMemcpyFromSymbol(&read, &bias, 4, 0, TO_HOST));
    CHECK(read == 100);
    CHECK(cudaMemcpyToSymbol(&bias, &other, 8, 0, TO_DEVICE) == 1);
    CHECK(cudaMemcpyToSymbol(&other, &other, 4, 0, TO_DEVICE) == 13);
    CHECK(cudaGetLastError() == 13 && cudaGetLastError() == 0);

    // A managed variable: the host has its address before the first use.
    __cudaInitModule(fat_handle);
    CHECK(*shared_count == 5);
    LAUNCH(2, 32, 0, tally());
    OK(cudaDeviceSynchronize());
    CHECK(*shared_count == 5 + 64);

    // Pitched rows.
    char rows[4][10], back[4][10];
    void *pitched;
    size_t pitch;
    for (int i = 0; i < 40; i++) rows[i / 10][i % 10] = i;
    OK(cudaMallocPitch(&pitched, &pitch, 10, 4));
    CHECK(pitch >= 10 && pitch % 512 == 0);
    OK(cudaMemcpy2D(pitched, pitch, rows, 10, 10, 4, TO_DEVICE));
    OK(cudaMemcpy2D(back, 10, pitched, pitch, 10, 4, TO_HOST));
    CHECK(memcmp(rows, back, 40) == 0);
    CHECK(cudaMemcpy2D(back, 5, pitched, pitch, 10, 4, TO_HOST) == 12);

    // Errors that leave everything usable.
    CHECK(cudaMalloc(0, 4) == 1);
    CHECK(cudaMemcpy(device_in, in, sizeof in + 1, TO_DEVICE) == 1);
    CHECK(cudaMemcpy(in, out, 4, TO_DEVICE) == 1);
    CHECK(cudaMemcpy(device_in, in, 4, 77) == 21);
    CHECK(cudaFree(in) == 1 && cudaFree(0) == 0);
    CHECK(cudaPeekAtLastError() == 1 && cudaGetLastError() == 1);
    // Before CUDA 13 these were 9, 9 and 98.
    LAUNCH(1, 2048, 0, scale(device_out, device_in, 1, N));
    CHECK(cudaGetLastError() == 1);
    LAUNCH(0, 1, 0, scale(device_out, device_in, 1, N));
    CHECK(cudaGetLastError() == 1);
    CHECK(cudaLaunchKernel(main, (dim3){1, 1, 1}, (dim3){1, 1, 1}, 0, 0, 0) == 400);
    void *huge;
    CHECK(cudaMalloc(&huge, (size_t)1 << 60) == 2);
    CHECK(cudaGetLastError() == 2 && cudaGetLastError() == 0);
    CHECK(strcmp(cudaGetErrorName(2), "cudaErrorMemoryAllocation") == 0 && strcmp(cudaGetErrorString(2), "out of memory") == 0);
    CHECK(cudaGraphicsMapResources(0, 0, 0) == 400 && cudaGetLastError() == 400);

    // More dynamic shared memory needs an attribute.
    void *args[] = {&device_out, &device_in, &other, &count};
    CHECK(cudaLaunchKernel((void *)scale, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 64 << 10, 0) == 1);
    OK(cudaFuncSetAttribute((void *)scale, 8, 64 << 10));
    OK(cudaLaunchKernel((void *)scale, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 64 << 10, 0));
    int blocks = 0;
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (void *)scale, 256, 0));
    CHECK(blocks == 4);
    OK(cudaFree(device_in));
    CHECK(cudaFree(device_in) == 1);
    cudaGetLastError();

    // As on a GPU, a small out-of-bounds access of a kernel succeeds; that of a copy does not.
    enum { LARGE = 4 << 20 };
    char *large;
    int items = N;
    OK(cudaMalloc(&large, LARGE));
    LAUNCH(8, 128, 0, scale((float *)(large + LARGE), (float *)large - N, 1, items));
    OK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(in, large - 4, 8, TO_HOST) == 1 && cudaGetLastError() == 1);
    OK(cudaFree(large));

    // A failing kernel poisons the device: every later call returns its error.
    LAUNCH(1, 1, 0, wild((void *)16));
    CHECK(cudaDeviceSynchronize() == 700);
    CHECK(cudaGetLastError() == 700);
    CHECK(cudaMalloc(&huge, 4) == 700 && cudaMemset(device_out, 0, 4) == 700);
    puts("ok");
    return 0;
}
