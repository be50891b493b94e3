// Small CUDA programs, each with one fault of the kind that real ones have: `faults NAME` runs one, `faults NAME fixed` the same without the
// fault, `faults` lists them with what is to be found in them first,
// and what follows from it.

#include <cassert>
#include <cooperative_groups.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cg = cooperative_groups;

enum { N = 256 };

template <typename T> static T *device(int count = N) {
    T *memory = nullptr;
    cudaMalloc(&memory, count * sizeof(T));
    return memory;
}

template <typename T> static T *zeros(int count = N) {
    T *memory = device<T>(count);
    cudaMemset(memory, 0, count * sizeof(T));
    return memory;
}

// ---- Accesses that go astray.

__global__ void scale(float *data, int n, bool fixed) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (fixed ? i < n : i <= n) data[i] *= 2;
}
static void off_by_one(bool fixed) { scale<<<5, 64>>>(zeros<float>(), N, fixed); }

__global__ void smooth(float *out, const float *in, int n, bool fixed) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (fixed && (i == 0 || i >= n - 1)) return;
    out[i] = (in[i - 1] + in[i] + in[i + 1]) / 3;
}
static void stencil_edge(bool fixed) { smooth<<<4, 64>>>(zeros<float>(), zeros<float>(), N, fixed); }

__global__ void reverse(int *data, bool fixed) {
    __shared__ int tile[64];
    int i = threadIdx.x, last = fixed ? 63 : 64;
    tile[i] = data[i];
    __syncthreads();
    data[i] = tile[last - i];
}
static void shared_overrun(bool fixed) { reverse<<<1, 64>>>(zeros<int>(), fixed); }

