// What the test programs use of CUDA, declared as the headers declare it, and a fat binary written by hand as nvcc lays it out.

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { unsigned x, y, z; } dim3;
typedef void *stream_t, *event_t, *graph_t, *node_t;

void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *tid, void *bid, void *block, void *grid, int *warp);
void __cudaRegisterVar(void **handle, char *host, char *address, const char *name, int external, size_t bytes, int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **host, char *address, const char *name, int external, size_t bytes, int constant, int global);
char __cudaInitModule(void **handle);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, stream_t stream);
int __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
int __cudaGetKernel(void **kernel, const void *function);
int __cudaLaunchKernel(void *kernel, dim3 grid, dim3 block, void **args, size_t shared, stream_t stream);

int cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **args, size_t shared, stream_t stream);
int cudaMalloc(void *place, size_t bytes), cudaFree(void *address), cudaMallocHost(void *place, size_t bytes), cudaFreeHost(void *address);
int cudaMallocAsync(void *place, size_t bytes, stream_t stream), cudaFreeAsync(void *address, stream_t stream);
int cudaMallocManaged(void *place, size_t bytes, unsigned flags), cudaMallocPitch(void *place, size_t *pitch, size_t width, size_t height);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, stream_t stream);
int cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind);
int cudaMemset(void *to, int value, size_t bytes), cudaMemsetAsync(void *to, int value, size_t bytes, stream_t stream);
int cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset, int kind);
int cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset, int kind);
int cudaGetSymbolSize(size_t *bytes, const void *symbol);
int cudaHostRegister(void *address, size_t bytes, unsigned flags), cudaHostUnregister(void *address);
int cudaHostGetDevicePointer(void *place, void *host, unsigned flags);
int cudaGetLastError(void), cudaPeekAtLastError(void), cudaDeviceSynchronize(void), cudaDeviceReset(void), cudaSetDevice(int device);
const char *cudaGetErrorName(int status), *cudaGetErrorString(int status);
int cudaGetDeviceCount(int *count), cudaDeviceGetAttribute(int *value, int attribute, int device), cudaGetDeviceProperties(void *properties, int device);
int cudaStreamCreate(stream_t *stream), cudaStreamCreateWithFlags(stream_t *stream, unsigned flags), cudaStreamDestroy(stream_t stream);
int cudaStreamSynchronize(stream_t stream), cudaStreamQuery(stream_t stream), cudaStreamWaitEvent(stream_t stream, event_t event, unsigned flags);
int cudaStreamAddCallback(stream_t stream, void (*function)(stream_t, int, void *), void *data, unsigned flags);
int cudaLaunchHostFunc(stream_t stream, void (*function)(void *), void *data);
int cudaEventCreate(event_t *event), cudaEventDestroy(event_t event), cudaEventRecord(event_t event, stream_t stream);
int cudaEventQuery(event_t event), cudaEventSynchronize(event_t event), cudaEventElapsedTime(float *ms, event_t start, event_t end);
int cudaStreamBeginCaptureToGraph(stream_t stream, graph_t graph, const node_t *after, const void *edges, size_t count, int mode);
int cudaStreamBeginCapture(stream_t stream, int mode), cudaStreamEndCapture(stream_t stream, graph_t *graph), cudaStreamIsCapturing(stream_t stream, int *status);
int cudaGraphCreate(graph_t *graph, unsigned flags), cudaGraphDestroy(graph_t graph), cudaGraphGetNodes(graph_t graph, node_t *nodes, size_t *count);
int cudaGraphInstantiate(void **exec, graph_t graph, unsigned long long flags), cudaGraphLaunch(void *exec, stream_t stream), cudaGraphExecDestroy(void *exec);
typedef struct { const void *function; dim3 grid, block; unsigned shared; void **params, **extra; } kernel_params;
int cudaGraphAddKernelNode(node_t *node, graph_t graph, const node_t *after, size_t count, const kernel_params *params);
int cudaGraphAddMemcpyNode1D(node_t *node, graph_t graph, const node_t *after, size_t count, void *to, const void *from, size_t bytes, int kind);
int cudaGraphExecKernelNodeSetParams(void *exec, node_t node, const kernel_params *params);
int cudaFuncSetAttribute(const void *function, int attribute, int value);
int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int threads, size_t dynamic);
int cudaPointerGetAttributes(void *attributes, const void *pointer);
int cudaGraphicsMapResources(int count, void *resources, stream_t stream);

