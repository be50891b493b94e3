// Graphs, captured and built node by node.

#include "cuda.h"

static void add_one(void *data) { ++*(int *)data; }

int main(void) {
    enum { N = 4096 };
    float in[N], out[N], *x, *y;
    stream_t a, b;
    event_t fork, join;
    graph_t graph;
    void *exec;
    int calls = 0, capturing = -1;
    size_t nodes = 0;
    OK(cudaStreamCreate(&a));
    OK(cudaStreamCreate(&b));
    OK(cudaEventCreate(&fork));
    OK(cudaEventCreate(&join));
    OK(cudaMalloc(&x, sizeof in));
    OK(cudaMalloc(&y, sizeof in));
    for (int i = 0; i < N; i++) in[i] = i;

    // Captured: a copy, two launches on two streams, a host function, a copy back.
    OK(cudaStreamBeginCapture(a, 0));
    OK(cudaMemcpyAsync(x, in, sizeof in, TO_DEVICE, a));
    OK(cudaEventRecord(fork, a));
    OK(cudaStreamWaitEvent(b, fork, 0));
    LAUNCH(N / 256, 256, b, scale(y, x, 2, N));
    OK(cudaEventRecord(join, b));
    OK(cudaLaunchHostFunc(a, add_one, &calls));
    OK(cudaStreamWaitEvent(a, join, 0));
    LAUNCH(N / 256, 256, a, scale(x, y, 1, N));
    OK(cudaMemcpyAsync(out, x, sizeof out, TO_HOST, a));
    OK(cudaStreamIsCapturing(a, &capturing));
    CHECK(capturing == 1);
    OK(cudaStreamEndCapture(a, &graph));
    OK(cudaStreamIsCapturing(b, &capturing));
    CHECK(capturing == 0);
    OK(cudaGraphGetNodes(graph, 0, &nodes));
    CHECK(nodes == 5 && calls == 0);
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphDestroy(graph));
    for (int round = 1; round <= 3; round++) {
        in[5] = round;
        memset(out, 0, sizeof out);
        OK(cudaGraphLaunch(exec, a));
        OK(cudaStreamSynchronize(a));
        CHECK(calls == round && out[5] == 2 * round + 2 && out[N - 1] == 2 * (N - 1) + 2);
    }
    OK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphLaunch(exec, a) == 400);
    CHECK(cudaStreamEndCapture(a, &graph) == 401);

    // Built node by node.
    node_t copy, kernel, back;
    float factor = 3;
    unsigned n = N;
    void *args[] = {&y, &x, &factor, &n};
    kernel_params params = {(void *)scale, {N / 128, 1, 1}, {128, 1, 1}, 0, args, 0};
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddMemcpyNode1D(&copy, graph, 0, 0, x, in, sizeof in, TO_DEVICE));
    OK(cudaGraphAddKernelNode(&kernel, graph, &copy, 1, &params));
    OK(cudaGraphAddMemcpyNode1D(&back, graph, &kernel, 1, out, y, sizeof out, TO_HOST));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, a));
    OK(cudaStreamSynchronize(a));
    CHECK(out[7] == 22);
    factor = 10;
    OK(cudaGraphExecKernelNodeSetParams(exec, kernel, &params));
    OK(cudaGraphLaunch(exec, a));
    OK(cudaStreamSynchronize(a));
    CHECK(out[7] == 71);
    CHECK(cudaGraphExecKernelNodeSetParams(exec, copy, &params) == 1);

    // Captured into an existing graph, whose handle is known.
    graph_t known, told = 0;
    OK(cudaGraphCreate(&known, 0));
    OK(cudaStreamBeginCaptureToGraph(a, known, 0, 0, 0, 0));
    LAUNCH(N / 256, 256, a, scale(y, x, 2, N));
    OK(cudaStreamEndCapture(a, 0));
    OK(cudaStreamBeginCaptureToGraph(a, known, 0, 0, 0, 0));
    LAUNCH(N / 256, 256, a, scale(y, x, 2, N));
    OK(cudaStreamEndCapture(a, &told));
    CHECK(told == known);
    OK(cudaGraphGetNodes(known, 0, &nodes));
    CHECK(nodes == 2);
    OK(cudaStreamBeginCapture(a, 0));
    CHECK(cudaStreamEndCapture(a, 0) == 1 && cudaGetLastError() == 1);
    OK(cudaStreamEndCapture(a, &told));
    CHECK(told != known);
    OK(cudaGraphDestroy(told));
    OK(cudaGraphDestroy(known));

    // Waiting for or querying a stream that is being captured invalidates the capture.
    for (int way = 0; way < 3; way++) {
        OK(cudaStreamBeginCapture(a, 0));
        CHECK((way == 0 ? cudaStreamSynchronize(a) : way == 1 ? cudaStreamQuery(a) : cudaDeviceSynchronize()) == 900);
        CHECK(cudaStreamEndCapture(a, &told) == 901 && cudaGetLastError() == 901);
    }
    OK(cudaStreamSynchronize(a));

    // Memory that a graph allocates and the program frees is allocated again by the next launch.
    float *own;
    OK(cudaStreamBeginCapture(a, 0));
    OK(cudaMallocAsync((void **)&own, sizeof in, a));
    OK(cudaMemcpyAsync(own, in, sizeof in, TO_DEVICE, a));
    OK(cudaMemcpyAsync(out, own, sizeof out, TO_HOST, a));
    OK(cudaStreamEndCapture(a, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, a));
    OK(cudaStreamSynchronize(a));
    OK(cudaFree(own));
    in[7] = 50;
    OK(cudaGraphLaunch(exec, a));
    OK(cudaFreeAsync(own, a));
    OK(cudaStreamSynchronize(a));
    CHECK(out[7] == 50);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));

    // Nodes of any kind, by one function.
    struct { int kind, zero[3]; union { uint64_t words[29]; kernel_params kernel; } of; uint64_t end; } any = {0};
    node_t fill, free_node, launch;
    OK(cudaGraphCreate(&graph, 0));
    any.kind = 10;
    any.of.words[13] = N * 4;
    OK(cudaGraphAddNode(&copy, graph, 0, 0, 0, &any));
    void *memory = (void *)any.of.words[14];
    CHECK(memory);
    memset(&any, 0, sizeof any);
    any.kind = 2; // zeros: destination, pitch, value and size, width, height
    any.of.words[0] = (uint64_t)memory, any.of.words[2] = (uint64_t)4 << 32, any.of.words[3] = N, any.of.words[4] = 1;
    OK(cudaGraphAddNode(&fill, graph, &copy, 0, 1, &any));
    memset(&any, 0, sizeof any);
    args[1] = &memory;
    any.of.kernel = params;
    OK(cudaGraphAddNode(&launch, graph, &fill, 0, 1, &any));
    memset(&any, 0, sizeof any);
    any.kind = 11;
    any.of.words[0] = (uint64_t)memory;
    OK(cudaGraphAddNode(&free_node, graph, &launch, 0, 1, &any));
    any.kind = 13;
    CHECK(cudaGraphAddNode(&free_node, graph, 0, 0, 0, &any) == 1);
    any.kind = 99;
    CHECK(cudaGraphAddNode(&free_node, graph, 0, 0, 0, &any) == 1);
    node_t from[4], to[4];
    size_t edges = 4;
    OK(cudaGraphGetEdges_v2(graph, from, to, 0, &edges));
    CHECK(edges == 3 && from[0] == copy && to[0] == fill && to[2] == free_node + 0);
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, a));
    OK(cudaStreamSynchronize(a));
    OK(cudaMemcpy(out, y, sizeof out, TO_HOST));
    CHECK(out[7] == 1);
    puts("ok");
    return 0;
}
