// The driver: modules, launches, lookup of functions by name.

#include "cuda.h"
#include <unistd.h>

int main(void) {
    int device = -1, found = -1;
    void *context, *module, *function;
    uint64_t x, y, variable;
    size_t bytes;
    CHECK(cuInit(1) == 1);
    OK(cuInit(0));
    OK(cuDeviceGet(&device, 0));
    OK(cuCtxCreate_v2(&context, 0, device));
    OK(cuModuleLoadData(&module, PTX));
    CHECK(cuModuleGetFunction(&function, module, "nothing") == 500);
    OK(cuModuleGetFunction(&function, module, "scale"));
    OK(cuModuleGetGlobal_v2(&variable, &bytes, module, "bias"));
    CHECK(bytes == 4);
    float values[64], factor = 4;
    unsigned n = 64;
    for (int i = 0; i < 64; i++) values[i] = i;
    OK(cuMemAlloc_v2(&x, sizeof values));
    OK(cuMemAlloc_v2(&y, sizeof values));
    OK(cuMemcpyHtoD_v2(x, values, sizeof values));
    void *args[] = {&y, &x, &factor, &n};
    OK(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, 0, args, 0));
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH_v2(values, y, sizeof values));
    CHECK(values[9] == 37);

    // Arguments in one block.
    struct { uint64_t out, in; float factor; unsigned n; } block = {x, y, 2, 64};
    size_t size = sizeof block;
    void *extra[] = {(void *)1, &block, (void *)2, &size, 0};
    OK(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, 0, 0, extra));
    OK(cuMemcpyDtoH_v2(values, x, sizeof values));
    CHECK(values[9] == 75);
    CHECK(cuLaunchKernel(function, 1, 1, 1, 4096, 1, 1, 0, 0, args, 0) == 1);
    CHECK(cuLaunchKernel(0, 1, 1, 1, 1, 1, 1, 0, 0, args, 0) == 400);
    OK(cuMemsetD32_v2(x, 0x3f800000, 64));
    OK(cuMemcpyDtoH_v2(values, x, sizeof values));
    CHECK(values[0] == 1 && values[63] == 1);

    int (*allocate)(uint64_t *, size_t) = 0;
    OK(cuGetProcAddress_v2("cuMemAlloc", (void **)&allocate, 12000, 0, &found));
    CHECK(found == 0 && allocate == cuMemAlloc_v2);
    OK(cuGetProcAddress_v2("cuNothing", (void **)&allocate, 12000, 0, &found));
    CHECK(found == 1 && allocate == 0);
    OK(cuGetProcAddress_v2("cuMemAllocAsync", (void **)&allocate, 11010, 0, &found));
    CHECK(found == 2 && allocate == 0);
    CHECK(cuGetProcAddress("cuNothing", (void **)&allocate, 12000, 0) == 500);
    CHECK(cuGetProcAddress_v2("cuInit", (void **)&allocate, 99000, 0, &found) == 1);
    CHECK(cuGetProcAddress_v2("cuInit", (void **)&allocate, 12000, 3, &found) == 1);
    // A function has the parameters of the requested version.
    int (*synchronize)(void) = 0;
    OK(cuGetProcAddress_v2("cuCtxSynchronize", (void **)&synchronize, 12090, 0, &found));
    CHECK(found == 0 && synchronize == cuCtxSynchronize);
    OK(synchronize());
    OK(cudaGetDriverEntryPointByVersion("cuCtxSynchronize", (void **)&synchronize, 12000, 0, &found));
    CHECK(found == 0 && synchronize == cuCtxSynchronize);
    void *streams[2];
    OK(cudaGetDriverEntryPointByVersion("cuMemcpyAsync", &streams[0], 12000, 1, &found));
    OK(cudaGetDriverEntryPointByVersion("cuMemcpyAsync", &streams[1], 12000, 2, &found));
    CHECK(streams[0] == (void *)cuMemcpyAsync && streams[1] == (void *)cuMemcpyAsync_ptsz);
    const char *name;
    OK(cuGetErrorName(2, &name));
    CHECK(strcmp(name, "CUDA_ERROR_OUT_OF_MEMORY") == 0);
    CHECK(cuGetErrorName(12345, &name) == 1 && name == 0);

    // Kernels of a library, and of the runtime's.
    void *library, *kernels[8], *same;
    unsigned count = 0;
    size_t params = 0, start = 0;
    OK(cudaLibraryLoadData(&library, PTX, 0, 0, 0, 0, 0, 0));
    OK(cudaLibraryGetKernelCount(&count, library));
    CHECK(count == 3);
    OK(cudaLibraryEnumerateKernels(kernels, 8, library));
    OK(cudaLibraryGetKernel(&kernels[0], library, "scale"));
    OK(cuKernelGetParamCount(kernels[0], &params));
    OK(cuKernelGetParamInfo(kernels[0], 2, &start, &bytes));
    CHECK(params == 4 && start == 16 && bytes == 4);
    OK(cuKernelGetLibrary(&same, kernels[0]));
    CHECK(same == library);
    OK(cudaLibraryUnload(library));
    CHECK(cudaLibraryUnload(library) == 400 && cuKernelGetLibrary(&same, kernels[0]) == 400);
    int blocks = 0, threads = 0;
    OK(cuOccupancyMaxPotentialBlockSize(&blocks, &threads, function, 0, 0, 0));
    CHECK(blocks > 0 && threads >= 32 && threads % 32 == 0);

    // A graph of the driver: a fill, a launch, a copy.
    graph_t graph;
    node_t fill, launch, copy;
    void *exec;
    struct { uint64_t to; size_t pitch; unsigned value, size; size_t width, height; } zeros = {x, 0, 0, 4, 64, 1};
    struct { void *function; dim3 grid, block; unsigned shared; void **params, **extra; void *kernel, *context; } shape = {function, {1, 1, 1}, {64, 1, 1}, 0, args, 0, 0, 0};
    typedef struct { size_t x, y, z, level; unsigned kind; void *host; uint64_t device; void *array; size_t zero, pitch, height; } side;
    struct { side from, to; size_t width, height, depth; } box = {{.kind = 2, .device = y}, {.kind = 1, .host = values}, sizeof values, 1, 1};
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddMemsetNode(&fill, graph, 0, 0, &zeros, context));
    OK(cuGraphAddKernelNode_v2(&launch, graph, &fill, 1, &shape));
    OK(cuGraphAddMemcpyNode(&copy, graph, &launch, 1, &box, context));
    size_t edges = 0;
    OK(cuGraphGetEdges(graph, 0, 0, &edges));
    CHECK(edges == 2);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, 0));
    OK(cuCtxSynchronize());
    CHECK(values[0] == 1 && values[63] == 1);
    shape.block.x = 5000;
    CHECK(cuGraphAddKernelNode_v2(&launch, graph, 0, 0, &shape) == 1);
    // Errors of the driver are not errors of the runtime.
    cudaGetLastError();
    CHECK(cuGraphLaunch(graph, 0) == 400 && cudaGetLastError() == 0);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    values[5] = 77;
    box.from = (side){.kind = 1, .host = values, .x = 20}, box.to = (side){.kind = 2, .device = x, .x = 8};
    box.width = 4;
    OK(cuMemcpy3D_v2(&box));
    OK(cuMemcpyDtoH_v2(values, x, sizeof values));
    CHECK(values[2] == 77);

    // Memory that another process could open, if memory is the host's.
    int shareable = 0, file = -1;
    OK(cudaDeviceGetAttribute(&shareable, 103, 0));
    if (shareable) {
        int properties[8] = {1, 1, 1};
        void *memory, *again;
        uint64_t addresses;
        OK(cuMemCreate(&memory, 2 << 20, properties, 0));
        OK(cuMemExportToShareableHandle(&file, memory, 1, 0));
        OK(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)file, 1));
        CHECK(close(file) == 0 && cuMemImportFromShareableHandle(&same, (void *)(intptr_t)file, 1) == 1);
        OK(cuMemAddressReserve(&addresses, 4 << 20, 0, 0, 0));
        OK(cuMemMap(addresses, 2 << 20, 0, memory, 0));
        OK(cuMemMap(addresses + (2 << 20), 2 << 20, 0, again, 0));
        OK(cuMemsetD32_v2(addresses, 0x40a00000, 64));
        OK(cuMemcpyDtoH_v2(values, addresses + (2 << 20), sizeof values));
        CHECK(values[63] == 5);
    }

    // A module that is not PTX, and one that is machine code.
    CHECK(cuModuleLoadData(&module, "this is no module") == 218);
    static const struct fat code = FAT(2, "machine code");
    CHECK(cuModuleLoadData(&module, &code) == 209);

    // Logs, which programs print without initialising them: zero-terminated texts within their buffers.
    char info[64], error[16], *broken = "this is no module";
    const int logs[] = {3, 4, 0, 5, 6};
    void *room[] = {info, (void *)sizeof info, (void *)32, error, (void *)sizeof error};
    memset(info, 'x', sizeof info), memset(error, 'x', sizeof error);
    OK(cuModuleLoadDataEx(&module, PTX, 5, logs, room));
    CHECK(info[0] == 0 && error[0] == 0 && room[1] == 0 && room[4] == 0);
    room[1] = (void *)sizeof info, room[4] = (void *)sizeof error;
    CHECK(cuModuleLoadDataEx(&module, broken, 5, logs, room) == 218);
    CHECK(info[0] == 0 && strlen(error) == sizeof error - 1 && (size_t)room[4] == sizeof error - 1);
    void *linking;
    memset(info, 'x', sizeof info), memset(error, 'x', sizeof error);
    room[1] = (void *)sizeof info, room[4] = (void *)sizeof error;
    OK(cuLinkCreate_v2(5, logs, room, &linking));
    CHECK(info[0] == 0 && error[0] == 0);
    CHECK(cuLinkAddData_v2(linking, 1, broken, strlen(broken) + 1, "broken", 0, 0, 0) == 218 && strlen(error) == sizeof error - 1);
    OK(cuLinkDestroy(linking));
    OK(cuMemFree_v2(x));
    CHECK(cuMemFree_v2(x) == 1);
    puts("ok");
    return 0;
}
