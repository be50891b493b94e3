// Conditional nodes, node parameters, user objects, stream memory operations.

#include "cuda.h"
#include <pthread.h>
#include <unistd.h>

int cudaGraphConditionalHandleCreate(uint64_t *handle, graph_t graph, unsigned value, unsigned flags);
int cudaGraphKernelNodeGetParams(node_t node, kernel_params *params), cudaGraphMemcpyNodeGetParams(node_t node, void *params);
int cudaGraphNodeGetParams(node_t node, void *params), cudaGraphNodeGetType(node_t node, int *type), cudaGraphClone(graph_t *copy, graph_t graph);
int cudaGraphNodeGetContainingGraph(node_t node, graph_t *graph), cudaGraphNodeGetLocalId(node_t node, unsigned *id), cudaGraphDebugDotPrint(graph_t graph, const char *path, unsigned flags);
int cudaUserObjectCreate(void **object, void *data, void (*destroy)(void *), unsigned count, unsigned flags), cudaUserObjectRelease(void *object, unsigned count);
int cudaGraphRetainUserObject(graph_t graph, void *object, unsigned count, unsigned flags), cudaGraphReleaseUserObject(graph_t graph, void *object, unsigned count);
int cuStreamWriteValue32_v2(stream_t stream, uint64_t address, unsigned value, unsigned flags), cuStreamWaitValue32_v2(stream_t stream, uint64_t address, unsigned value, unsigned flags);
int cuStreamWaitValue64_v2(stream_t stream, uint64_t address, uint64_t value, unsigned flags), cuStreamBatchMemOp_v2(stream_t stream, unsigned count, void *operations, unsigned flags);
int cuGraphAddBatchMemOpNode(node_t *node, graph_t graph, const node_t *after, size_t count, const void *params);

static const char *COUNT = ".version 7.5\n.target sm_75\n.address_size 64\n"
    ".extern .func cudaGraphSetConditional\n(\n\t.param .b64 cudaGraphSetConditional_param_0,\n\t.param .b32 cudaGraphSetConditional_param_1\n)\n;\n"
    // Adds 1 to a number. The condition is the value of the parameter, or 0 when the sum has reached the last
    // parameter.
    ".visible .entry count(.param .u64 handle, .param .u64 place, .param .u32 value, .param .u32 end)\n{\n"
    ".reg .pred %p<2>;\n.reg .b32 %r<6>;\n.reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [handle];\nld.param.u64 %rd2, [place];\nld.param.u32 %r3, [value];\nld.param.u32 %r4, [end];\n"
    "cvta.to.global.u64 %rd3, %rd2;\nld.global.u32 %r1, [%rd3];\nadd.u32 %r2, %r1, 1;\nst.global.u32 [%rd3], %r2;\n"
    "setp.ge.u32 %p1, %r2, %r4;\nselp.u32 %r5, 0, %r3, %p1;\n"
    "{\n.param .b64 param0;\nst.param.b64 [param0+0], %rd1;\n.param .b32 param1;\nst.param.b32 [param1+0], %r5;\n"
    "call.uni cudaGraphSetConditional, (param0, param1);\n}\nret;\n}\n";

struct any { int type, reserved[3]; uint64_t words[29], end; };
struct conditional { uint64_t handle; int type; unsigned size; graph_t *bodies; void *context; };

static void *function;
static stream_t stream;

static node_t launch(graph_t graph, node_t after, uint64_t handle, unsigned *place, unsigned value, unsigned end) {
    void *args[] = {&handle, &place, &value, &end};
    kernel_params params = {function, {1, 1, 1}, {1, 1, 1}, 0, args, 0};
    node_t node;
    OK(cudaGraphAddKernelNode(&node, graph, &after, after != 0, &params));
    return node;
}

static graph_t *choose(graph_t graph, node_t after, uint64_t handle, int type, unsigned size) {
    struct any params = {13, {0}, {0}, 0};
    struct conditional *conditional = (struct conditional *)params.words;
    node_t node;
    int found = -1;
    conditional->handle = handle, conditional->type = type, conditional->size = size;
    OK(cudaGraphAddNode(&node, graph, &after, 0, after != 0, &params));
    OK(cudaGraphNodeGetType(node, &found));
    CHECK(found == 13 && conditional->bodies != 0);
    OK(cudaGraphNodeGetParams(node, &params));
    CHECK(conditional->handle == handle && conditional->type == type && conditional->size == size);
    return conditional->bodies;
}

