// Arrays, texture and surface objects.

#include "cuda.h"

typedef struct { int x, y, z, w, kind; } format;
typedef struct { int type; union { void *array; struct { void *address; format desc; size_t bytes; } linear; struct { void *address; format desc; size_t width, height, pitch; } rows; int rest[32]; } res; unsigned flags; } resource;
typedef struct { int address[3], filter, read, srgb; float border[4]; int normalised; unsigned anisotropy; int level_filter; float bias, least, most; int trilinear, seamless; } texture;
int cudaMallocArray(void **array, const format *desc, size_t width, size_t height, unsigned flags), cudaFreeArray(void *array);
int cudaMemcpy2DToArray(void *array, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height, int kind);
int cudaMemcpy2DFromArray(void *to, size_t pitch, void *array, size_t x, size_t y, size_t width, size_t height, int kind);
int cudaCreateTextureObject(uint64_t *object, const resource *res, const texture *tex, const void *view), cudaDestroyTextureObject(uint64_t object);
int cudaCreateSurfaceObject(uint64_t *object, const resource *res), cudaDestroySurfaceObject(uint64_t object);
int cudaGetChannelDesc(format *desc, void *array);

int main(void) {
    enum { W = 32, H = 2 };
    float texels[H][W], back[H][W], *out;
    void *array;
    uint64_t tex, surf;
    format f = {32, 0, 0, 0, 2}, asked;
    for (int i = 0; i < W * H; i++) texels[i / W][i % W] = i;
    OK(cudaMalloc(&out, 4 * W));
    OK(cudaMallocArray(&array, &f, W, H, 2));
    OK(cudaGetChannelDesc(&asked, array));
    CHECK(memcmp(&f, &asked, sizeof f) == 0);
    OK(cudaMemcpy2DToArray(array, 0, 0, texels, W * 4, W * 4, H, TO_DEVICE));
    resource res = {0, {array}};
    texture desc = {{1, 1, 1}};
    OK(cudaCreateTextureObject(&tex, &res, &desc, 0));
    OK(cudaDestroyTextureObject(tex));
    CHECK(cudaDestroyTextureObject(tex) == 1);

    OK(cudaCreateSurfaceObject(&surf, &res));
    OK(cudaMemcpy2DFromArray(back, W * 4, array, 0, 0, W * 4, H, TO_HOST));
    CHECK(memcmp(texels, back, sizeof texels) == 0);
    OK(cudaDestroySurfaceObject(surf));

    format bad = {8, 16, 0, 0, 1};
    resource linear = {2, {.linear = {out, bad, 64}}};
    CHECK(cudaCreateTextureObject(&tex, &linear, &desc, 0) == 20);
    OK(cudaFreeArray(array));
    CHECK(cudaFreeArray(array) == 400);
    puts("ok");
    return 0;
}
