// Programs that use CUDA from unusual places: `hosts NAME`. Each checks itself and prints `ok`.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

__global__ void add(int *data, int value) { data[blockIdx.x * blockDim.x + threadIdx.x] += value; }

#define CHECK(what) \
    do { \
        if (!(what)) { \
            printf("line %d: %s\n", __LINE__, #what); \
            exit(1); \
        } \
    } while (0)

// Something to be seen of the device: whether it works.
static bool works(int value = 7) {
    int host[64] = {}, *data = nullptr;
    if (cudaMalloc(&data, sizeof host) || cudaMemset(data, 0, sizeof host)) return false;
    add<<<2, 32>>>(data, value);
    if (cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost) || cudaFree(data)) return false;
    for (int found : host)
        if (found != value) return false;
    return true;
}

// Before `main`, and after it.
struct Early {
    bool worked;
    Early() : worked(getenv("HOSTS_EARLY") && works(3)) {}
    ~Early() {
        if (worked) works(4);
    }
};
static Early early;

static int in_child(bool (*what)()) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) _exit(what() ? 0 : 1);
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

// A child may use CUDA when its parent has not: both do.
static void fork_before_use() {
    CHECK(in_child([] { return works(); }) == 0);
    CHECK(works());
}

// A child of a parent that has is told so, and comes to no harm.
static void fork_after_use() {
    CHECK(works());
    CHECK(in_child([] {
              int *data;
              return cudaMalloc(&data, 4) == cudaErrorInitializationError && cudaDeviceSynchronize() == cudaErrorInitializationError;
          }) == 0);
    CHECK(works());
}

static void launched_before_main() { CHECK(early.worked && works()); }

// A library with kernels of its own that comes and goes.
static void plugin(const char *path) {
    for (int round = 0; round < 3; round++) {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library) puts(dlerror());
        CHECK(library);
        auto twice = (int (*)(int))dlsym(library, "twice");
        CHECK(twice && twice(21 + round) == 42 + 2 * round);
        CHECK(dlclose(library) == 0);
    }
    CHECK(works());
}

// The runtime itself, found while running.
static void runtime_by_name() {
    void *library = dlopen("libcudart.so.13", RTLD_NOW);
    CHECK(library);
    auto count = (int (*)(int *))dlsym(library, "cudaGetDeviceCount");
    int devices = 0;
    CHECK(count && count(&devices) == 0 && devices == 1);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    auto init = (int (*)(unsigned))dlsym(driver, "cuInit");
    CHECK(init && init(0) == 0);
    CHECK(works());
}

static void threads() {
    enum { THREADS = 8, ROUNDS = 20 };
    std::vector<std::thread> all;
    int right[THREADS] = {};
    for (int thread = 0; thread < THREADS; thread++)
        all.emplace_back([thread, &right] {
            cudaStream_t stream;
            if (cudaStreamCreate(&stream)) return;
            for (int round = 0; round < ROUNDS; round++) {
                int host[256], *data;
                if (cudaMallocAsync((void **)&data, sizeof host, stream) || cudaMemsetAsync(data, 0, sizeof host, stream)) return;
                for (int step = 1; step <= 3; step++) add<<<4, 64, 0, stream>>>(data, thread + step);
                if (cudaMemcpyAsync(host, data, sizeof host, cudaMemcpyDeviceToHost, stream) || cudaFreeAsync(data, stream)) return;
                if (cudaStreamSynchronize(stream)) return;
                bool same = true;
                for (int found : host) same &= found == 3 * thread + 6;
                // Errors are each thread's own.
                same &= cudaFree((void *)8) == cudaErrorInvalidValue && cudaGetLastError() == cudaErrorInvalidValue && cudaGetLastError() == 0;
                right[thread] += same;
            }
            cudaStreamDestroy(stream);
        });
    for (auto &thread : all) thread.join();
    for (int count : right) CHECK(count == ROUNDS);
}

__global__ void spin(volatile int *data, int rounds) {
    for (int round = 0; round < rounds; round++) data[threadIdx.x] += round;
}

