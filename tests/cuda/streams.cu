// Streams, events, a symbol, dynamic shared memory.
#include "check.h"
#include <vector>

__constant__ float factor;

__global__ void scale(float *out, const float *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = factor * in[i];
}

__global__ void sum(float *out, const float *in, int n) {
    extern __shared__ float part[];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    part[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s /= 2) {
        if (t < s) part[t] += part[t + s];
        __syncthreads();
    }
    if (t == 0) atomicAdd(out, part[0]);
}

int main() {
    const int n = 10000;
    std::vector<float> host(n), back(n);
    for (int i = 0; i < n; i++) host[i] = float(i % 7);
    float two = 2, total = 0, *in, *out, *result;
    CALL(cudaMemcpyToSymbol(factor, &two, sizeof two));
    CALL(cudaMalloc(&in, n * sizeof *in));
    CALL(cudaMalloc(&out, n * sizeof *out));
    CALL(cudaMalloc(&result, sizeof *result));
    cudaStream_t first, second;
    cudaEvent_t start, scaled;
    CALL(cudaStreamCreate(&first));
    CALL(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    CALL(cudaEventCreate(&start));
    CALL(cudaEventCreate(&scaled));
    CALL(cudaEventRecord(start, first));
    CALL(cudaMemcpyAsync(in, host.data(), n * sizeof *in, cudaMemcpyHostToDevice, first));
    scale<<<(n + 255) / 256, 256, 0, first>>>(out, in, n);
    CALL(cudaEventRecord(scaled, first));
    CALL(cudaStreamWaitEvent(second, scaled, 0));
    CALL(cudaMemsetAsync(result, 0, sizeof *result, second));
    sum<<<(n + 127) / 128, 128, 128 * sizeof(float), second>>>(result, out, n);
    CALL(cudaMemcpyAsync(&total, result, sizeof total, cudaMemcpyDeviceToHost, second));
    CALL(cudaStreamSynchronize(second));
    CALL(cudaMemcpy(back.data(), out, n * sizeof *out, cudaMemcpyDeviceToHost));
    float expected = 0, milliseconds = -1;
    for (int i = 0; i < n; i++) {
        CHECK(back[i] == 2 * host[i]);
        expected += back[i];
    }
    CHECK(total == expected);
    CALL(cudaEventElapsedTime(&milliseconds, start, scaled));
    CHECK(milliseconds >= 0);
    sum<<<1, 2048>>>(result, out, n);
    CHECK(cudaGetLastError() == cudaErrorInvalidValue && cudaGetLastError() == cudaSuccess);
    printf("ok\n");
}
