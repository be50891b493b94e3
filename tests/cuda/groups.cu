// One program for each of some newer parts of CUDA, named by its argument: conditional nodes of graphs, memory of another process, textures of the driver,
// words of memory that streams write and wait for, batches of copies.
#include "check.h"
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

// Counts up to 7; the condition is 0 once it is there.
__global__ void step(cudaGraphConditionalHandle handle, int *count) {
    *count += 1;
    cudaGraphSetConditional(handle, *count < 7 ? 1 : 0);
}

__global__ void sample(cudaTextureObject_t texture, float *out, int n) {
    int i = threadIdx.x;
    if (i < n) out[i] = tex1D<float>(texture, i + 0.5f);
}

__global__ void add(int *data, int n, int value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] += value;
}

// A function of the driver by its name: nothing is linked with its library.
template <class F> static F driver(const char *name, F) {
    void *place = nullptr;
    cudaDriverEntryPointQueryResult found;
    CALL(cudaGetDriverEntryPointByVersion(name, &place, 13000, cudaEnableDefault, &found));
    CHECK(found == cudaDriverEntryPointSuccess && place != nullptr);
    return reinterpret_cast<F>(place);
}
#define DRIVER(name) driver(#name, &name)

static void conditions() {
    int *count, back = 0;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphNode_t node, inner;
    cudaGraphExec_t exec;
    cudaGraphConditionalHandle handle;
    CALL(cudaMalloc(&count, sizeof(int)));
    CALL(cudaMemset(count, 0, sizeof(int)));
    CALL(cudaStreamCreate(&stream));
    CALL(cudaGraphCreate(&graph, 0));
    CALL(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
    cudaGraphNodeParams params = {};
    params.type = cudaGraphNodeTypeConditional;
    params.conditional.handle = handle;
    params.conditional.type = cudaGraphCondTypeWhile;
    params.conditional.size = 1;
    CALL(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
    void *arguments[] = {&handle, &count};
    cudaKernelNodeParams kernel = {};
    kernel.func = reinterpret_cast<void *>(step);
    kernel.gridDim = kernel.blockDim = dim3(1);
    kernel.kernelParams = arguments;
    CALL(cudaGraphAddKernelNode(&inner, params.conditional.phGraph_out[0], nullptr, 0, &kernel));
    CALL(cudaGraphInstantiate(&exec, graph, 0));
    CALL(cudaGraphLaunch(exec, stream));
    CALL(cudaStreamSynchronize(stream));
    CALL(cudaMemcpy(&back, count, sizeof(int), cudaMemcpyDefault));
    CHECK(back == 7);
    CALL(cudaGraphLaunch(exec, stream));
    CALL(cudaStreamSynchronize(stream));
    CALL(cudaMemcpy(&back, count, sizeof(int), cudaMemcpyDefault));
    CHECK(back == 8);
}

// The child adds to what its parent has.
static void shared() {
    const int n = 1000;
    int there[2], back[2], status = 0;
    char word;
    cudaIpcMemHandle_t handle;
    int *memory;
    CHECK(pipe(there) == 0 && pipe(back) == 0);
    if (fork() == 0) {
        // Without its parent it is not to wait for ever.
        close(there[1]);
        CHECK(read(there[0], &handle, sizeof handle) == sizeof handle);
        CALL(cudaIpcOpenMemHandle(reinterpret_cast<void **>(&memory), handle, cudaIpcMemLazyEnablePeerAccess));
        add<<<8, 128>>>(memory, n, 5);
        CALL(cudaDeviceSynchronize());
        CALL(cudaIpcCloseMemHandle(memory));
        CHECK(write(back[1], "d", 1) == 1);
        _exit(0);
    }
    CALL(cudaMalloc(&memory, n * sizeof(int)));
    CALL(cudaMemset(memory, 0, n * sizeof(int)));
    CALL(cudaDeviceSynchronize());
    CALL(cudaIpcGetMemHandle(&handle, memory));
    CHECK(write(there[1], &handle, sizeof handle) == sizeof handle && read(back[0], &word, 1) == 1);
    wait(&status);
    int host[n];
    CALL(cudaMemcpy(host, memory, sizeof host, cudaMemcpyDefault));
    CHECK(status == 0 && host[0] == 5 && host[n - 1] == 5);
}

static void textures() {
    float values[8] = {1, 2, 4, 8, 16, 32, 64, 128}, host[8], *out;
    CUarray array;
    CUtexObject texture;
    CUDA_ARRAY_DESCRIPTOR descriptor = {8, 0, CU_AD_FORMAT_FLOAT, 1};
    CALL(cudaMalloc(&out, sizeof host));
    CHECK(DRIVER(cuArrayCreate)(&array, &descriptor) == CUDA_SUCCESS);
    CHECK(DRIVER(cuMemcpyHtoA)(array, 0, values, sizeof values) == CUDA_SUCCESS);
    CUDA_RESOURCE_DESC resource = {};
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = array;
    CUDA_TEXTURE_DESC state = {};
    state.addressMode[0] = CU_TR_ADDRESS_MODE_CLAMP;
    state.filterMode = CU_TR_FILTER_MODE_POINT;
    CHECK(DRIVER(cuTexObjectCreate)(&texture, &resource, &state, nullptr) == CUDA_SUCCESS);
    sample<<<1, 32>>>(texture, out, 8);
    CALL(cudaMemcpy(host, out, sizeof host, cudaMemcpyDefault));
    CHECK(memcmp(host, values, sizeof host) == 0);
    CHECK(DRIVER(cuTexObjectDestroy)(texture) == CUDA_SUCCESS && DRIVER(cuArrayDestroy)(array) == CUDA_SUCCESS);
}

// One stream waits for a word that the other writes behind a kernel.
static void words() {
    const int n = 1 << 16;
    int *data, host = 0;
    unsigned *word;
    cudaStream_t first, second;
    CALL(cudaMalloc(&data, n * sizeof(int)));
    CALL(cudaMalloc(&word, sizeof(unsigned)));
    CALL(cudaMemset(data, 0, n * sizeof(int)));
    CALL(cudaMemset(word, 0, sizeof(unsigned)));
    // A kernel is loaded when it is first launched, and loading may wait for all streams.
    add<<<1, 1>>>(data, 0, 0);
    CALL(cudaDeviceSynchronize());
    CALL(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CALL(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    CUdeviceptr address = reinterpret_cast<CUdeviceptr>(word);
    CHECK(DRIVER(cuStreamWaitValue32)(second, address, 3, CU_STREAM_WAIT_VALUE_EQ) == CUDA_SUCCESS);
    add<<<n / 256, 256, 0, second>>>(data, n, 10);
    add<<<n / 256, 256, 0, first>>>(data, n, 1);
    CHECK(DRIVER(cuStreamWriteValue32)(first, address, 3, CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS);
    CALL(cudaStreamSynchronize(second));
    CALL(cudaMemcpy(&host, data + n - 1, sizeof host, cudaMemcpyDefault));
    CHECK(host == 11);
}

static void batches() {
    int host[4] = {1, 2, 3, 4}, back[4] = {}, *device;
    cudaStream_t stream;
    CALL(cudaStreamCreate(&stream));
    CALL(cudaMalloc(&device, sizeof host));
    void *to[] = {device, device + 2};
    const void *from[] = {host + 2, host};
    size_t sizes[] = {8, 8}, first = 0;
    cudaMemcpyAttributes attributes = {};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderDuringApiCall;
    CALL(cudaMemcpyBatchAsync(to, from, sizes, 2, &attributes, &first, 1, stream));
    memset(host, 0, sizeof host);
    add<<<1, 32, 0, stream>>>(device, 4, 10);
    CALL(cudaStreamSynchronize(stream));
    CALL(cudaMemcpy(back, device, sizeof back, cudaMemcpyDefault));
    CHECK(back[0] == 13 && back[1] == 14 && back[2] == 11 && back[3] == 12);
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderInvalid;
    CHECK(cudaMemcpyBatchAsync(to, from, sizes, 2, &attributes, &first, 1, stream) == cudaErrorInvalidValue);
}

int main(int count, char **names) {
    static const struct {
        const char *name;
        void (*run)();
    } all[] = {{"conditions", conditions}, {"shared", shared}, {"textures", textures}, {"words", words}, {"batches", batches}};
    for (auto &one : all) {
        if (count == 2 && strcmp(names[1], one.name) == 0) {
            one.run();
            puts("ok");
            return 0;
        }
    }
    for (auto &one : all) puts(one.name);
    return 1;
}
