// Memory that kernels reach: what was allocated for them, registered or mapped. Everything else of the process is an
// illegal address, and the process goes on with that status.

#include "cuda.h"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define START ".reg .pred %p; .reg .b32 %r<8>; .reg .b64 %rd<8>;\nld.param.u64 %rd1, [start];\n"
#define NUMBER "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r1, %r1, %r2, %r3;\n"

static const char text[] =
    ".version 7.8\n.target sm_75\n.address_size 64\n"
    // A word for each thread, `step` bytes apart.
    ".visible .entry each(.param .u64 start, .param .u64 step, .param .u32 count)\n{\n" START NUMBER
    "ld.param.u64 %rd2, [step]; ld.param.u32 %r4, [count]; setp.ge.u32 %p, %r1, %r4; @%p bra END;\n"
    "cvt.u64.u32 %rd3, %r1; mad.lo.s64 %rd4, %rd3, %rd2, %rd1; st.volatile.u32 [%rd4], 7;\nEND: ret;\n}\n"
    // The same words, one after the other.
    ".visible .entry walk(.param .u64 start, .param .u64 step, .param .u32 count)\n{\n" START
    "ld.param.u64 %rd2, [step]; ld.param.u32 %r4, [count];\n"
    "NEXT: st.global.u32 [%rd1], 7; add.s64 %rd1, %rd1, %rd2; sub.u32 %r4, %r4, 1; setp.ne.u32 %p, %r4, 0; @%p bra NEXT; ret;\n}\n"
    // A sum of the words, and atomics on them.
    ".visible .entry read(.param .u64 start, .param .u64 step, .param .u32 count)\n{\n" START NUMBER
    "ld.param.u64 %rd2, [step]; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd1, %rd3; ld.global.u32 %r5, [%rd4];\n"
    "add.u32 %r5, %r5, 1; st.global.u32 [%rd2], %r5; ret;\n}\n"
    ".visible .entry count(.param .u64 start, .param .u64 step, .param .u32 count)\n{\n" START NUMBER
    "mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd1, %rd3; red.global.add.u32 [%rd4], 1; ret;\n}\n"
    // A list: each record holds the address of the next one, and a number.
    ".visible .entry follow(.param .u64 start, .param .u64 step, .param .u32 count)\n{\n" START
    "NEXT: st.global.u32 [%rd1+8], 7; ld.global.u64 %rd1, [%rd1]; setp.ne.u64 %p, %rd1, 0; @%p bra NEXT; ret;\n}\n"
    // Generic addresses of shared and local memory, and of a parameter.
    ".visible .entry windows(.param .u64 start, .param .u64 step, .param .u32 count)\n{\n"
    ".shared .align 4 .b8 fast[1024]; .local .align 4 .b8 own[16];\n" START NUMBER
    "mov.u64 %rd2, fast; cvta.shared.u64 %rd2, %rd2; mul.wide.u32 %rd3, %r3, 4; add.u64 %rd2, %rd2, %rd3; st.u32 [%rd2], %r1;\n"
    "mov.u64 %rd4, own; cvta.local.u64 %rd4, %rd4; ld.u32 %r5, [%rd2]; st.u32 [%rd4+8], %r5; ld.u32 %r6, [%rd4+8];\n"
    "mov.b64 %rd5, count; cvta.param.u64 %rd5, %rd5; ld.u32 %r7, [%rd5]; add.u32 %r6, %r6, %r7;\n"
    "mul.wide.u32 %rd6, %r1, 4; add.u64 %rd6, %rd1, %rd6; st.u32 [%rd6], %r6; ret;\n}\n";

static int words[1024] = {1, 2, 3};

// What the kernel of a launch gives back.
static int launch(const char *kernel, int blocks, int threads, void *start, long step, unsigned count) {
    static void *module;
    void *function, *args[] = {&start, &step, &count};
    if (!module) OK(cuModuleLoadData(&module, text));
    OK(cuModuleGetFunction(&function, module, kernel));
    int status = cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, 0, args, 0);
    return status ? status : cuCtxSynchronize();
}

static void begin(void) {
    void *context;
    int value = -1;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    // pageableMemoryAccess, and by the host's page tables.
    OK(cudaDeviceGetAttribute(&value, 88, 0));
    CHECK(value == 0);
    OK(cudaDeviceGetAttribute(&value, 100, 0));
    CHECK(value == 0);
}

// 700 stays, and the program and its memory are whole.
static void refused(int status) {
    void *place;
    CHECK(status == 700 && cudaDeviceSynchronize() == 700 && cudaMalloc(&place, 16) == 700);
    for (int i = 0; i < 1024; i++) CHECK(words[i] == (i < 3 ? i + 1 : 0));
    for (int i = 0; i < 100; i++) free(malloc(i * 1000));
}

