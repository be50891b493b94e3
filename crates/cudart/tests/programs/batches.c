// Batches of copies, prefetches and discards; advice on managed memory; memory pools.

#include "cuda.h"

struct location { int type, id; };
struct attributes { int order; struct location from, to; unsigned flags; };
struct operand { int type; union { struct { void *address; size_t length, height; struct location hint; } pointer; struct { void *array; size_t x, y, z; } array; }; };
struct box { struct operand from, to; size_t width, height, depth; int order; unsigned flags; };
struct properties { int type, handles; struct location location; void *security; size_t most; unsigned short usage; unsigned char reserved[54]; };
struct channels { int x, y, z, w, kind; };

int cudaMemcpyBatchAsync(void **to, void **from, size_t *sizes, size_t count, struct attributes *attributes, size_t *firsts, size_t many, stream_t stream);
int cuMemcpyBatchAsync(void **to, void **from, size_t *sizes, size_t count, struct attributes *attributes, size_t *firsts, size_t many, size_t *failed, stream_t stream);
int cuMemcpyBatchAsync_v2(void **to, void **from, size_t *sizes, size_t count, struct attributes *attributes, size_t *firsts, size_t many, stream_t stream);
int cudaMemcpy3DBatchAsync(size_t count, struct box *boxes, unsigned long long flags, stream_t stream), cudaMemcpy3DWithAttributesAsync(struct box *box, unsigned long long flags, stream_t stream);
int cuMemcpy3DBatchAsync(size_t count, struct box *boxes, size_t *failed, unsigned long long flags, stream_t stream);
int cudaMemcpyWithAttributesAsync(void *to, const void *from, size_t bytes, struct attributes *attributes, stream_t stream);
int cudaMemPrefetchBatchAsync(void **ranges, size_t *sizes, size_t count, struct location *wanted, size_t *firsts, size_t many, unsigned long long flags, stream_t stream);
int cudaMemDiscardAndPrefetchBatchAsync(void **ranges, size_t *sizes, size_t count, struct location *wanted, size_t *firsts, size_t many, unsigned long long flags, stream_t stream);
int cudaMemDiscardBatchAsync(void **ranges, size_t *sizes, size_t count, unsigned long long flags, stream_t stream);
int cudaMemAdvise(const void *range, size_t bytes, int advice, struct location where), cudaMemRangeGetAttribute(void *data, size_t size, int attribute, const void *range, size_t bytes);
int cuMemAdvise(uint64_t range, size_t bytes, int advice, int device), cudaMemPrefetchAsync(const void *range, size_t bytes, struct location where, unsigned flags, stream_t stream);
int cudaMemRangeGetAttributes(void **data, size_t *sizes, int *attributes, size_t count, const void *range, size_t bytes);
int cudaMallocArray(void **array, const struct channels *channels, size_t width, size_t height, unsigned flags), cudaFreeArray(void *array);
int cudaMemcpyArrayToArray(void *to, size_t to_x, size_t to_y, void *from, size_t from_x, size_t from_y, size_t bytes, int kind);
int cudaMemcpy2DFromArray(void *to, size_t pitch, void *array, size_t x, size_t y, size_t width, size_t height, int kind);
int cudaMemPoolCreate(void **pool, const struct properties *properties), cudaMemPoolDestroy(void *pool), cudaMallocFromPoolAsync(void *place, size_t bytes, void *pool, stream_t stream);
int cudaMemPoolGetAttribute(void *pool, int attribute, void *value), cudaMemPoolSetAttribute(void *pool, int attribute, void *value);
int cudaMemGetDefaultMemPool(void **pool, struct location *location, int type), cudaMemGetMemPool(void **pool, struct location *location, int type), cudaMemSetMemPool(struct location *location, int type, void *pool);
int cudaDeviceGetDefaultMemPool(void **pool, int device), cudaDeviceGetMemPool(void **pool, int device), cudaDeviceSetMemPool(int device, void *pool);
int cudaMemPoolSetAccess(void *pool, const int *list, size_t count), cudaMemPoolGetAccess(int *flags, void *pool, struct location *location);

static stream_t stream;
static const struct location DEVICE = {1, 0}, HOST = {2, 0};

