// Events of whole contexts, device resources, clusters of blocks, deprecated launches, memory handles, the
// log, small queries.

#include "cuda.h"
#include <unistd.h>

struct attribute { int id, pad; unsigned value[16]; };
struct config { dim3 grid, block; size_t shared; stream_t stream; struct attribute *attributes; unsigned count; };
struct driver_config { unsigned grid[3], block[3], shared; stream_t stream; struct attribute *attributes; unsigned count; };
struct resource { int kind; char pad[92]; unsigned words[10]; void *next; };
struct memory { int type, handles, location, id; void *security; unsigned char flags[8]; };
struct side { size_t x, y, z, level; int kind; const void *host; uint64_t device; void *array, *context; size_t pitch, height; };
struct peer { struct side from, to; size_t width, height, depth; };
struct launch { void *function; unsigned grid[3], block[3], shared; stream_t stream; void **params; };

int cuCtxGetCurrent(void **context), cuCtxRecordEvent(void *context, event_t event), cuCtxWaitEvent(void *context, event_t event);
int cudaDeviceGetExecutionCtx(void **context, int device), cudaExecutionCtxGetDevice(int *device, void *context), cudaExecutionCtxGetId(void *context, uint64_t *id);
int cudaExecutionCtxStreamCreate(stream_t *stream, void *context, unsigned flags, int priority), cudaExecutionCtxSynchronize(void *context);
int cudaExecutionCtxRecordEvent(void *context, event_t event), cudaExecutionCtxWaitEvent(void *context, event_t event), cudaExecutionCtxDestroy(void *context);
int cudaDeviceGetDevResource(int device, struct resource *resource, int kind), cuStreamGetDevResource(stream_t stream, struct resource *resource, int kind);
int cuCtxGetDevResource(void *context, struct resource *resource, int kind), cuDeviceGetExecAffinitySupport(int *support, int kind, int device), cuStreamGetGreenCtx(stream_t stream, void **part);
int cuLogsRegisterCallback(void (*function)(void *, int, char *, size_t), void *data, void **handle), cuLogsUnregisterCallback(void *handle), cuLogsCurrent(unsigned *iterator, unsigned flags);
int cuLogsDumpToMemory(unsigned *iterator, char *buffer, size_t *size, unsigned flags), cuLogsDumpToFile(unsigned *iterator, const char *path, unsigned flags);
int cuMemRetainAllocationHandle(void **memory, void *address), cuMemGetAllocationPropertiesFromHandle(struct memory *properties, void *memory), cuMemRelease(void *memory);
int cuMemUnmap(uint64_t address, size_t bytes), cuMemAddressFree(uint64_t address, size_t bytes);
int cuFuncSetBlockShape(void *function, int x, int y, int z), cuFuncSetSharedSize(void *function, unsigned bytes), cuParamSetSize(void *function, unsigned bytes);
int cuParamSeti(void *function, int offset, unsigned value), cuParamSetf(void *function, int offset, float value), cuParamSetv(void *function, int offset, void *value, unsigned bytes);
int cuLaunch(void *function), cuLaunchGrid(void *function, int width, int height), cuLaunchGridAsync(void *function, int width, int height, stream_t stream);
int cudaLaunchKernelExC(const struct config *config, const void *function, void **args), cuLaunchKernelEx(const struct driver_config *config, void *function, void **args, void **extra);
int cudaOccupancyMaxPotentialClusterSize(int *size, const void *function, const struct config *config), cudaOccupancyMaxActiveClusters(int *count, const void *function, const struct config *config);
int cuOccupancyMaxPotentialClusterSize(int *size, void *function, const struct driver_config *config), cuOccupancyMaxActiveClusters(int *count, void *function, const struct driver_config *config);
int cuFuncGetAttribute(int *value, int attribute, void *function), cuFuncSetAttribute(void *function, int attribute, int value);
int cudaGraphKernelNodeSetAttribute(node_t node, int attribute, const unsigned *value), cudaGraphKernelNodeGetAttribute(node_t node, int attribute, unsigned *value);
int cudaGraphKernelNodeCopyAttributes(node_t to, node_t from), cudaGraphKernelNodeSetParams(node_t node, const kernel_params *params);
int cuLaunchHostFunc_v2(stream_t stream, void (*function)(void *), void *data, unsigned mode), cuMemcpy3DPeer(const struct peer *copy);
int cuLaunchCooperativeKernelMultiDevice(struct launch *list, unsigned devices, unsigned flags), cudaSetDoubleForDevice(double *value);
int cuDeviceGetHostAtomicCapabilities(unsigned *capabilities, const int *operations, unsigned count, int device), cuDeviceGetProperties(int *properties, int device);
int cuGraphInstantiate(void **exec, graph_t graph, node_t *node, char *messages, size_t bytes), cuLinkCreate(unsigned count, void *options, void *values, void **state), cuLinkDestroy(void *state);
int cuGLInit(void), cuGetProcAddress_v2_ptsz(const char *name, void **place, int version, uint64_t flags, int *found);