__global__ void dynamic(int *data) {
    extern __shared__ int scratch[];
    scratch[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = scratch[blockDim.x - 1 - threadIdx.x];
}
static void dynamic_shared_too_small(bool fixed) { dynamic<<<1, 64, fixed ? 64 * sizeof(int) : 64>>>(zeros<int>()); }

__global__ void write_one(int *place) { *place = 1; }
static void null_pointer(bool fixed) { write_one<<<1, 1>>>(fixed ? zeros<int>() : nullptr); }
static void host_pointer(bool fixed) {
    int *own = (int *)malloc(sizeof(int));
    write_one<<<1, 1>>>(fixed ? zeros<int>() : own);
    cudaDeviceSynchronize();
    free(own);
}
static void use_after_free(bool fixed) {
    int *memory = zeros<int>();
    if (!fixed) cudaFree(memory);
    write_one<<<1, 1>>>(memory);
    cudaDeviceSynchronize();
    if (fixed) cudaFree(memory);
}

__global__ void clear_rows(char *image, size_t pitch, int width, int rows) {
    int x = threadIdx.x, y = blockIdx.x;
    if (x < width && y < rows) image[y * pitch + x] = 0;
}
static void pitch_of_elements(bool fixed) {
    char *image;
    size_t pitch;
    cudaMallocPitch((void **)&image, &pitch, 48 * sizeof(float), 8);
    clear_rows<<<8, 64>>>(image, fixed ? pitch : pitch * sizeof(float), 48, 8);
}

__global__ void sum_quads(const float *in, float *out, int offset) {
    float4 quad = *(const float4 *)(in + 4 * threadIdx.x + offset);
    out[threadIdx.x] = quad.x + quad.y + quad.z + quad.w;
}
static void misaligned(bool fixed) { sum_quads<<<1, 32>>>(zeros<float>(), zeros<float>(), fixed ? 4 : 1); }

__constant__ float weights[16];
__global__ void weigh(float *data, int taps) {
    float sum = 0;
    for (int tap = 0; tap < taps; tap++) sum += weights[tap] * data[tap];
    data[threadIdx.x + 64] = sum;
}
static void constant_overrun(bool fixed) { weigh<<<1, 32>>>(zeros<float>(), fixed ? 16 : 18); }

static void managed_overrun(bool fixed) {
    float *data;
    cudaMallocManaged(&data, N * sizeof(float));
    for (int i = 0; i < N; i++) data[i] = i;
    scale<<<5, 64>>>(data, N, fixed);
    cudaDeviceSynchronize();
    if (data[10] != 20) puts("wrong");
}
static void mapped_overrun(bool fixed) {
    float *host, *seen;
    cudaHostAlloc(&host, N * sizeof(float), cudaHostAllocMapped);
    for (int i = 0; i < N; i++) host[i] = 1;
    cudaHostGetDevicePointer(&seen, host, 0);
    scale<<<5, 64>>>(seen, N, fixed);
    cudaDeviceSynchronize();
    if (host[N - 1] != 2) puts("wrong");
}

struct Node {
    int value;
    Node *next;
};
__global__ void push(Node **list, int *total, bool fixed) {
    for (int i = 0; i < 4; i++) {
        Node *node = new Node{i, *list};
        *list = node;
    }
    for (Node *node = *list; node;) {
        Node *next = node->next;
        *total += node->value;
        delete node;
        node = fixed ? next : node->next;
    }
    *list = nullptr;
}
static void device_use_after_free(bool fixed) { push<<<1, 1>>>(zeros<Node *>(), zeros<int>(), fixed); }

// ---- Values that nobody wrote.

__global__ void accumulate(float *sum, const float *in) { sum[threadIdx.x] += in[threadIdx.x]; }
static void forgotten_memset(bool fixed) { accumulate<<<1, 64>>>(fixed ? zeros<float>() : device<float>(), zeros<float>()); }

__global__ void fill_some(int *out, int n, bool fixed) {
    __shared__ int table[64];
    if (fixed || threadIdx.x < 32) table[threadIdx.x] = n;
    __syncthreads();
    out[threadIdx.x] = table[63 - threadIdx.x];
}
static void uninitialised_shared(bool fixed) { fill_some<<<1, 64>>>(zeros<int>(), 5, fixed); }

static void half_a_copy(bool fixed) {
    float host[N] = {}, *in = device<float>();
    cudaMemcpy(in, host, fixed ? sizeof host : N, cudaMemcpyHostToDevice);
    accumulate<<<1, N>>>(zeros<float>(), in);
}

// ---- Races.

__global__ void reduce(const float *in, float *out, bool fixed) {
    __shared__ float partial[128];
    int i = threadIdx.x;
    partial[i] = in[i];
    __syncthreads();
    for (int step = 64; step > 0; step /= 2) {
        if (i < step) partial[i] += partial[i + step];
        if (fixed) __syncthreads();
    }
    if (i == 0) *out = partial[0];
}
static void reduction_without_barrier(bool fixed) { reduce<<<1, 128>>>(zeros<float>(), zeros<float>(), fixed); }

__global__ void histogram(const unsigned char *in, int *bins, bool fixed) {
    int bin = in[blockIdx.x * blockDim.x + threadIdx.x] % 16;
    if (fixed) atomicAdd(&bins[bin], 1);
    else bins[bin]++;
}
static void histogram_without_atomics(bool fixed) { histogram<<<4, 64>>>(zeros<unsigned char>(), zeros<int>(16), fixed); }

__global__ void histogram_of_blocks(const unsigned char *in, int *bins, bool fixed) {
    int bin = in[blockIdx.x * blockDim.x + threadIdx.x] % 16;
    if (fixed) atomicAdd(&bins[bin], 1);
    else atomicAdd_block(&bins[bin], 1);
}
static void atomics_of_a_block(bool fixed) { histogram_of_blocks<<<4, 64>>>(zeros<unsigned char>(), zeros<int>(16), fixed); }

__global__ void transpose(const float *in, float *out, bool fixed) {
    __shared__ float tile[16][17];
    int x = threadIdx.x, y = threadIdx.y;
    tile[y][x] = in[y * 16 + x];
    if (fixed) __syncthreads();
    out[y * 16 + x] = tile[x][y];
}
static void transpose_without_barrier(bool fixed) { transpose<<<1, dim3(16, 16)>>>(zeros<float>(), zeros<float>(), fixed); }

__global__ void scan(int *data, bool fixed) {
    __shared__ int values[128];
    int i = threadIdx.x;
    values[i] = data[i];
    __syncthreads();
    for (int step = 1; step < 128; step *= 2) {
        int add = i >= step ? values[i - step] : 0;
        if (fixed) __syncthreads();
        values[i] += add;
        __syncthreads();
    }
    data[i] = values[i];
}
static void scan_in_place(bool fixed) { scan<<<1, 128>>>(zeros<int>(), fixed); }

__global__ void relax(float *out, const float *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) out[i] = (in[i - 1] + in[i + 1]) / 2;
}
static void stencil_in_place(bool fixed) {
    float *data = zeros<float>();
    relax<<<4, 64>>>(fixed ? zeros<float>() : data, data, N);
}