static void linear(void) {
    int *device, *pinned, host[8] = {1, 2, 3, 4, 5, 6, 7, 8}, back[8] = {0};
    OK(cudaMalloc(&device, 64));
    OK(cudaMallocHost(&pinned, 32));
    memcpy(pinned, host, 32);
    struct attributes attributes[2] = {{1, DEVICE, DEVICE, 0}, {2, DEVICE, DEVICE, 1}};
    void *to[2] = {device, device + 4}, *from[2] = {host, pinned};
    size_t sizes[2] = {16, 16}, firsts[2] = {0, 1}, failed = 7;
    OK(cudaMemcpyBatchAsync(to, from, sizes, 2, attributes, firsts, 2, stream));
    // The second source had to be read before the call returned.
    memset(pinned, 0, 32);
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemcpy(back, device, 32, TO_HOST));
    CHECK(back[0] == 1 && back[3] == 4 && back[4] == 1 && back[7] == 4);
    // Invalid calls: missing attributes, indices that do not ascend, an unknown order, the legacy stream.
    firsts[1] = 2;
    CHECK(cudaMemcpyBatchAsync(to, from, sizes, 2, attributes, firsts, 2, stream) == 1);
    CHECK(cudaMemcpyBatchAsync(to, from, sizes, 2, attributes, firsts, 0, stream) == 1);
    CHECK(cudaMemcpyBatchAsync(to, from, sizes, 0, attributes, firsts, 1, stream) == 1);
    CHECK(cudaMemcpyBatchAsync(to, from, sizes, 2, attributes, firsts, 1, 0) == 1);
    attributes[0].order = 0;
    CHECK(cuMemcpyBatchAsync_v2(to, from, sizes, 2, attributes, firsts, 1, stream) == 1);
    // The wrong copy is reported, and nothing was done.
    attributes[0].order = 3, from[0] = host + 4, sizes[1] = 100;
    CHECK(cuMemcpyBatchAsync(to, from, sizes, 2, attributes, firsts, 1, &failed, stream) == 1 && failed == 1);
    OK(cudaMemcpy(back, device, 32, TO_HOST));
    CHECK(back[0] == 1);
    sizes[1] = 16;
    OK(cuMemcpyBatchAsync(to, from, sizes, 2, attributes, firsts, 1, &failed, stream));
    CHECK(failed == (size_t)-1);
    OK(cudaMemcpyWithAttributesAsync(device + 8, device, 16, attributes, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemcpy(back, device + 8, 16, TO_HOST));
    CHECK(back[0] == 5 && back[3] == 8);
    // A batch is captured as copies, unless its source must be read during the call.
    graph_t graph;
    void *exec;
    size_t count = 0;
    OK(cudaStreamBeginCapture(stream, 0));
    from[0] = pinned, from[1] = device + 8;
    OK(cudaMemcpyBatchAsync(to, from, sizes, 2, attributes, firsts, 1, stream));
    attributes[0].order = 2;
    CHECK(cudaMemcpyBatchAsync(to, from, sizes, 2, attributes, firsts, 1, stream) == 900);
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphGetNodes(graph, 0, &count));
    CHECK(count == 2);
    OK(cudaGraphInstantiate(&exec, graph, 0));
    pinned[0] = 77;
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemcpy(back, device, 32, TO_HOST));
    CHECK(back[0] == 77 && back[4] == 5);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
    OK(cudaFree(device));
    OK(cudaFreeHost(pinned));
}