static const char *MODULE = ".version 8.0\n.target sm_90\n.address_size 64\n"
    // Each block writes to its neighbour in the cluster, and returns the value that it found and the number
    // of blocks.
    ".visible .entry around(.param .u64 out)\n{\n.reg .b32 %r<9>;\n.reg .b64 %rd<3>;\n.shared .align 4 .b32 tile[1];\n"
    "ld.param.u64 %rd1, [out];\nmov.u32 %r1, %cluster_ctarank;\nmov.u32 %r2, %cluster_nctarank;\nmov.u32 %r3, %ctaid.x;\n"
    "add.u32 %r4, %r1, 1;\nrem.u32 %r4, %r4, %r2;\nmapa.shared::cluster.u32 %r5, tile, %r4;\nst.shared::cluster.u32 [%r5], %r3;\n"
    "barrier.cluster.arrive;\nbarrier.cluster.wait;\nld.shared.u32 %r6, [tile];\nmad.lo.u32 %r7, %r2, 100, %r6;\n"
    "mul.wide.u32 %rd2, %r3, 4;\nadd.u64 %rd1, %rd1, %rd2;\nst.global.u32 [%rd1], %r7;\nret;\n}\n"
    ".visible .entry pair(.param .u64 out)\n.reqnctapercluster 2\n{\nret;\n}\n"
    // A number, a float and an address in one parameter block.
    ".visible .entry sum(.param .u32 a, .param .f32 b, .param .u64 out)\n{\n.reg .b32 %r<6>;\n.reg .b64 %rd<3>;\n.reg .f32 %f<3>;\n"
    "ld.param.u32 %r1, [a];\nld.param.f32 %f1, [b];\nld.param.u64 %rd1, [out];\ncvt.rn.f32.u32 %f2, %r1;\nadd.f32 %f2, %f2, %f1;\n"
    "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\nmad.lo.u32 %r2, %r2, %r3, %r4;\n"
    "mul.wide.u32 %rd2, %r2, 4;\nadd.u64 %rd1, %rd1, %rd2;\nst.global.f32 [%rd1], %f2;\nret;\n}\n";

static void *module;
static int shares;

static void events(void) {
    void *context, *whole, *same;
    stream_t streams[2], later;
    event_t event;
    int device = 7, support = 7;
    uint64_t id;
    float *memory;
    OK(cuCtxGetCurrent(&context));
    OK(cudaDeviceGetExecutionCtx(&whole, 0));
    OK(cudaExecutionCtxGetDevice(&device, whole));
    OK(cudaExecutionCtxGetId(whole, &id));
    CHECK(device == 0 && cudaDeviceGetExecutionCtx(&same, 1) == 101 && cudaExecutionCtxGetDevice(&device, 0) == 1 && cudaExecutionCtxDestroy(whole) == 1);
    OK(cudaMalloc(&memory, 1 << 20));
    OK(cudaEventCreate(&event));
    OK(cudaStreamCreate(&streams[0]));
    OK(cudaExecutionCtxStreamCreate(&streams[1], whole, 1, 0));
    for (int i = 0; i < 2; i++) LAUNCH(1 << 8, 256, streams[i], scale(memory + i * (1 << 16), memory + i * (1 << 16), 1, 1 << 16));
    OK(cuCtxRecordEvent(context, event));
    OK(cudaEventSynchronize(event));
    // All work submitted before is done.
    OK(cudaStreamQuery(streams[0]));
    OK(cudaStreamQuery(streams[1]));
    OK(cudaExecutionCtxRecordEvent(whole, event));
    OK(cudaExecutionCtxWaitEvent(whole, event));
    OK(cuCtxWaitEvent(context, event));
    OK(cudaStreamCreate(&later));
    OK(cudaExecutionCtxSynchronize(whole));
    OK(cudaStreamQuery(later));
    CHECK(cuCtxRecordEvent(context, (event_t)5) == 400 && cuCtxWaitEvent((void *)5, event) == 201);
    // A captured stream cannot take part, and the capture becomes invalid.
    graph_t graph;
    OK(cudaStreamBeginCapture(later, 0));
    CHECK(cuCtxRecordEvent(context, event) == 900);
    CHECK(cudaStreamEndCapture(later, &graph) == 901);
    // Resources: all multiprocessors in one partition.
    struct resource resource;
    int count;
    void *part = &part;
    OK(cudaDeviceGetAttribute(&count, 16, 0));
    OK(cudaDeviceGetDevResource(0, &resource, 1));
    CHECK(resource.kind == 1 && resource.words[0] == (unsigned)count && resource.words[1] == (unsigned)count);
    OK(cuStreamGetDevResource(later, &resource, 1));
    OK(cuCtxGetDevResource(context, &resource, 1));
    CHECK(cuCtxGetDevResource(context, &resource, 1000) == 914);
    OK(cuDeviceGetExecAffinitySupport(&support, 0, 0));
    OK(cuStreamGetGreenCtx(later, &part));
    CHECK(support == 0 && part == 0);
    OK(cudaStreamDestroy(later));
    OK(cudaFree(memory));
}