int cuInit(unsigned flags), cuDeviceGet(int *device, int number), cuCtxCreate_v2(void **context, unsigned flags, int device), cuCtxSynchronize(void);
int cuModuleLoadData(void **module, const void *image), cuModuleGetFunction(void **function, void *module, const char *name), cuModuleUnload(void *module);
int cuModuleLoadDataEx(void **module, const void *image, unsigned count, const int *options, void **values);
int cuLinkCreate_v2(unsigned count, const int *options, void **values, void **state), cuLinkAddData_v2(void *state, int kind, void *data, size_t bytes, const char *name, unsigned count, const int *options, void **values), cuLinkDestroy(void *state);
int cuModuleGetGlobal_v2(uint64_t *address, size_t *bytes, void *module, const char *name);
int cuMemAlloc_v2(uint64_t *address, size_t bytes), cuMemFree_v2(uint64_t address);
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes), cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes);
int cuMemsetD32_v2(uint64_t to, unsigned value, size_t count);
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, stream_t stream, void **params, void **extra);
int cuGetProcAddress_v2(const char *name, void **place, int version, uint64_t flags, int *found);
int cuGetProcAddress(const char *name, void **place, int version, uint64_t flags);
int cudaGetDriverEntryPointByVersion(const char *name, void **place, unsigned version, unsigned long long flags, int *found);
int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, stream_t stream), cuMemcpyAsync_ptsz(uint64_t to, uint64_t from, size_t bytes, stream_t stream);
int cuGetErrorName(int status, const char **name);
int cudaLibraryLoadData(void **library, const void *code, void *o, void *v, unsigned n, void *lo, void *lv, unsigned ln), cudaLibraryUnload(void *library);
int cudaLibraryGetKernelCount(unsigned *count, void *library), cudaLibraryEnumerateKernels(void **kernels, unsigned room, void *library);
int cudaLibraryGetKernel(void **kernel, void *library, const char *name), cuKernelGetLibrary(void **library, void *kernel);
int cuKernelGetParamCount(void *kernel, size_t *count), cuKernelGetParamInfo(void *kernel, size_t index, size_t *offset, size_t *bytes);
int cuOccupancyMaxPotentialBlockSize(int *blocks, int *threads, void *function, void *of_size, size_t dynamic, int limit);
int cuGraphCreate(graph_t *graph, unsigned flags), cuGraphDestroy(graph_t graph), cuGraphInstantiateWithFlags(void **exec, graph_t graph, unsigned long long flags);
int cuGraphLaunch(void *exec, stream_t stream), cuGraphExecDestroy(void *exec), cuGraphGetEdges(graph_t graph, node_t *from, node_t *to, size_t *count);
int cuGraphAddMemsetNode(node_t *node, graph_t graph, const node_t *after, size_t count, const void *params, void *context);
int cuGraphAddKernelNode_v2(node_t *node, graph_t graph, const node_t *after, size_t count, const void *params);
int cuGraphAddMemcpyNode(node_t *node, graph_t graph, const node_t *after, size_t count, const void *params, void *context), cuMemcpy3D_v2(const void *params);
int cuMemCreate(void **memory, size_t bytes, const void *properties, uint64_t flags), cuMemAddressReserve(uint64_t *address, size_t bytes, size_t alignment, uint64_t wish, uint64_t flags);
int cuMemMap(uint64_t address, size_t bytes, size_t offset, void *memory, uint64_t flags);
int cuMemExportToShareableHandle(void *handle, void *memory, int kind, uint64_t flags), cuMemImportFromShareableHandle(void **memory, void *handle, int kind);
int cudaGraphAddNode(node_t *node, graph_t graph, const node_t *after, const void *data, size_t count, void *params);
int cudaGraphGetEdges_v2(graph_t graph, node_t *from, node_t *to, void *data, size_t *count);

#define CHECK(what) \
    do { \
        if (!(what)) { \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #what); \
            exit(1); \
        } \
    } while (0)
#define OK(call) \
    do { \
        int status_ = (call); \
        if (status_ != 0) { \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(status_)); \
            exit(1); \
        } \
    } while (0)

enum { TO_DEVICE = 1, TO_HOST = 2, WITHIN = 3, DEFAULT = 4 };

// A container with one entry of plain PTX.
struct fat {
    uint32_t magic;
    uint16_t version, header;
    uint64_t size;
    uint16_t kind, entry_version;
    uint32_t entry_header;
    uint64_t padded;
    uint32_t compressed, options;
    uint16_t minor, major;
    uint32_t architecture;
    uint64_t name, flags, zero, uncompressed;
    char text[8192];
};
#define FAT(kind, text) {0xba55ed50, 1, 16, 64 + 8192, kind, 0x101, 64, 8192, 0, 0, 0, 7, 75, 0, 0x11, 0, 0, text}
struct wrapper {
    uint32_t magic, version;
    const void *data;
    void *linked;
};