static void boxes(void) {
    struct channels channels = {32, 0, 0, 0, 0};
    void *array, *other;
    int host[6][8], back[4][4], *device;
    size_t failed = 7;
    for (int i = 0; i < 48; i++) host[i / 8][i % 8] = i;
    OK(cudaMallocArray(&array, &channels, 8, 6, 0));
    OK(cudaMallocArray(&other, &channels, 8, 6, 0));
    OK(cudaMalloc(&device, 4 * 4 * 4));
    struct box box[2] = {{.to = {2, .array = {array, 0, 0, 0}}, .from = {1, .pointer = {host, 0, 0, {0, 0}}}, .width = 8, .height = 6, .depth = 1, .order = 3},
        {.to = {2, .array = {other, 0, 0, 0}}, .from = {1, .pointer = {host, 8, 6, {0, 0}}}, .width = 8, .height = 6, .depth = 1, .order = 1}};
    OK(cudaMemcpy3DBatchAsync(2, box, 0, stream));
    // From the third column and the second row on, to rows of four.
    struct box out = {.from = {2, .array = {array, 2, 1, 0}}, .to = {1, .pointer = {device, 4, 0, {0, 0}}}, .width = 3, .height = 4, .depth = 1, .order = 1};
    OK(cudaMemset(device, 0, 64));
    OK(cudaMemcpy3DWithAttributesAsync(&out, 0, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemcpy(back, device, 64, TO_HOST));
    CHECK(back[0][0] == 10 && back[0][2] == 12 && back[0][3] == 0 && back[3][2] == 36);
    // Outside of an array, no extent, rows that are too short, flags.
    out.from.array.y = 3;
    CHECK(cudaMemcpy3DBatchAsync(1, &out, 0, stream) == 1);
    box[1].depth = 0;
    CHECK(cuMemcpy3DBatchAsync(2, box, &failed, 0, stream) == 1 && failed == 1);
    box[1].depth = 1, box[1].from.pointer.length = 7;
    CHECK(cudaMemcpy3DBatchAsync(2, box, 0, stream) == 1 && cudaMemcpy3DBatchAsync(1, box, 1, stream) == 1 && cudaMemcpy3DBatchAsync(0, box, 0, stream) == 1);
    // Between arrays, by a deprecated function: the last two rows become the first.
    OK(cudaMemcpyArrayToArray(other, 0, 0, array, 0, 4, 64, WITHIN));
    OK(cudaMemcpy2DFromArray(host, 32, other, 0, 0, 32, 6, TO_HOST));
    CHECK(host[0][0] == 32 && host[1][7] == 47 && host[2][0] == 16);
    CHECK(cudaMemcpyArrayToArray(other, 0, 0, array, 4, 4, 64, WITHIN) == 1);
    OK(cudaFreeArray(array));
    OK(cudaFreeArray(other));
    OK(cudaFree(device));
}

static int fact(int attribute, const void *range, size_t bytes) {
    int value = 4711;
    OK(cudaMemRangeGetAttribute(&value, 4, attribute, range, bytes));
    return value;
}

static void advice(void) {
    char *managed, *device;
    int users[3] = {7, 7, 7}, concurrent;
    OK(cudaMallocManaged(&managed, 1 << 16, 1));
    OK(cudaMalloc(&device, 64));
    OK(cudaDeviceGetAttribute(&concurrent, 89, 0));
    CHECK(fact(1, managed, 100) == 0 && fact(2, managed, 100) == -2 && fact(4, managed, 100) == -2);
    OK(cudaMemAdvise(managed, 4096, 1, DEVICE));
    OK(cudaMemAdvise(managed, 8192, 3, HOST));
    OK(cudaMemAdvise(managed, 4096, 5, DEVICE));
    OK(cuMemAdvise((uint64_t)managed, 4096, 5, -1));
    CHECK(fact(1, managed, 4096) == 1 && fact(1, managed, 4097) == 0 && fact(2, managed, 8192) == -1 && fact(5, managed, 8192) == 2);
    OK(cudaMemRangeGetAttribute(users, 12, 3, managed, 4096));
    CHECK(users[0] == 0 && users[1] == -1 && users[2] == -2);
    OK(cudaMemAdvise(managed + 100, 8, 2, DEVICE));
    CHECK(fact(1, managed, 4096) == 0 && fact(1, managed, 100) == 1);
    CHECK(cudaMemAdvise(device, 64, 1, DEVICE) == 1 && cudaMemAdvise(managed, 1 << 17, 1, DEVICE) == 1 && cudaMemAdvise(managed, 8, 9, DEVICE) == 1);
    CHECK(cudaMemAdvise(managed, 8, 3, (struct location){1, 5}) == 101 && cudaMemRangeGetAttribute(users, 3, 1, managed, 8) == 1);
    OK(cudaMemPrefetchAsync(managed, 100, DEVICE, 0, stream));
    CHECK(fact(4, managed, 100) == 0 && fact(7, managed, 100) == 1 && fact(8, managed, 101) == -2);
    int read, last;
    OK(cudaMemRangeGetAttributes((void *[]){&read, &last}, (size_t[]){4, 4}, (int[]){1, 4}, 2, managed, 100));
    CHECK(read == 1 && last == 0);
    void *ranges[2] = {managed, managed + 4096};
    size_t sizes[2] = {4096, 4096}, firsts[2] = {0, 1};
    struct location wanted[2] = {DEVICE, HOST};
    int batch = cudaMemPrefetchBatchAsync(ranges, sizes, 2, wanted, firsts, 2, 0, stream);
    if (!concurrent) {
        CHECK(batch == 801 && cudaMemDiscardBatchAsync(ranges, sizes, 2, 0, stream) == 801);
    } else {
        OK(batch);
        CHECK(fact(4, managed, 4096) == 0 && fact(4, managed + 4096, 4096) == -1 && fact(4, managed, 8192) == -2);
        OK(cudaMemDiscardAndPrefetchBatchAsync(ranges, sizes, 2, wanted, firsts, 1, 0, stream));
        OK(cudaMemDiscardBatchAsync(ranges, sizes, 2, 0, stream));
        CHECK(cudaMemDiscardBatchAsync(ranges, sizes, 2, 1, stream) == 1 && cudaMemDiscardBatchAsync(ranges, sizes, 2, 0, 0) == 1);
        wanted[0].id = 3;
        CHECK(cudaMemPrefetchBatchAsync(ranges, sizes, 2, wanted, firsts, 1, 0, stream) == 101);
        ranges[1] = device;
        CHECK(cudaMemDiscardBatchAsync(ranges, sizes, 2, 0, stream) == 1);
    }
    // Advice is removed with its memory.
    OK(cudaFree(managed));
    OK(cudaMallocManaged(&managed, 1 << 16, 1));
    CHECK(fact(1, managed, 64) == 0 && fact(4, managed, 64) == -2);
    OK(cudaFree(managed));
    OK(cudaFree(device));
}

static uint64_t number(void *pool, int attribute) {
    uint64_t value = 0;
    OK(cudaMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

static void pools(void) {
    struct properties plain = {1, 0, DEVICE, 0, 1000, 0, {0}}, host = {1, 0, HOST, 0, 0, 0, {0}};
    void *first, *pool, *other, *current;
    char *memory, *more;
    struct { int type, device; void *device_pointer, *host_pointer; long more[8]; } attributes;
    OK(cudaDeviceGetDefaultMemPool(&first, 0));
    OK(cudaMemPoolCreate(&pool, &plain));
    OK(cudaMallocFromPoolAsync(&memory, 600, pool, stream));
    CHECK(cudaMallocFromPoolAsync(&more, 600, pool, stream) == 2);
    CHECK(number(pool, 7) == 600 && number(pool, 13) == 1000 && number(pool, 12) == 1 && number(first, 7) == 0);
    OK(cudaFreeAsync(memory, stream));
    CHECK(number(pool, 7) == 0 && number(pool, 8) == 600);
    uint64_t zero = 0, one = 1;
    OK(cudaMemPoolSetAttribute(pool, 8, &zero));
    CHECK(number(pool, 8) == 0 && cudaMemPoolSetAttribute(pool, 8, &one) == 1 && cudaMemPoolSetAttribute(pool, 7, &zero) == 1);
    int never = 0;
    OK(cudaMemPoolSetAttribute(pool, 2, &never));
    CHECK((int)number(pool, 2) == 0 && (int)number(pool, 1) == 1 && (int)number(first, 2) == 1);
    // The current pool of a device.
    OK(cudaDeviceSetMemPool(0, pool));
    OK(cudaDeviceGetMemPool(&current, 0));
    CHECK(current == pool);
    OK(cudaMallocAsync(&memory, 100, stream));
    CHECK(number(pool, 7) == 100);
    OK(cudaMemPoolDestroy(pool));
    CHECK(cudaMemPoolDestroy(pool) == 1 && cudaMemPoolDestroy(first) == 1 && cudaMallocFromPoolAsync(&more, 8, pool, stream) == 1);
    OK(cudaDeviceGetMemPool(&current, 0));
    CHECK(current == first);
    OK(cudaFree(memory));
    // Pools of the host allocate host memory.
    struct location where = HOST, nowhere = {0, 0};
    OK(cudaMemPoolCreate(&other, &host));
    OK(cudaMemGetDefaultMemPool(&current, &where, 1));
    CHECK(current != other && current != first && cudaDeviceSetMemPool(0, other) == 1);
    OK(cudaMemSetMemPool(&where, 1, other));
    OK(cudaMemGetMemPool(&current, &where, 1));
    CHECK(current == other && cudaMemGetMemPool(&current, &nowhere, 1) == 1);
    OK(cudaMallocFromPoolAsync(&memory, 64, other, stream));
    OK(cudaStreamSynchronize(stream));
    memset(memory, 5, 64);
    OK(cudaPointerGetAttributes(&attributes, memory));
    CHECK(attributes.type == 1);
    OK(cudaMalloc(&more, 64));
    OK(cudaMemcpyAsync(more, memory, 64, DEFAULT, stream));
    OK(cudaFreeAsync(memory, stream));
    OK(cudaFree(more));
    OK(cudaMemGetDefaultMemPool(&current, &nowhere, 2));
    OK(cudaMallocFromPoolAsync(&memory, 64, current, stream));
    OK(cudaPointerGetAttributes(&attributes, memory));
    CHECK(attributes.type == 3);
    OK(cudaFreeAsync(memory, stream));
    int access[3] = {1, 0, 0}, flags;
    CHECK(cudaMemPoolSetAccess(first, access, 1) == 1);
    OK(cudaMemPoolSetAccess(other, access, 1));
    where = DEVICE;
    OK(cudaMemPoolGetAccess(&flags, other, &where));
    CHECK(flags == 0);
    plain.location.id = 1;
    CHECK(cudaMemPoolCreate(&pool, &plain) == 101);
}

int main(void) {
    OK(cudaStreamCreate(&stream));
    linear();
    boxes();
    advice();
    pools();
    OK(cudaStreamDestroy(stream));
    puts("ok");
    return 0;
}