static void clusters(void) {
    void *around, *pair;
    unsigned *out, back[8];
    int value = 0, count;
    OK(cuModuleGetFunction(&around, module, "around"));
    OK(cuModuleGetFunction(&pair, module, "pair"));
    OK(cudaMalloc(&out, 32));
    struct attribute four = {4, 0, {4, 1, 1}};
    struct driver_config config = {{8, 1, 1}, {1, 1, 1}, 0, 0, &four, 1};
    void *args[] = {&out};
    OK(cuLaunchKernelEx(&config, around, args, 0));
    OK(cudaMemcpy(back, out, 32, TO_HOST));
    CHECK(back[0] == 403 && back[1] == 400 && back[4] == 407 && back[7] == 406);
    struct config same = {{8, 1, 1}, {1, 1, 1}, 0, 0, &four, 1};
    four.value[0] = 2;
    OK(cudaLaunchKernelExC(&same, around, args));
    OK(cudaMemcpy(back, out, 32, TO_HOST));
    CHECK(back[0] == 201 && back[1] == 200 && back[7] == 206);
    // Sizes that do not divide the grid, that are too large, or that differ from the kernel's own.
    four.value[0] = 3;
    CHECK(cuLaunchKernelEx(&config, around, args, 0) == 912);
    four.value[0] = 16, config.grid[0] = 16;
    CHECK(cuLaunchKernelEx(&config, around, args, 0) == 912);
    four.value[0] = 4;
    CHECK(cuLaunchKernelEx(&config, pair, args, 0) == 912);
    OK(cuOccupancyMaxPotentialClusterSize(&value, around, &config));
    CHECK(value == 8);
    OK(cuFuncSetAttribute(around, 14, 1));
    OK(cuOccupancyMaxPotentialClusterSize(&value, around, &config));
    CHECK(value == 16);
    OK(cudaOccupancyMaxPotentialClusterSize(&value, pair, &same));
    CHECK(value == 2);
    OK(cuOccupancyMaxActiveClusters(&count, around, &config));
    OK(cudaDeviceGetAttribute(&value, 16, 0));
    CHECK(count == value);
    same.count = 0;
    CHECK(cudaOccupancyMaxActiveClusters(&count, around, &same) == 912);
    OK(cudaOccupancyMaxActiveClusters(&count, pair, &same));
    // A size that the program requires.
    OK(cuFuncGetAttribute(&value, 11, pair));
    CHECK(value == 2 && cuFuncSetAttribute(pair, 11, 4) == 800);
    OK(cuFuncSetAttribute(around, 11, 2));
    OK(cuLaunchKernel(around, 8, 1, 1, 1, 1, 1, 0, 0, args, 0));
    OK(cudaMemcpy(back, out, 32, TO_HOST));
    CHECK(back[0] == 201);
    OK(cuFuncSetAttribute(around, 11, 0));
    // Graph nodes.
    graph_t graph;
    node_t node, other;
    void *exec;
    unsigned set[16] = {8, 1, 1}, got[16];
    kernel_params params = {around, {8, 1, 1}, {1, 1, 1}, 0, args, 0};
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddKernelNode(&node, graph, 0, 0, &params));
    OK(cudaGraphAddKernelNode(&other, graph, &node, 1, &params));
    OK(cudaGraphKernelNodeGetAttribute(node, 4, got));
    CHECK(got[0] == 1);
    OK(cudaGraphKernelNodeSetAttribute(node, 4, set));
    set[0] = 5;
    CHECK(cudaGraphKernelNodeSetAttribute(node, 4, set) == 912 && cudaGraphKernelNodeSetAttribute(node, 99, set) == 1);
    OK(cudaGraphKernelNodeSetAttribute(node, 8, set));
    OK(cudaGraphKernelNodeCopyAttributes(other, node));
    OK(cudaGraphKernelNodeSetParams(other, &params));
    OK(cudaGraphKernelNodeGetAttribute(other, 4, got));
    CHECK(got[0] == 8);
    OK(cudaGraphKernelNodeGetAttribute(other, 8, got));
    CHECK(got[0] == 5);
    OK(cuGraphInstantiate(&exec, graph, &node, 0, 0));
    OK(cudaGraphLaunch(exec, 0));
    OK(cudaMemcpy(back, out, 32, TO_HOST));
    CHECK(back[0] == 807 && back[3] == 802);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
    OK(cudaFree(out));
}