static unsigned at(unsigned *place) {
    unsigned value;
    OK(cudaMemcpy(&value, place, 4, TO_HOST));
    return value;
}

static void run(graph_t graph, int times) {
    void *exec;
    OK(cudaGraphInstantiate(&exec, graph, 0));
    while (times--) OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaGraphExecDestroy(exec));
}

static void conditions(unsigned *places) {
    graph_t graph, copy;
    uint64_t handle, other;
    OK(cudaMemset(places, 0, 64));
    // While a number is less than 5, and again when it starts from 0.
    OK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphConditionalHandleCreate(&handle, 0, 1, 1) == 400);
    OK(cudaGraphConditionalHandleCreate(&handle, graph, 1, 1));
    graph_t *body = choose(graph, 0, handle, 1, 1);
    launch(*body, 0, handle, places, 1, 5);
    CHECK(cudaGraphClone(&copy, graph) == 801);
    run(graph, 1);
    CHECK(at(places) == 5);
    run(graph, 2);
    CHECK(at(places) == 7);
    OK(cudaGraphDestroy(graph));
    // A kernel sets the condition of two bodies, inside a switch of three.
    for (unsigned value = 0; value < 4; value++) {
        OK(cudaMemset(places, 0, 64));
        OK(cudaGraphCreate(&graph, 0));
        OK(cudaGraphConditionalHandleCreate(&handle, graph, 9, 1));
        node_t first = launch(graph, 0, handle, places, value, 100);
        graph_t *bodies = choose(graph, first, handle, 2, 3);
        for (int i = 0; i < 2; i++) launch(bodies[i], 0, handle, places + 1 + i, 0, 100);
        OK(cudaGraphConditionalHandleCreate(&other, bodies[2], 0, 1));
        node_t inner = launch(bodies[2], 0, other, places + 3, 0, 100);
        graph_t *both = choose(bodies[2], inner, other, 0, 2);
        launch(both[0], 0, other, places + 4, 0, 100);
        launch(both[1], 0, other, places + 5, 0, 100);
        run(graph, 1);
        CHECK(at(places) == 1 && at(places + 1) == (value == 0) && at(places + 2) == (value == 1));
        CHECK(at(places + 3) == (value == 2) && at(places + 4) == 0 && at(places + 5) == (value == 2));
        OK(cudaGraphDestroy(graph));
    }
}

static void params(unsigned *places) {
    graph_t graph, found;
    node_t copy;
    kernel_params told;
    unsigned id = 9, host = 7;
    struct { void *array; size_t pos[3]; void *from; size_t pitch, xsize, ysize; void *array2; size_t pos2[3]; void *to; size_t pitch2, x2, y2; size_t extent[3]; int kind; } box;
    OK(cudaGraphCreate(&graph, 0));
    node_t node = launch(graph, 0, 0x40, places, 3, 4);
    OK(cudaGraphKernelNodeGetParams(node, &told));
    CHECK(told.function == function && told.grid.x == 1 && told.block.z == 1);
    CHECK(*(uint64_t *)told.params[0] == 0x40 && *(unsigned **)told.params[1] == places && *(unsigned *)told.params[3] == 4);
    OK(cudaGraphAddMemcpyNode1D(&copy, graph, &node, 1, places, &host, 4, TO_DEVICE));
    OK(cudaGraphMemcpyNodeGetParams(copy, &box));
    CHECK(box.from == &host && box.to == places && box.extent[0] == 4 && box.kind == TO_DEVICE);
    CHECK(cudaGraphMemcpyNodeGetParams(node, &box) == 1 && cudaGraphKernelNodeGetParams(copy, &told) == 1);
    OK(cudaGraphNodeGetContainingGraph(copy, &found));
    OK(cudaGraphNodeGetLocalId(copy, &id));
    CHECK(found == graph && id == 1);
    char path[] = "/tmp/broadloom-nodes-XXXXXX", text[4096] = "";
    close(mkstemp(path));
    OK(cudaGraphDebugDotPrint(graph, path, 0));
    FILE *file = fopen(path, "r");
    CHECK(file && fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    unlink(path);
    CHECK(strstr(text, "digraph") && strstr(text, "KERNEL count") && strstr(text, "->"));
    OK(cudaGraphDestroy(graph));
}

static int gone;
static void destroy(void *data) { gone += *(int *)data; }

static void objects(void) {
    graph_t graph;
    void *object, *exec;
    int one = 1;
    OK(cudaGraphCreate(&graph, 0));
    CHECK(cudaUserObjectCreate(&object, &one, destroy, 1, 0) == 1 && cudaUserObjectCreate(&object, &one, 0, 1, 1) == 1);
    OK(cudaUserObjectCreate(&object, &one, destroy, 1, 1));
    OK(cudaGraphRetainUserObject(graph, object, 1, 0));
    OK(cudaUserObjectRelease(object, 1));
    CHECK(gone == 0);
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphDestroy(graph));
    CHECK(gone == 0);
    OK(cudaGraphExecDestroy(exec));
    CHECK(gone == 1);
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaUserObjectCreate(&object, &one, destroy, 2, 1));
    OK(cudaGraphRetainUserObject(graph, object, 2, 1));
    CHECK(cudaGraphReleaseUserObject(graph, object, 3) == 1);
    OK(cudaGraphReleaseUserObject(graph, object, 2));
    CHECK(gone == 2);
    OK(cudaGraphDestroy(graph));
}

