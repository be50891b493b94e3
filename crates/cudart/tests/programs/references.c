// Arrays, texture and surface objects and references of the driver.

#include "cuda.h"

int cuArrayCreate_v2(void **array, const void *descriptor), cuArray3DCreate_v2(void **array, const void *descriptor), cuArrayDestroy(void *array);
int cuArray3DGetDescriptor_v2(void *descriptor, void *array), cuArrayGetDescriptor_v2(void *descriptor, void *array);
int cuMemcpyHtoA_v2(void *array, size_t offset, const void *from, size_t bytes), cuMemcpyAtoH_v2(void *to, void *array, size_t offset, size_t bytes), cuMemcpy2D_v2(const void *params);
int cuTexObjectCreate(uint64_t *object, const void *resource, const void *texture, const void *view), cuTexObjectDestroy(uint64_t object);
int cuTexObjectGetResourceDesc(void *resource, uint64_t object), cuTexObjectGetTextureDesc(void *texture, uint64_t object), cuTexObjectGetResourceViewDesc(void *view, uint64_t object);
int cuSurfObjectCreate(uint64_t *object, const void *resource), cuSurfObjectDestroy(uint64_t object);
int cuModuleGetTexRef(void **reference, void *module, const char *name), cuTexRefSetArray(void *reference, void *array, unsigned flags);
int cuTexRefSetAddressMode(void *reference, int axis, int mode), cuTexRefSetFilterMode(void *reference, int mode), cuTexRefSetFlags(void *reference, unsigned flags);
int cuTexRefGetFormat(int *format, int *count, void *reference), cuTexRefGetArray(void **array, void *reference), cuTexRefSetFormat(void *reference, int format, int count);
int cuTexRefSetAddress_v2(size_t *offset, void *reference, uint64_t address, size_t bytes), cuTexRefGetAddress_v2(uint64_t *address, void *reference);
int cuTexRefSetMipmapLevelBias(void *reference, float bias), cuTexRefGetMipmapLevelBias(float *bias, void *reference);
int cuMipmappedArrayCreate(void **mipmap, const void *descriptor, unsigned levels), cuMipmappedArrayGetLevel(void **array, void *mipmap, unsigned level), cuMipmappedArrayDestroy(void *mipmap);

static const char *SAMPLE = ".version 7.5\n.target sm_75\n.address_size 64\n.global .texref image;\n"
    ".visible .entry by_name(.param .u64 out)\n{\n.reg .f32 %f<8>;\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [out];\ncvta.to.global.u64 %rd1, %rd1;\nmov.u32 %r1, %tid.x;\ncvt.rn.f32.u32 %f5, %r1;\nadd.f32 %f5, %f5, 0f3F000000;\nmov.f32 %f6, 0f3F000000;\n"
    "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [image, {%f5, %f6}];\nmul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd3, %rd1, %rd2;\nst.global.f32 [%rd3], %f1;\nret;\n}\n"
    ".visible .entry by_object(.param .u64 out, .param .u64 object)\n{\n.reg .f32 %f<8>;\n.reg .b32 %r<4>;\n.reg .b64 %rd<6>;\n"
    "ld.param.u64 %rd1, [out];\nld.param.u64 %rd4, [object];\ncvta.to.global.u64 %rd1, %rd1;\nmov.u32 %r1, %tid.x;\ncvt.rn.f32.u32 %f5, %r1;\nadd.f32 %f5, %f5, 0f3F000000;\nmov.f32 %f6, 0f3F000000;\n"
    "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd4, {%f5, %f6}];\nmul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd3, %rd1, %rd2;\nst.global.f32 [%rd3], %f1;\nret;\n}\n";

struct descriptor { size_t width, height; int format; unsigned channels; };
struct descriptor3 { size_t width, height, depth; int format; unsigned channels, flags; };
struct resource { int kind; union { void *array; struct { uint64_t address; int format; unsigned channels; size_t bytes; } linear; int reserved[32]; }; unsigned flags; };
struct texture { int address[3], filter; unsigned flags, anisotropy; int level_filter; float bias, least, most, border[4]; int reserved[12]; };