static void called(void *data) { *(int *)data += 1; }

static void launches(void) {
    void *sum;
    float *out, back[4];
    int calls = 0;
    stream_t stream;
    OK(cuModuleGetFunction(&sum, module, "sum"));
    OK(cudaMalloc(&out, 16));
    OK(cudaMemset(out, 0, 16));
    OK(cudaStreamCreate(&stream));
    OK(cuParamSetSize(sum, 16));
    OK(cuParamSeti(sum, 0, 5));
    OK(cuParamSetf(sum, 4, 0.5f));
    OK(cuParamSetv(sum, 8, &out, 8));
    CHECK(cuLaunch(sum) == 1 && cuFuncSetBlockShape(sum, 0, 1, 1) == 1 && cuFuncSetBlockShape((void *)3, 1, 1, 1) == 400);
    OK(cuFuncSetBlockShape(sum, 2, 1, 1));
    OK(cuFuncSetSharedSize(sum, 0));
    OK(cuLaunch(sum));
    OK(cudaMemcpy(back, out, 16, TO_HOST));
    CHECK(back[0] == 5.5f && back[1] == 5.5f && back[2] == 0);
    OK(cuParamSeti(sum, 0, 6));
    OK(cuLaunchGridAsync(sum, 2, 1, stream));
    OK(cuLaunchHostFunc_v2(stream, called, &calls, 1));
    CHECK(cuLaunchHostFunc_v2(stream, called, &calls, 2) == 1);
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemcpy(back, out, 16, TO_HOST));
    CHECK(back[3] == 6.5f && calls == 1);
    unsigned a = 7;
    float b = 1;
    void *args[] = {&a, &b, &out};
    struct launch one = {sum, {1, 1, 1}, {4, 1, 1}, 0, stream, args};
    OK(cuLaunchCooperativeKernelMultiDevice(&one, 1, 0));
    CHECK(cuLaunchCooperativeKernelMultiDevice(&one, 2, 0) == 1);
    OK(cudaStreamSynchronize(stream));
    // A box, between contexts.
    void *context;
    OK(cuCtxGetCurrent(&context));
    struct peer copy = {{.kind = 2, .device = (uint64_t)out, .context = context, .pitch = 8}, {.kind = 1, .host = back, .context = context, .pitch = 4}, 4, 2, 1};
    memset(back, 0, 16);
    OK(cuMemcpy3DPeer(&copy));
    CHECK(back[0] == 8 && back[1] == 8 && back[2] == 0);
    copy.to.context = (void *)4;
    CHECK(cuMemcpy3DPeer(&copy) == 201);
    OK(cudaStreamDestroy(stream));
    OK(cudaFree(out));
}

static void handles(void) {
    struct memory properties = {1, 1, 1, 0, 0, {0}}, told;
    void *memory, *same;
    uint64_t address;
    enum { SIZE = 2 << 20 };
    int status = cuMemCreate(&memory, SIZE, &properties, 0);
    if (!shares) {
        CHECK(status == 801);
        return;
    }
    OK(status);
    OK(cuMemGetAllocationPropertiesFromHandle(&told, memory));
    CHECK(told.type == 1 && told.handles == 1 && told.location == 1);
    OK(cuMemAddressReserve(&address, 2 * SIZE, 0, 0, 0));
    OK(cuMemMap(address, SIZE, 0, memory, 0));
    CHECK(cuMemRetainAllocationHandle(&same, (void *)(address + SIZE)) == 1);
    OK(cuMemRetainAllocationHandle(&same, (void *)(address + 100)));
    CHECK(same == memory);
    OK(cuMemRelease(memory));
    OK(cuMemRelease(memory));
    CHECK(cuMemRelease(memory) == 1);
    // It is still mapped, and its handle can be retained again.
    OK(cuMemRetainAllocationHandle(&same, (void *)address));
    CHECK(same == memory);
    OK(cuMemRelease(same));
    OK(cuMemUnmap(address, SIZE));
    CHECK(cuMemRetainAllocationHandle(&same, (void *)address) == 1);
    OK(cuMemAddressFree(address, 2 * SIZE));
    properties.location = 0;
    CHECK(cuMemCreate(&memory, SIZE, &properties, 0) == 1);
    properties.location = 1, properties.id = 4;
    CHECK(cuMemCreate(&memory, SIZE, &properties, 0) == 101);
}

