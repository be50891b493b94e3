// Modules that do not assemble: every way to load one reports this at once, with the location.

#include "cuda.h"

#define HEAD ".version 7.0\n.target sm_75\n.address_size 64\n"
#define KERNEL(name, code) ".visible .entry " name "(.param .u64 out)\n{\n.reg .b64 %rd<2>; .reg .b32 %r<2>;\n" code "ret;\n}\n"
#define STORE "ld.param.u64 %rd1, [out]; mov.u32 %r1, 7; st.global.u32 [%rd1], %r1;\n"
// The valid kernel does not excuse the invalid one.
#define BROKEN HEAD KERNEL("good", STORE) KERNEL("bad", "nonsense;\n")

int cuModuleLoad(void **module, const char *path), cuModuleLoadFatBinary(void **module, const void *fat);
int cuLibraryLoadData(void **library, const void *code, const int *o, void **v, unsigned n, void *lo, void *lv, unsigned ln);
int cuLibraryLoadFromFile(void **library, const char *path, const int *o, void **v, unsigned n, void *lo, void *lv, unsigned ln);
int cudaLibraryLoadFromFile(void **library, const char *path, const int *o, void **v, unsigned n, void *lo, void *lv, unsigned ln);
int cuLinkAddFile_v2(void *state, int kind, const char *path, unsigned count, const int *options, void **values), cuLinkComplete(void *state, void **module, size_t *bytes);

static char error[1024];
static const int options[] = {5, 6};
static void *values[2];

// Clears the log for the following call.
static void **log_of_errors(void) {
    strcpy(error, "nothing");
    values[0] = error, values[1] = (void *)sizeof error;
    return values;
}
static int names_the_place(void) {
    return strstr(error, "`nonsense` is not an instruction of PTX") && strstr(error, ".ptx:13:1") && strlen(error) == (size_t)values[1];
}
static void link_begins(void **linking) { OK(cuLinkCreate_v2(2, options, log_of_errors(), linking)); }

static void launch(void *module, const char *name) {
    void *function;
    uint64_t place;
    unsigned result = 0;
    OK(cuModuleGetFunction(&function, module, name));
    OK(cuMemAlloc_v2(&place, 4));
    void *args[] = {&place};
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, args, 0));
    OK(cuMemcpyDtoH_v2(&result, place, 4));
    CHECK(result == 7);
    OK(cuMemFree_v2(place));
}

int main(int count, char **arguments) {
    static const struct fat fat = FAT(1, BROKEN);
    const struct wrapper around = {0x466243b1, 1, &fat, 0};
    void *context, *module = 0, *linking;
    size_t bytes;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    char path[4096];
    snprintf(path, sizeof path, "%s.ptx", arguments[0]);
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(BROKEN, file) >= 0 && fclose(file) == 0);

    CHECK(cuModuleLoad(&module, path) == 218);
    CHECK(cuModuleLoadData(&module, BROKEN) == 218);
    CHECK(cuModuleLoadData(&module, &fat) == 218);
    CHECK(cuModuleLoadFatBinary(&module, &fat) == 218);
    CHECK(cuModuleLoadFatBinary(&module, &around) == 218);
    CHECK(cuModuleLoadDataEx(&module, BROKEN, 2, options, log_of_errors()) == 218 && names_the_place());
    CHECK(cuLibraryLoadData(&module, BROKEN, options, log_of_errors(), 2, 0, 0, 0) == 218 && names_the_place());
    CHECK(cuLibraryLoadFromFile(&module, path, options, log_of_errors(), 2, 0, 0, 0) == 218 && names_the_place());
    CHECK(cudaLibraryLoadData(&module, BROKEN, (void *)options, log_of_errors(), 2, 0, 0, 0) == 218 && names_the_place());
    CHECK(cudaLibraryLoadFromFile(&module, path, options, log_of_errors(), 2, 0, 0, 0) == 218 && names_the_place());
    CHECK(cudaGetLastError() == 218 && cudaGetLastError() == 0);
    CHECK(module == 0);
    link_begins(&linking);
    CHECK(cuLinkAddData_v2(linking, 1, BROKEN, sizeof BROKEN, "broken", 0, 0, 0) == 218 && names_the_place());
    CHECK(cuLinkAddData_v2(linking, 2, (void *)&fat, sizeof fat, "broken", 0, 0, 0) == 218 && names_the_place());
    CHECK(cuLinkAddFile_v2(linking, 1, path, 0, 0, 0) == 218 && names_the_place());
    CHECK(cuLinkComplete(linking, &module, &bytes) == 1);
    OK(cuLinkDestroy(linking));
    CHECK(remove(path) == 0);

    // PTX that this device does not support is refused at the launch: the kernel beside it runs.
    OK(cuModuleLoadData(&module, ".version 8.0\n.target sm_90a\n.address_size 64\n" KERNEL("good", STORE) KERNEL("other", "wgmma.fence.sync.aligned;\n")));
    launch(module, "good");

    // A symbol that one module declares and another defines is resolved when both are present.
    char *uses = HEAD ".extern .global .u32 seven;\n" KERNEL("k", "ld.param.u64 %rd1, [out]; ld.global.u32 %r1, [seven]; st.global.u32 [%rd1], %r1;\n");
    char *defines = HEAD ".visible .global .u32 seven = 7;\n";
    link_begins(&linking);
    OK(cuLinkAddData_v2(linking, 1, uses, strlen(uses) + 1, "uses", 0, 0, 0));
    CHECK(cuLinkComplete(linking, &module, &bytes) == 218 && strstr(error, "`seven` is declared here and defined nowhere"));
    OK(cuLinkDestroy(linking));
    link_begins(&linking);
    OK(cuLinkAddData_v2(linking, 1, uses, strlen(uses) + 1, "uses", 0, 0, 0));
    OK(cuLinkAddData_v2(linking, 1, defines, strlen(defines) + 1, "defines", 0, 0, 0));
    void *linked;
    OK(cuLinkComplete(linking, &linked, &bytes));
    OK(cuModuleLoadData(&module, linked));
    OK(cuLinkDestroy(linking));
    launch(module, "k");
    puts("ok");
    return 0;
}