// Kernels: out[i] = in[i] * scale + bias for i < n, with bias a variable of the module; a wild store; a count of launches.
#define PTX \
    ".version 7.0\n.target sm_75\n.address_size 64\n" \
    ".visible .global .align 4 .f32 bias = 0f3F800000;\n" \
    ".visible .global .attribute(.managed) .align 4 .u32 shared_count = 5;\n" \
    ".visible .entry scale(.param .u64 out, .param .u64 in, .param .f32 factor, .param .u32 n)\n{\n" \
    ".reg .pred %p; .reg .b32 %r<5>; .reg .b64 %rd<5>; .reg .f32 %f<4>;\n" \
    "ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in]; ld.param.f32 %f1, [factor]; ld.param.u32 %r1, [n];\n" \
    "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r2, %r2, %r3, %r4;\n" \
    "setp.ge.u32 %p, %r2, %r1; @%p bra END;\n" \
    "mul.wide.u32 %rd3, %r2, 4; add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;\n" \
    "ld.global.f32 %f2, [%rd2]; ld.global.f32 %f3, [bias]; fma.rn.f32 %f2, %f2, %f1, %f3; st.global.f32 [%rd1], %f2;\n" \
    "END: ret;\n}\n" \
    ".visible .entry wild(.param .u64 out)\n{\n" \
    ".reg .b64 %rd<2>; .reg .b32 %r<2>;\nld.param.u64 %rd1, [out]; mov.u32 %r1, 1; st.global.u32 [%rd1], %r1; ret;\n}\n" \
    ".visible .entry count()\n{\n" \
    ".reg .b32 %r<2>;\natom.global.add.u32 %r1, [shared_count], 1; ret;\n}\n"

static const struct fat fat_binary = FAT(1, PTX);
static struct wrapper wrapper = {0x466243b1, 1, &fat_binary, 0};
static void **fat_handle;
static float bias; // stands for the variable of the device
static unsigned *shared_count;

// What nvcc writes for `scale<<<…>>>(…)`: a function of the host for each kernel.
static void scale(float *out, const float *in, float factor, unsigned n) {
    void *args[] = {&out, &in, &factor, &n};
    dim3 grid, block;
    size_t shared;
    stream_t stream;
    if (__cudaPopCallConfiguration(&grid, &block, &shared, &stream) == 0)
        cudaLaunchKernel((const void *)scale, grid, block, args, shared, stream);
}
static void wild(void *out) {
    void *args[] = {&out}, *kernel = 0;
    dim3 grid, block;
    size_t shared;
    stream_t stream;
    __cudaGetKernel(&kernel, (const void *)wild);
    if (__cudaPopCallConfiguration(&grid, &block, &shared, &stream) == 0)
        __cudaLaunchKernel(kernel, grid, block, args, shared, stream);
}
static void tally(void) {
    dim3 grid, block;
    size_t shared;
    stream_t stream;
    void *args[1];
    if (__cudaPopCallConfiguration(&grid, &block, &shared, &stream) == 0)
        cudaLaunchKernel((const void *)tally, grid, block, args, shared, stream);
}
#define LAUNCH(blocks, threads, stream, call) (__cudaPushCallConfiguration((dim3){blocks, 1, 1}, (dim3){threads, 1, 1}, 0, stream) ? (void)0 : call)

static void unregister(void) { __cudaUnregisterFatBinary(fat_handle); }
__attribute__((constructor)) static void register_all(void) {
    fat_handle = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(fat_handle, (const char *)scale, "scale", "scale", -1, 0, 0, 0, 0, 0);
    __cudaRegisterFunction(fat_handle, (const char *)wild, "wild", "wild", -1, 0, 0, 0, 0, 0);
    __cudaRegisterFunction(fat_handle, (const char *)tally, "count", "count", -1, 0, 0, 0, 0, 0);
    __cudaRegisterVar(fat_handle, (char *)&bias, "bias", "bias", 0, 4, 0, 0);
    __cudaRegisterManagedVar(fat_handle, (void **)&shared_count, "shared_count", "shared_count", 0, 4, 0, 0);
    __cudaRegisterFatBinaryEnd(fat_handle);
    atexit(unregister);
}