static char heard[200];
static void hear(void *data, int level, char *message, size_t length) {
    CHECK(data == heard && level == 0 && strlen(message) == length);
    snprintf(heard, sizeof heard, "%s", message);
}

static void logs(void) {
    void *handle, *memory;
    unsigned iterator;
    char text[400], path[] = "/tmp/broadloom-logs-XXXXXX";
    size_t size = sizeof text;
    CHECK(cuLogsRegisterCallback(0, 0, &handle) == 1);
    OK(cuLogsRegisterCallback(hear, heard, &handle));
    OK(cuLogsCurrent(&iterator, 0));
    unsigned start = iterator;
    CHECK(cuMemFree_v2(12345) == 1);
    CHECK(strcmp(heard, "cuMemFree_v2: invalid argument (CUDA_ERROR_INVALID_VALUE)") == 0);
    OK(cuLogsUnregisterCallback(handle));
    CHECK(cuLogsUnregisterCallback(handle) == 1);
    CHECK(cudaMalloc(0, 8) == 1);
    CHECK(strstr(heard, "cuLogsUnregisterCallback") == 0);
    OK(cuLogsDumpToMemory(&iterator, text, &size, 0));
    CHECK(strncmp(text, "cuMemFree_v2: ", 14) == 0 && strstr(text, "\ncudaMalloc: invalid argument") != 0 && size == strlen(text) && text[size - 1] == '\n');
    OK(cuLogsDumpToMemory(&iterator, text, &size, 0));
    CHECK(size == 0);
    // A buffer too small for any entry, and one too small for all of them.
    size = 10;
    CHECK(cuLogsDumpToMemory(&start, text, &size, 0) == 1 && size == 0);
    size = 95;
    OK(cuLogsDumpToMemory(&start, text, &size, 0));
    CHECK(text[0] == '[' && strstr(text, "cuMemFree_v2") == 0);
    int file = mkstemp(path);
    CHECK(file >= 0 && close(file) == 0);
    OK(cuLogsDumpToFile(0, path, 0));
    FILE *from = fopen(path, "r");
    CHECK(from != 0 && fgets(text, sizeof text, from) != 0 && text[0] != 0);
    fclose(from);
    unlink(path);
    CHECK(cuLogsDumpToFile(0, "/nowhere/at/all", 0) == 1 && cuLogsCurrent(&iterator, 1) == 1);
    (void)memory;
}

int main(void) {
    double value = 0.5;
    unsigned capabilities[2];
    int operations[2] = {0, 9}, properties[14], attribute, found;
    void *state, *place;
    OK(cuInit(0));
    OK(cudaDeviceSynchronize());
    OK(cudaDeviceGetAttribute(&shares, 102, 0));
    OK(cuModuleLoadData(&module, MODULE));
    events();
    clusters();
    launches();
    handles();
    logs();
    OK(cudaSetDoubleForDevice(&value));
    CHECK(value == 0.5);
    OK(cuDeviceGetHostAtomicCapabilities(capabilities, operations, 2, 0));
    CHECK(shares ? capabilities[0] == 31 && (capabilities[1] & 24) == 24 : capabilities[0] == 0);
    operations[1] = 50;
    CHECK(cuDeviceGetHostAtomicCapabilities(capabilities, operations, 2, 0) == 1);
    OK(cuDeviceGetProperties(properties, 0));
    OK(cudaDeviceGetAttribute(&attribute, 12, 0));
    CHECK(properties[0] == 1024 && properties[9] == 32 && properties[11] == attribute);
    OK(cuLinkCreate(0, 0, 0, &state));
    OK(cuLinkDestroy(state));
    OK(cuGetProcAddress_v2_ptsz("cuLaunchKernel", &place, 12000, 0, &found));
    CHECK(found == 0 && place != 0 && cuGLInit() == 201);
    puts("ok");
    return 0;
}