// Ends with work under way, memory held, streams and events open.
static void exit_without_freeing() {
    for (int i = 0; i < 50; i++) {
        int *data, *pinned;
        cudaStream_t stream;
        cudaEvent_t event;
        CHECK(cudaMalloc(&data, 1 << 16) == 0 && cudaMallocHost(&pinned, 1 << 12) == 0);
        CHECK(cudaStreamCreate(&stream) == 0 && cudaEventCreate(&event) == 0);
        spin<<<1, 32, 0, stream>>>(data, 200);
        CHECK(cudaEventRecord(event, stream) == 0);
    }
    puts("ok");
    exit(0);
}

// A thread that is still in a call when `main` ends.
static void exit_beside_a_thread() {
    std::thread([] {
        int *data;
        cudaMalloc(&data, 1 << 16);
        for (;;) {
            spin<<<1, 32>>>(data, 200);
            cudaDeviceSynchronize();
        }
    }).detach();
    CHECK(works());
    puts("ok");
    fflush(stdout);
    exit(0);
}

// Pointers that are nothing, or something else.
static void bad_pointers() {
    int host[16] = {}, *data;
    size_t bytes;
    CHECK(cudaMalloc(&data, 64) == 0);
    CHECK(cudaMalloc((void **)nullptr, 4) == cudaErrorInvalidValue);
    CHECK(cudaMemcpy(nullptr, host, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    CHECK(cudaMemcpy(data, nullptr, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    CHECK(cudaMemcpy(data + 8, host, 64, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    CHECK(cudaMemcpy(host, data, (size_t)-1, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
    CHECK(cudaMemset(host, 0, 4) == cudaErrorInvalidValue && cudaMemset((void *)0x1234567, 0, 4) == cudaErrorInvalidValue);
    CHECK(cudaMemcpy2D(data, 8, host, 4, 8, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidPitchValue);
    CHECK(cudaFree(host) == cudaErrorInvalidValue && cudaFree(data + 1) == cudaErrorInvalidValue);
    CHECK(cudaFreeHost(data) == cudaErrorInvalidValue && cudaHostUnregister(host) == cudaErrorHostMemoryNotRegistered);
    CHECK(cudaStreamSynchronize((cudaStream_t)0x7777) == cudaErrorInvalidResourceHandle);
    CHECK(cudaEventRecord((cudaEvent_t)data, 0) == cudaErrorInvalidResourceHandle);
    CHECK(cudaEventDestroy(nullptr) == cudaErrorInvalidResourceHandle);
    CHECK(cudaGetSymbolAddress((void **)&data, host) == cudaErrorInvalidSymbol);
    CHECK(cudaGetSymbolSize(&bytes, nullptr) == cudaErrorInvalidSymbol);
    CHECK(cudaLaunchKernel((const void *)host, 1, 1, nullptr, 0, 0) == cudaErrorInvalidResourceHandle);
    CHECK(cudaGraphLaunch((cudaGraphExec_t)host, 0) != 0 && cudaGraphDestroy((cudaGraph_t)host) != 0);
    CHECK(cudaGetDeviceProperties(nullptr, 0) == cudaErrorInvalidValue);
    while (cudaGetLastError() != 0) {}
    CHECK(works());
    // A kernel with such a pointer ends the context: every later call says so.
    add<<<1, 32>>>((int *)16, 1);
    CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress && cudaMalloc(&data, 4) == cudaErrorIllegalAddress);
    CHECK(cudaGetLastError() == cudaErrorIllegalAddress && !works());
}

int main(int count, char **words) {
    std::string name = count > 1 ? words[1] : "";
    if (name == "fork-before-use") fork_before_use();
    else if (name == "fork-after-use") fork_after_use();
    else if (name == "launched-before-main") launched_before_main();
    else if (name == "plugin" && count > 2) plugin(words[2]);
    else if (name == "runtime-by-name") runtime_by_name();
    else if (name == "threads") threads();
    else if (name == "exit-without-freeing") exit_without_freeing();
    else if (name == "exit-beside-a-thread") exit_beside_a_thread();
    else if (name == "bad-pointers") bad_pointers();
    else {
        printf("there is no %s\n", name.c_str());
        return 2;
    }
    puts("ok");
    return 0;
}