static void words(unsigned *places) {
    stream_t other;
    unsigned *flag;
    OK(cudaStreamCreateWithFlags(&other, 1));
    OK(cudaMallocHost(&flag, 64));
    memset(flag, 0, 64);
    OK(cudaMemset(places, 0, 64));
    int status = cuStreamWaitValue32_v2(other, (uint64_t)flag, 1, 1);
    if (status == 801) {
        // A device with its own address space cannot wait for the host.
        CHECK(cuStreamWriteValue32_v2(other, (uint64_t)flag, 1, 0) == 801);
        return;
    }
    OK(status);
    OK(cudaMemsetAsync(places, 5, 4, other));
    OK(cudaMemsetAsync(places + 1, 6, 4, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(cudaStreamQuery(other) == 600);
    OK(cuStreamWriteValue32_v2(stream, (uint64_t)flag, 1, 0));
    OK(cudaStreamSynchronize(other));
    CHECK(at(places) == 0x05050505);
    CHECK(cuStreamWaitValue32_v2(other, (uint64_t)flag + 1, 1, 1) == 1 && cuStreamWaitValue32_v2(other, (uint64_t)flag, 1, 7) == 1);
    CHECK(cuStreamWriteValue32_v2(other, 0x10, 1, 0) == 1);
    struct { int kind; unsigned pad; uint64_t address, value; uint64_t flags, rest[2]; } batch[] = {
        {5, 0, (uint64_t)(flag + 2), 0x100000000ull, 0, {0}},
        {4, 0, (uint64_t)(flag + 2), 0x100000000ull, 1, {0}},
        {6, 0, 0, 0, 0, {0}},
        {8, 0, 0, 0, 0, {0}},
    };
    // A reduction: operator and type come before the address.
    uint64_t reduce[6] = {8, 0 | 14ull << 32, (uint64_t)flag, 4, 0, 0};
    memcpy(&batch[3], reduce, sizeof reduce);
    OK(cuStreamBatchMemOp_v2(other, 4, batch, 0));
    OK(cudaStreamSynchronize(other));
    CHECK(flag[3] == 1 && flag[0] == 5);
    graph_t graph;
    node_t node;
    struct { void *context; unsigned count; void *list; unsigned flags; } params = {0, 4, batch, 0};
    OK(cudaGraphCreate(&graph, 0));
    OK(cuGraphAddBatchMemOpNode(&node, graph, 0, 0, &params));
    run(graph, 2);
    CHECK(flag[0] == 13);
    OK(cudaGraphDestroy(graph));
    OK(cudaStreamDestroy(other));
    OK(cudaFreeHost(flag));
}

int main(void) {
    void *module;
    unsigned *places;
    OK(cudaSetDevice(0));
    OK(cudaStreamCreate(&stream));
    OK(cudaMalloc(&places, 64));
    OK(cuModuleLoadData(&module, COUNT));
    OK(cuModuleGetFunction(&function, module, "count"));
    conditions(places);
    params(places);
    objects();
    words(places);
    // Everything is destroyed at once.
    size_t free_before, free_after, total;
    int cudaMemGetInfo(size_t *, size_t *);
    OK(cudaMemGetInfo(&free_before, &total));
    void *lost;
    OK(cudaMalloc(&lost, 1 << 20));
    OK(cudaMallocHost(&lost, 1 << 20));
    OK(cudaDeviceReset());
    OK(cudaMemGetInfo(&free_after, &total));
    CHECK(free_after >= free_before);
    CHECK(cudaStreamSynchronize(stream) == 400 && cudaFree(places) == 1);
    OK(cudaStreamCreate(&stream));
    puts("ok");
    return 0;
}