__global__ void tiles(const float *in, float *out, int n, bool fixed) {
    __shared__ float tile[32];
    float sum = 0;
    for (int start = 0; start < n; start += 32) {
        tile[threadIdx.x] = in[start + threadIdx.x];
        __syncthreads();
        for (int i = 0; i < 32; i++) sum += tile[i];
        if (fixed) __syncthreads();
    }
    out[threadIdx.x] = sum;
}
static void tile_overwritten_too_soon(bool fixed) { tiles<<<1, 32>>>(zeros<float>(), zeros<float>(), N, fixed); }

__device__ unsigned arrived;
__global__ void last_block(const float *in, float *partial, float *out, bool fixed) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        float sum = 0;
        for (int i = 0; i < 64; i++) sum += in[blockIdx.x * 64 + i];
        partial[blockIdx.x] = sum;
        if (fixed) __threadfence();
        last = atomicAdd(&arrived, 1) == gridDim.x - 1;
        if (last) {
            if (fixed) __threadfence();
            sum = 0;
            for (int i = 0; i < gridDim.x; i++) sum += partial[i];
            *out = sum;
        }
    }
}
static void last_block_without_fence(bool fixed) { last_block<<<4, 32>>>(zeros<float>(), zeros<float>(), zeros<float>(), fixed); }

__global__ void warp_sum(const int *in, int *out, bool fixed) {
    __shared__ int values[32];
    int lane = threadIdx.x;
    values[lane] = in[lane];
    __syncwarp();
    for (int step = 16; step > 0; step /= 2) {
        int other = lane < step ? values[lane + step] : 0;
        if (fixed) __syncwarp();
        values[lane] += other;
        if (fixed) __syncwarp();
    }
    if (lane == 0) *out = values[0];
}
static void warp_without_barrier(bool fixed) { warp_sum<<<1, 32>>>(zeros<int>(), zeros<int>(), fixed); }

__global__ void two_steps(int *data, int n, bool fixed) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    data[i] = i;
    if (fixed) cg::this_grid().sync();
    else __syncthreads();
    data[n + i] = data[n - 1 - i];
}
static void block_barrier_for_the_grid(bool fixed) {
    int *data = zeros<int>(2 * N), n = N;
    void *arguments[] = {&data, &n, &fixed};
    cudaLaunchCooperativeKernel((void *)two_steps, 4, 64, arguments, 0, 0);
}

__global__ void lock_and_add(int *lock, int *total, bool fixed) {
    if (threadIdx.x != 0) return;
    while (atomicCAS(lock, 0, 1) != 0) {}
    if (fixed) __threadfence();
    *total += 1;
    if (fixed) __threadfence();
    atomicExch(lock, 0);
}
static void lock_without_fences(bool fixed) { lock_and_add<<<4, 32>>>(zeros<int>(), zeros<int>(), fixed); }

// ---- Barriers, warps, the heap, assertions.

__global__ void half_a_barrier(int *data, bool fixed) {
    int i = threadIdx.x;
    if (i < 40) {
        data[i] = i;
        if (!fixed) __syncthreads();
    }
    if (fixed) __syncthreads();
    if (i < 32) data[N - 1 - i] = data[i];
}
static void barrier_in_a_branch(bool fixed) { half_a_barrier<<<1, 64>>>(zeros<int>(), fixed); }

__global__ void shuffle(int *data, bool fixed) {
    int lane = threadIdx.x, value = data[lane];
    if (fixed || lane < 16) value += __shfl_down_sync(fixed ? 0xffffffff : 0xffff, value, 8);
    if (!fixed && lane < 16) value += __shfl_sync(0xffff, value, 20);
    data[lane] = value;
}
static void shuffle_from_nobody(bool fixed) { shuffle<<<1, 32>>>(zeros<int>(), fixed); }

__global__ void take(int *out, bool fixed) {
    int *own = (int *)malloc(16 * sizeof(int));
    if (!own) return;
    for (int i = 0; i < 16; i++) own[i] = threadIdx.x;
    out[threadIdx.x] = own[15];
    if (fixed) free(own);
}
static void heap_leak(bool fixed) { take<<<1, 8>>>(zeros<int>(), fixed); }

