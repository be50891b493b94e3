// Streams, events, host functions, host memory, and the order between streams.

#include "cuda.h"
#include <pthread.h>
#include <unistd.h>

static int order[8], next;
static void note(void *number) { order[next++] = (int)(intptr_t)number; }
static void callback(stream_t stream, int status, void *data) {
    CHECK(status == 0);
    *(stream_t *)data = stream;
}

static void *other_thread(void *data) {
    // Errors are per thread.
    CHECK(cudaGetLastError() == 0);
    CHECK(cudaFree(&next) == 1);
    LAUNCH(1, 32, 0, tally());
    OK(cudaStreamSynchronize(0));
    return data;
}

int main(void) {
    enum { N = 1 << 20 };
    float *device, *device_out, *pinned, *managed, plain[4] = {0, 1, 2, 3};
    stream_t a, b, seen = 0;
    event_t start, end;
    OK(cudaStreamCreate(&a));
    OK(cudaStreamCreateWithFlags(&b, 1));
    OK(cudaEventCreate(&start));
    OK(cudaEventCreate(&end));
    OK(cudaMalloc(&device, N * 4));
    OK(cudaMalloc(&device_out, N * 4));
    OK(cudaMallocHost(&pinned, N * 4));
    OK(cudaMallocManaged(&managed, N * 4, 1));
    for (int i = 0; i < N; i++) pinned[i] = i % 1000;

    OK(cudaEventRecord(start, a));
    OK(cudaMemcpyAsync(device, pinned, N * 4, TO_DEVICE, a));
    LAUNCH(N / 256, 256, a, scale(managed, device, 3, N));
    OK(cudaLaunchHostFunc(a, note, (void *)1));
    OK(cudaStreamAddCallback(a, callback, &seen, 0));
    OK(cudaEventRecord(end, a));
    // The other stream is independent, except for the event.
    OK(cudaStreamWaitEvent(b, end, 0));
    OK(cudaLaunchHostFunc(b, note, (void *)2));
    OK(cudaMemcpyAsync(pinned, managed, N * 4, TO_HOST, b));
    OK(cudaStreamSynchronize(b));
    CHECK(order[0] == 1 && order[1] == 2 && seen == a);
    OK(cudaEventQuery(end));
    float ms = -1;
    OK(cudaEventElapsedTime(&ms, start, end));
    CHECK(ms >= 0);
    for (int i = 0; i < N; i++) CHECK(pinned[i] == 3 * (i % 1000) + 1 && managed[i] == pinned[i]);
    OK(cudaStreamQuery(a));

    // The default stream waits for `a`, and `a` for the default stream, implicitly.
    for (int round = 0; round < 20; round++) {
        OK(cudaMemsetAsync(device, 0, N * 4, a));
        LAUNCH(N / 256, 256, 0, scale(device_out, device, 1, N));
        LAUNCH(N / 256, 256, a, scale(device, device_out, 1, N));
        OK(cudaMemcpy(plain, device + N - 4, 16, TO_HOST));
        CHECK(plain[3] == 2);
    }

    // Registered memory of the program: kernels can access it.
    static float own[4096];
    float *mapped;
    OK(cudaHostRegister(own, sizeof own, 2));
    CHECK(cudaHostRegister(own, sizeof own, 2) == 712);
    OK(cudaHostGetDevicePointer(&mapped, own, 0));
    LAUNCH(16, 256, 0, scale(mapped, device, 1, 4096));
    OK(cudaDeviceSynchronize());
    CHECK(own[4095] == 3);
    OK(cudaHostUnregister(own));
    CHECK(cudaHostUnregister(own) == 713);
    int attributes[22];
    OK(cudaPointerGetAttributes(attributes, managed));
    CHECK(attributes[0] == 3);
    OK(cudaPointerGetAttributes(attributes, plain));
    CHECK(attributes[0] == 0);

    pthread_t thread;
    cudaGetLastError();
    pthread_create(&thread, 0, other_thread, 0);
    pthread_join(thread, 0);
    CHECK(cudaGetLastError() == 0);
    __cudaInitModule(fat_handle);
    CHECK(*shared_count == 5 + 32);

    OK(cudaStreamDestroy(a));
    CHECK(cudaStreamDestroy(a) == 400 && cudaStreamSynchronize(a) == 400);
    CHECK(cudaStreamSynchronize((stream_t)0x1234) == 400);
    OK(cudaEventDestroy(start));
    CHECK(cudaEventRecord(start, 0) == 400);
    OK(cudaFreeHost(pinned));
    OK(cudaDeviceReset());
    // The program ends without releasing everything.
    puts("ok");
    return 0;
}
