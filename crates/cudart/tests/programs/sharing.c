// Memory and events shared between processes.

#include "cuda.h"
#include <sys/wait.h>
#include <unistd.h>

typedef struct { char bytes[64]; } handle;
int cudaIpcGetMemHandle(handle *place, void *address), cudaIpcOpenMemHandle(void *place, handle memory, unsigned flags), cudaIpcCloseMemHandle(void *address);
int cudaIpcGetEventHandle(handle *place, event_t event), cudaIpcOpenEventHandle(event_t *event, handle from), cudaEventCreateWithFlags(event_t *event, unsigned flags);
int cudaMemPoolExportToShareableHandle(void *descriptor, void *pool, int kind, unsigned flags), cudaMemPoolImportFromShareableHandle(void **pool, void *descriptor, int kind, unsigned flags);
int cudaMemPoolExportPointer(handle *place, void *address), cudaMemPoolImportPointer(void *place, void *pool, handle *from), cudaDeviceGetDefaultMemPool(void **pool, int device);

int cudaMemPoolCreate(void **pool, const void *properties), cudaMallocFromPoolAsync(void *place, size_t bytes, void *pool, stream_t stream);

struct letter { handle memory, small, event, pointer; };

static void send(int to, const void *data, size_t bytes) { CHECK(write(to, data, bytes) == (ssize_t)bytes); }
static void receive(int from, void *data, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        ssize_t got = read(from, (char *)data + done, bytes - done);
        CHECK(got > 0);
        done += got;
    }
}

enum { N = 100000 };

// The other process: doubles the values, and signals this with an event.
static int other(int from, int to) {
    struct letter letter;
    float *memory, *again, *small, *pooled, *host = malloc(N * sizeof(float));
    event_t event;
    stream_t stream;
    void *pool;
    receive(from, &letter, sizeof letter);
    OK(cudaIpcOpenMemHandle(&memory, letter.memory, 1));
    OK(cudaIpcOpenMemHandle(&again, letter.memory, 1));
    CHECK(memory == again);
    OK(cudaIpcOpenMemHandle(&small, letter.small, 1));
    OK(cudaIpcOpenEventHandle(&event, letter.event));
    OK(cudaStreamCreate(&stream));
    OK(cudaStreamWaitEvent(stream, event, 0));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemcpy(host, memory, N * sizeof(float), TO_HOST));
    for (int i = 0; i < N; i++) host[i] *= 2;
    OK(cudaMemcpyAsync(memory, host, N * sizeof(float), TO_DEVICE, stream));
    OK(cudaMemsetAsync(small, 7, 12, stream));
    OK(cudaEventRecord(event, stream));
    CHECK(cudaMemPoolImportFromShareableHandle(&pool, (void *)-1, 1, 0) == 1);
    OK(cudaMemPoolImportFromShareableHandle(&pool, (void *)(long)to, 1, 0));
    OK(cudaMemPoolImportPointer(&pooled, pool, &letter.pointer));
    CHECK(cudaMallocFromPoolAsync(&again, 16, pool, 0) == 1);
    OK(cudaMemset(pooled, 9, 16));
    OK(cudaDeviceSynchronize());
    // Imported memory of a pool is freed like local memory, memory of a handle is not.
    OK(cudaFreeAsync(pooled, stream));
    CHECK(cudaFreeAsync(pooled, stream) == 1 && cudaFree(memory) == 1 && cudaGetLastError() == 1);
    OK(cudaIpcCloseMemHandle(memory));
    OK(cudaIpcCloseMemHandle(memory));
    CHECK(cudaIpcCloseMemHandle(memory) == 1);
    OK(cudaIpcCloseMemHandle(small));
    send(to, "d", 1);
    receive(from, host, 1);
    return 0;
}

int main(void) {
    int there[2], back[2], status, descriptor = -1;
    CHECK(pipe(there) == 0 && pipe(back) == 0);
    pid_t child = fork();
    if (child == 0) return other(there[0], back[1]);
    float *memory, *small, *neighbour, *pooled, *host = malloc(N * sizeof(float)), few[4] = {1, 2, 3, 4}, told[4];
    struct letter letter;
    event_t event, plain;
    void *pool;
    char word;
    OK(cudaMalloc(&memory, N * sizeof(float)));
    OK(cudaMalloc(&neighbour, 16));
    OK(cudaMalloc(&small, 16));
    for (int i = 0; i < N; i++) host[i] = i;
    OK(cudaMemcpy(memory, host, N * sizeof(float), TO_DEVICE));
    OK(cudaMemcpy(neighbour, few, 16, TO_DEVICE));
    OK(cudaMemcpy(small, few, 16, TO_DEVICE));
    CHECK(cudaEventCreateWithFlags(&event, 4) == 1);
    OK(cudaEventCreateWithFlags(&event, 6));
    OK(cudaEventCreate(&plain));
    int first = cudaIpcGetMemHandle(&letter.memory, memory);
    if (first == 801) {
        // A device with its own address space shares nothing.
        close(there[1]);
        waitpid(child, &status, 0);
        puts("ok");
        return 0;
    }
    OK(first);
    OK(cudaIpcGetMemHandle(&letter.small, small));
    CHECK(cudaIpcGetEventHandle(&letter.event, plain) == 400 && cudaIpcGetMemHandle(&letter.small, host) == 1);
    OK(cudaIpcGetMemHandle(&letter.small, small));
    OK(cudaIpcGetEventHandle(&letter.event, event));
    float *own;
    CHECK(cudaIpcOpenMemHandle(&own, letter.memory, 1) == 201);
    OK(cudaDeviceGetDefaultMemPool(&pool, 0));
    CHECK(cudaMemPoolExportToShareableHandle(&descriptor, pool, 1, 0) == 1);
    struct { int type, handles, location, device; long more[9]; } shared = {1, 1, 1, 0, {0}};
    OK(cudaMemPoolCreate(&pool, &shared));
    OK(cudaMallocFromPoolAsync(&pooled, 16, pool, 0));
    OK(cudaMemPoolExportToShareableHandle(&descriptor, pool, 1, 0));
    CHECK(descriptor >= 0);
    OK(cudaMemPoolExportPointer(&letter.pointer, pooled));
    OK(cudaEventRecord(event, 0));
    OK(cudaEventSynchronize(event));
    send(there[1], &letter, sizeof letter);
    receive(back[0], &word, 1);
    OK(cudaEventSynchronize(event));
    OK(cudaMemcpy(host, memory, N * sizeof(float), TO_HOST));
    CHECK(host[1] == 2 && host[N - 1] == 2 * (N - 1));
    OK(cudaMemcpy(told, small, 16, TO_HOST));
    CHECK(told[3] == 4 && ((char *)told)[11] == 7);
    OK(cudaMemcpy(told, neighbour, 16, TO_HOST));
    CHECK(told[0] == 1 && told[3] == 4);
    OK(cudaMemcpy(told, pooled, 16, TO_HOST));
    CHECK(((char *)told)[15] == 9);
    send(there[1], "e", 1);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    OK(cudaFree(memory));
    OK(cudaMalloc(&memory, N * sizeof(float)));
    OK(cudaMemset(memory, 0, N * sizeof(float)));
    OK(cudaDeviceSynchronize());
    puts("ok");
    return 0;
}
