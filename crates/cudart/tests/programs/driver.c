// The driver: modules, launches, functions by their names.

#include "cuda.h"

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
    CHECK(cuGetProcAddress_v2("cuNothing", (void **)&allocate, 12000, 0, &found) == 500 && found == 1);
    const char *name;
    OK(cuGetErrorName(2, &name));
    CHECK(strcmp(name, "CUDA_ERROR_OUT_OF_MEMORY") == 0);
    CHECK(cuGetErrorName(12345, &name) == 1 && name == 0);

    // A module that is no PTX, and one that is machine code.
    CHECK(cuModuleLoadData(&module, "this is no module") == 218);
    static const struct fat code = FAT(2, "machine code");
    CHECK(cuModuleLoadData(&module, &code) == 209);
    OK(cuMemFree_v2(x));
    CHECK(cuMemFree_v2(x) == 1);
    puts("ok");
    return 0;
}