__global__ void twice(int *out, bool fixed) {
    int *own = (int *)malloc(sizeof(int));
    *own = threadIdx.x;
    out[threadIdx.x] = *own;
    free(own);
    if (!fixed) free(own);
}
static void freed_twice(bool fixed) { twice<<<1, 1>>>(zeros<int>(), fixed); }

__global__ void expect(const int *in, int least) { assert(in[threadIdx.x] >= least); }
static void failed_assertion(bool fixed) { expect<<<1, 32>>>(zeros<int>(), fixed ? 0 : 1); }

// ---- Calls whose errors nobody looks at.

static void block_too_large(bool fixed) { scale<<<1, fixed ? 256 : 2048>>>(zeros<float>(), N, true); }
static void too_much_shared(bool fixed) { dynamic<<<1, 64, fixed ? 1 << 10 : 64 << 10>>>(zeros<int>()); }
static void copy_too_long(bool fixed) {
    float host[N + 1] = {};
    cudaMemcpy(zeros<float>(), host, fixed ? N * sizeof(float) : sizeof host, cudaMemcpyHostToDevice);
}
static void copy_the_wrong_way(bool fixed) {
    float host[N] = {};
    cudaMemcpy(fixed ? (void *)zeros<float>() : host, fixed ? host : (void *)zeros<float>(), sizeof host, cudaMemcpyHostToDevice);
}
static void free_from_the_middle(bool fixed) {
    float *memory = zeros<float>();
    cudaFree(fixed ? memory : memory + 4);
}
static void memory_freed_twice(bool fixed) {
    float *memory = zeros<float>();
    cudaFree(memory);
    if (!fixed) cudaFree(memory);
}
static void stream_of_the_past(bool fixed) {
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    if (!fixed) cudaStreamDestroy(stream);
    write_one<<<1, 1, 0, stream>>>(zeros<int>());
    if (fixed) cudaStreamDestroy(stream);
}
static void symbol_too_small(bool fixed) {
    float host[17] = {};
    cudaMemcpyToSymbol(weights, host, fixed ? 64 : 68);
}

#define CASES(X) \
    X(off_by_one, "out-of-bounds") X(stencil_edge, "out-of-bounds") X(shared_overrun, "out-of-bounds") \
    X(dynamic_shared_too_small, "out-of-bounds") X(null_pointer, "out-of-bounds") X(host_pointer, "out-of-bounds") \
    X(use_after_free, "use-after-free") X(pitch_of_elements, "out-of-bounds wrong-space") X(misaligned, "misaligned") \
    X(constant_overrun, "out-of-bounds") X(managed_overrun, "out-of-bounds") X(mapped_overrun, "out-of-bounds") \
    X(device_use_after_free, "use-after-free leak") X(forgotten_memset, "uninitialised-memory") \
    X(uninitialised_shared, "uninitialised-memory") X(half_a_copy, "uninitialised-memory") \
    X(reduction_without_barrier, "race") X(histogram_without_atomics, "race") X(atomics_of_a_block, "race") \
    X(transpose_without_barrier, "race uninitialised-memory") X(scan_in_place, "race") X(stencil_in_place, "race") \
    X(tile_overwritten_too_soon, "race") X(last_block_without_fence, "race") X(warp_without_barrier, "race") \
    X(block_barrier_for_the_grid, "race") X(lock_without_fences, "race") X(barrier_in_a_branch, "divergent-barrier") \
    X(shuffle_from_nobody, "inactive-lane") X(heap_leak, "leak") X(freed_twice, "bad-free") X(failed_assertion, "stopped") \
    X(block_too_large, "api-error") X(too_much_shared, "api-error") X(copy_too_long, "api-error") \
    X(copy_the_wrong_way, "api-error") X(free_from_the_middle, "api-error") X(memory_freed_twice, "api-error") \
    X(stream_of_the_past, "api-error") X(symbol_too_small, "api-error")

int main(int count, char **words) {
    if (count == 1) {
#define LIST(name, kind) puts(#name " " kind);
        CASES(LIST)
        return 0;
    }
    bool fixed = count > 2 && strcmp(words[2], "fixed") == 0;
#define RUN(name, kind) \
    if (strcmp(words[1], #name) == 0) { \
        name(fixed); \
        cudaDeviceSynchronize(); \
        return 0; \
    }
    CASES(RUN)
    printf("there is no %s\n", words[1]);
    return 2;
}
