// Calls of NVIDIA's libraries with arguments in all possible positions. The output is the same whether calls
// are forwarded or not.
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

typedef struct { unsigned x, y, z; } dim3;
typedef struct { size_t width, height, depth; } extent;
typedef struct { void *ptr; size_t pitch, xsize, ysize; } pitched;
typedef struct { int x, y, z, w, kind; } channels;

int cudaMalloc(void **, size_t);
int cudaMemset3D(pitched, int, extent);
channels cudaCreateChannelDesc(int, int, int, int, int);
const char *cudaGetErrorString(int);
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *);
int cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, void *);
int cudaDeviceSynchronize(void);
int cuModuleGetFunction(void **, void *, const char *);
int cuGetProcAddress_v2(const char *, void **, int, unsigned long, int *);
int cuTexRefSetMipmapLevelBias(void *, float);
int cuTensorMapEncodeIm2col(void *, int, unsigned, void *, const unsigned long *, const unsigned long *, const int *, const int *, unsigned, unsigned, const unsigned *, int, int, int, int);
int cuCtxSynchronize(void);

static const char host;

int main(void) {
    void *memory = 0, *kernel = 0;
    int value = 42;
    void *arguments[] = {&value};
    __cudaRegisterFunction(0, &host, 0, "saxpy", -1, 0, 0, 0, (void *)0x9, (int *)0x10);
    printf("%d %p\n", cudaMalloc(&memory, 64), memory);
    printf("%d\n", cudaMemset3D((pitched){(void *)0x40, 1, 2, 3}, 4, (extent){5, 6, 7}));
    channels format = cudaCreateChannelDesc(1, 2, 3, 4, 5);
    printf("%d %d %d %d %d %s\n", format.x, format.y, format.z, format.w, format.kind, cudaGetErrorString(0));
    for (int times = 0; times < 3; times++) {
        printf("%d\n", cudaLaunchKernel(&host, (dim3){1, 2, 3}, (dim3){4, 5, 6}, arguments, 7, (void *)0x88));
    }
    printf("%d\n", cudaLaunchKernel(&host, (dim3){0, 2, 3}, (dim3){4, 5, 6}, arguments, 7, 0));
    // A stream that is being captured.
    printf("%d\n", cudaLaunchKernel(&host, (dim3){1, 1, 1}, (dim3){1, 1, 1}, arguments, 7, (void *)0x66));
    printf("%d\n", cudaDeviceSynchronize());
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **) = 0;
    int (*init)(unsigned) = 0;
    void *none = (void *)1;
    printf("%d\n", cuGetProcAddress_v2("cuInit", (void **)&init, 12000, 0, 0));
    printf("%d\n", cuGetProcAddress_v2("cuLaunchKernel", (void **)&launch, 12000, 0, 0));
    printf("%d %p\n", cuGetProcAddress_v2("cuNone", &none, 12000, 0, 0), none);
    printf("%d\n", init(3));
    cuModuleGetFunction(&kernel, 0, "scale");
    printf("%d\n", launch(kernel, 1, 2, 3, 4, 5, 6, 7, 0, (void **)0x20, (void **)0x30));
    printf("%d\n", cuTexRefSetMipmapLevelBias((void *)0x50, 1.5f));
    printf("%d\n", cuTensorMapEncodeIm2col(0, 1, 2, 0, 0, 0, 0, 0, 3, 4, 0, 5, 6, 7, 8));
    printf("%d\n", cuCtxSynchronize());
    return 3;
}