int main(void) {
    void *module, *by_name, *by_object, *line, *array, *reference, *none, *mipmap, *level;
    uint64_t out, object, found;
    float values[8], got[8];
    unsigned char bytes[8];
    OK(cuInit(0));
    OK(cudaSetDevice(0));
    OK(cuModuleLoadData(&module, SAMPLE));
    OK(cuModuleGetFunction(&by_name, module, "by_name"));
    OK(cuModuleGetFunction(&by_object, module, "by_object"));
    OK(cuMemAlloc_v2(&out, 64));
    for (int i = 0; i < 8; i++) values[i] = i + 1, bytes[i] = i * 17;

    // Arrays.
    struct descriptor flat = {8, 0, 0x20, 1}, told;
    struct descriptor3 deep = {8, 1, 0, 0x20, 1, 2}, told3;
    CHECK(cuArrayCreate_v2(&line, &(struct descriptor){8, 0, 0x99, 1}) == 1 && cuArrayCreate_v2(&line, &(struct descriptor){8, 0, 0x20, 3}) == 1);
    OK(cuArrayCreate_v2(&line, &flat));
    OK(cuArrayGetDescriptor_v2(&told, line));
    CHECK(memcmp(&told, &flat, sizeof told) == 0);
    OK(cuMemcpyHtoA_v2(line, 8, values, 24));
    OK(cuMemcpyAtoH_v2(got, line, 12, 8));
    CHECK(got[0] == 2 && got[1] == 3 && cuMemcpyAtoH_v2(got, line, 16, 20) == 1);
    OK(cuArray3DCreate_v2(&array, &deep));
    OK(cuArray3DGetDescriptor_v2(&told3, array));
    CHECK(told3.width == 8 && told3.height == 1 && told3.format == 0x20 && told3.channels == 1 && told3.flags == 2);
    OK(cuMemcpyHtoA_v2(array, 0, values, 32));

    // An object.
    struct resource resource = {0, .array = array}, told_resource;
    struct texture texture = {{1, 1, 1}, 0, 0, 0, 0, 0, 0, 0, {0}, {0}}, told_texture;
    OK(cuTexObjectCreate(&object, &resource, &texture, 0));
    OK(cuTexObjectGetResourceDesc(&told_resource, object));
    OK(cuTexObjectGetTextureDesc(&told_texture, object));
    CHECK(told_resource.kind == 0 && told_resource.array == array && told_texture.address[1] == 1 && told_texture.flags == 0);
    CHECK(cuTexObjectGetResourceViewDesc(got, object) == 1);
    void *args[] = {&out, &object};
    OK(cuLaunchKernel(by_object, 1, 1, 1, 8, 1, 1, 0, 0, args, 0));
    OK(cuMemcpyDtoH_v2(got, out, 32));
    CHECK(memcmp(got, values, 32) == 0);
    OK(cuTexObjectDestroy(object));
    OK(cuSurfObjectCreate(&object, &resource));
    OK(cuSurfObjectDestroy(object));

    // References: to an array, and to another one whose bytes become fractions.
    CHECK(cuModuleGetTexRef(&reference, module, "nothing") == 500);
    OK(cuModuleGetTexRef(&reference, module, "image"));
    CHECK(cuTexRefGetArray(&none, reference) == 1 && cuTexRefSetArray(reference, array, 0) == 1);
    OK(cuTexRefSetArray(reference, array, 1));
    OK(cuTexRefSetAddressMode(reference, 0, 1));
    OK(cuTexRefSetFilterMode(reference, 0));
    OK(cuTexRefSetMipmapLevelBias(reference, 0.5f));
    OK(cuTexRefGetMipmapLevelBias(got, reference));
    CHECK(got[0] == 0.5f);
    OK(cuTexRefSetMipmapLevelBias(reference, 0));
    OK(cuLaunchKernel(by_name, 1, 1, 1, 8, 1, 1, 0, 0, args, 0));
    OK(cuMemcpyDtoH_v2(got, out, 32));
    CHECK(memcmp(got, values, 32) == 0);
    void *small;
    int format, count;
    OK(cuArray3DCreate_v2(&small, &(struct descriptor3){8, 1, 0, 1, 1, 0}));
    OK(cuMemcpyHtoA_v2(small, 0, bytes, 8));
    OK(cuTexRefSetArray(reference, small, 1));
    OK(cuTexRefGetFormat(&format, &count, reference));
    CHECK(format == 1 && count == 1);
    OK(cuLaunchKernel(by_name, 1, 1, 1, 8, 1, 1, 0, 0, args, 0));
    OK(cuMemcpyDtoH_v2(got, out, 32));
    for (int i = 0; i < 8; i++) CHECK(got[i] == bytes[i] / 255.0f);

    // Mipmap levels.
    OK(cuMipmappedArrayCreate(&mipmap, &(struct descriptor3){8, 8, 0, 0x20, 1, 0}, 3));
    OK(cuMipmappedArrayGetLevel(&level, mipmap, 2));
    OK(cuArray3DGetDescriptor_v2(&told3, level));
    CHECK(told3.width == 2 && told3.height == 2 && cuMipmappedArrayGetLevel(&level, mipmap, 3) == 1);
    OK(cuMipmappedArrayDestroy(mipmap));
    OK(cuArrayDestroy(line));
    CHECK(cuArrayDestroy(line) == 400);
    (void)found;
    puts("ok");
    return 0;
}