static void stack(void) {
    int own[64] = {0};
    begin();
    refused(launch("each", 4, 64, own, 4, 256));
    for (int i = 0; i < 64; i++) CHECK(own[i] == 0);
}
static void heap(void) {
    begin();
    char *own = calloc(1, 1 << 16);
    refused(launch("each", 4, 64, own, 4, 256));
    for (int i = 0; i < 1 << 16; i++) CHECK(own[i] == 0);
    free(own);
}
static void global(void) { begin(), refused(launch("walk", 1, 1, words, 4, 1000)); }
static void program_text(void) { begin(), refused(launch("each", 1, 32, (void *)((uintptr_t)stack & ~63ul), 4, 32)); }
static void library_text(void) { begin(), refused(launch("each", 1, 32, (void *)((uintptr_t)cudaMalloc & ~63ul), 4, 32)); }
static void end_of_addresses(void) { begin(), refused(launch("each", 4, 64, (void *)0x7ffffffff000, 4, 256)); }
static void no_address(void) { begin(), refused(launch("each", 4, 64, (void *)0x8000000000000000, 4, 256)); }
static void up_the_heap(void) {
    begin();
    void *own = malloc(1 << 16);
    refused(launch("walk", 1, 32, own, 16, 1 << 24));
    free(own);
}
static void down_the_heap(void) {
    begin();
    void *own = malloc(1 << 16);
    refused(launch("walk", 1, 32, own, -16, 1 << 24));
    free(own);
}
static void far_from_a_buffer(void) {
    void *buffer;
    begin();
    OK(cudaMalloc(&buffer, 4096));
    // From the buffer to a variable of the host.
    refused(launch("each", 1, 32, buffer, (char *)&words[8] - (char *)buffer, 2));
}
static void on_from_a_buffer(void) {
    void *buffer;
    begin();
    OK(cudaMalloc(&buffer, 4096));
    refused(launch("walk", 1, 1, buffer, 4096, 1 << 24));
}
static void load(void) {
    void *buffer;
    begin();
    OK(cudaMalloc(&buffer, 4096));
    refused(launch("read", 1, 32, words, (long)buffer, 0));
}
static void atomics(void) { begin(), refused(launch("count", 1, 32, words, 0, 0)); }
static void hidden_in_memory(void) {
    void *list[2] = {words, 0}, *buffer;
    begin();
    OK(cudaMalloc(&buffer, sizeof list));
    OK(cudaMemcpy(buffer, list, sizeof list, TO_DEVICE));
    refused(launch("follow", 1, 1, buffer, 0, 0));
}
static void behind_what_is_registered(void) {
    static int own[4096];
    begin();
    OK(cudaHostRegister(own, 8192, 2));
    refused(launch("walk", 1, 1, own, 4, 2049));
    CHECK(own[2047] == 7 && own[2048] == 0);
}
static void no_longer_registered(void) {
    begin();
    OK(cudaHostRegister(words, sizeof words, 2));
    OK(cudaHostUnregister(words));
    refused(launch("each", 4, 64, words, 4, 256));
}

// What kernels may reach.
static void allowed(void) {
    static int own[4096];
    int *buffer, *pinned, *managed, told[256], attributes[8];
    begin();
    OK(cudaMalloc(&buffer, 4096));
    OK(cudaMallocHost(&pinned, 4096));
    OK(cudaMallocManaged(&managed, 4096, 1));
    OK(cudaHostRegister(own, sizeof own, 2));
    OK(cudaPointerGetAttributes(attributes, words));
    CHECK(attributes[0] == 0 && attributes[2] == 0 && attributes[3] == 0);
    for (int i = 0; i < 3; i++) {
        int *memory = (int *[]){own, pinned, managed}[i];
        OK(launch("each", 4, 64, memory, 4, 256));
        OK(launch("walk", 1, 1, memory + 256, 4, 256));
        OK(launch("count", 2, 64, memory, 0, 0));
        CHECK(memory[0] == 8 && memory[127] == 8 && memory[128] == 7 && memory[255] == 7 && memory[256] == 7 && memory[511] == 7);
        OK(launch("read", 1, 1, memory, (long)buffer, 0));
        OK(cudaMemcpy(told, buffer, 4, TO_HOST));
        CHECK(told[0] == 9);
    }
    // A list through all kinds of memory.
    void *first[2] = {own, 0};
    ((void **)own)[0] = pinned, ((void **)pinned)[0] = managed, ((void **)managed)[0] = 0;
    OK(cudaMemcpy(buffer, first, sizeof first, TO_DEVICE));
    OK(launch("follow", 1, 1, buffer, 0, 0));
    CHECK(own[2] == 7 && pinned[2] == 7 && managed[2] == 7);
    OK(launch("windows", 2, 128, buffer, 0, 1000));
    OK(cudaMemcpy(told, buffer, sizeof told, TO_HOST));
    for (int i = 0; i < 256; i++) CHECK(told[i] == 1000 + i);
    // An address that is passed and not used is no error, nor is one in a lane that is not active.
    OK(launch("each", 4, 64, words, 4, 0));
    OK(cudaHostUnregister(own));
}

int main(void) {
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {
#define CASE(name) {#name, name}
        CASE(stack), CASE(heap), CASE(global), CASE(program_text), CASE(library_text), CASE(end_of_addresses), CASE(no_address),
        CASE(up_the_heap), CASE(down_the_heap), CASE(far_from_a_buffer), CASE(on_from_a_buffer), CASE(load), CASE(atomics),
        CASE(hidden_in_memory), CASE(behind_what_is_registered), CASE(no_longer_registered), CASE(allowed),
    };
    // An error of a kernel stays until the process ends: each case has one of its own.
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            cases[i].run();
            exit(0);
        }
        int status = -1;
        waitpid(child, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            printf("%s: status %x\n", cases[i].name, status);
            return 1;
        }
    }
    puts("ok");
    return 0;
}
