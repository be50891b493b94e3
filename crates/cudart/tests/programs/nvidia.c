// Fake NVIDIA libraries for machines without a GPU: functions that print their arguments. Events have a clock
// that advances by itself.
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef struct { unsigned x, y, z; } dim3;
typedef struct { size_t width, height, depth; } extent;
typedef struct { void *ptr; size_t pitch, xsize, ysize; } pitched;
typedef struct { int x, y, z, w, kind; } channels;

#ifdef RUNTIME
int cudaMalloc(void **place, size_t bytes) {
    printf("cudaMalloc %zu\n", bytes);
    *place = (void *)0x1230;
    return 0;
}

int cudaMemset3D(pitched to, int value, extent e) {
    printf("cudaMemset3D %p %zu %zu %zu %d %zu %zu %zu\n", to.ptr, to.pitch, to.xsize, to.ysize, value, e.width, e.height, e.depth);
    return 1;
}

channels cudaCreateChannelDesc(int x, int y, int z, int w, int kind) {
    return (channels){x, y, z, w, kind};
}

const char *cudaGetErrorString(int error) {
    return error == 0 ? "fine" : "not fine";
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *t, void *b, void *bd, void *g, int *w) {
    printf("__cudaRegisterFunction %s %d %p %p\n", name, limit, (void *)g, (void *)w);
}

int cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, void *stream) {
    printf("cudaLaunchKernel %u %u %u, %u %u %u, %d, %zu, %p\n", grid.x, grid.y, grid.z, block.x, block.y, block.z, *(int *)arguments[0], shared, stream);
    return grid.x == 0 ? 9 : 0;
}

#define NAME(name) cuda##name
#define CREATE cudaEventCreateWithFlags
int cudaGetDevice(int *device) {
    *device = 0;
    return 0;
}
int cudaStreamCreateWithFlags(void **stream, unsigned flags) {
    *stream = (void *)0x77;
    return 0;
}
int cudaDeviceSynchronize(void) {
    return 0;
}
#else
int cuInit(unsigned flags) {
    printf("cuInit %u\n", flags);
    return 0;
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
    *function = (void *)0x500;
    return 0;
}

int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **params, void **more) {
    printf("cuLaunchKernel %p %u %u %u %u %u %u %u %p %p %p\n", f, gx, gy, gz, bx, by, bz, shared, stream, (void *)params, (void *)more);
    return 0;
}

int cuTexRefSetMipmapLevelBias(void *reference, float bias) {
    printf("cuTexRefSetMipmapLevelBias %p %g\n", reference, bias);
    return 0;
}

int cuTensorMapEncodeIm2col(void *map, int type, unsigned rank, void *address, const unsigned long *dims, const unsigned long *strides, const int *lower, const int *upper, unsigned channels, unsigned pixels, const unsigned *element, int inter, int swizzle, int l2, int fill) {
    printf("cuTensorMapEncodeIm2col %d %u %u %u %d %d %d %d\n", type, rank, channels, pixels, inter, swizzle, l2, fill);
    return 0;
}

int cuGetProcAddress_v2(const char *name, void **place, int version, unsigned long flags, int *found) {
    *place = strcmp(name, "cuInit") == 0 ? (void *)cuInit : strcmp(name, "cuLaunchKernel") == 0 ? (void *)cuLaunchKernel : 0;
    return *place ? 0 : 500;
}

#define NAME(name) cu##name
#define CREATE cuEventCreate
int cuCtxGetCurrent(void **context) {
    *context = (void *)0x900;
    return 0;
}
int cuStreamCreate(void **stream, unsigned flags) {
    *stream = (void *)0x77;
    return 0;
}
int cuCtxSynchronize(void) {
    return 0;
}
#endif

// Milliseconds.
static float now, times[64];
static size_t events;
int CREATE(size_t *event, unsigned flags) {
    *event = ++events;
    return events < 64 ? 0 : 2;
}
int NAME(EventRecord)(size_t event, void *stream) {
    times[event] = now += 0.001f;
    return 0;
}
int NAME(EventQuery)(size_t event) {
    return 0;
}
int NAME(EventSynchronize)(size_t event) {
    return 0;
}
int NAME(EventElapsedTime)(float *milliseconds, size_t from, size_t to) {
    *milliseconds = times[to] - times[from];
    return 0;
}
int NAME(StreamIsCapturing)(void *stream, int *status) {
    *status = stream == (void *)0x66;
    return 0;
}
int NAME(ThreadExchangeStreamCaptureMode)(int *mode) {
    static int kept;
    int before = kept;
    kept = *mode;
    *mode = before;
    return 0;
}
