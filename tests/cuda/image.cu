// A texture between its texels, and a surface.
#include "check.h"

__global__ void blend(cudaTextureObject_t in, cudaSurfaceObject_t out) {
    int x = threadIdx.x, y = threadIdx.y;
    surf2Dwrite(tex2D<float>(in, x + 1.0f, y + 0.5f), out, x * int(sizeof(float)), y);
}

int main() {
    const int n = 16;
    float host[n][n], back[n][n];
    for (int y = 0; y < n; y++)
        for (int x = 0; x < n; x++) host[y][x] = float(x * x + y);
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t in, out;
    CALL(cudaMallocArray(&in, &format, n, n));
    CALL(cudaMallocArray(&out, &format, n, n, cudaArraySurfaceLoadStore));
    CALL(cudaMemcpy2DToArray(in, 0, 0, host, sizeof host[0], sizeof host[0], n, cudaMemcpyHostToDevice));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = in;
    cudaTextureDesc texture = {};
    texture.filterMode = cudaFilterModeLinear;
    texture.addressMode[0] = texture.addressMode[1] = cudaAddressModeClamp;
    cudaTextureObject_t sampled;
    cudaSurfaceObject_t written;
    CALL(cudaCreateTextureObject(&sampled, &resource, &texture, nullptr));
    resource.res.array.array = out;
    CALL(cudaCreateSurfaceObject(&written, &resource));
    blend<<<1, dim3(n, n)>>>(sampled, written);
    CALL(cudaMemcpy2DFromArray(back, sizeof back[0], out, 0, 0, sizeof back[0], n, cudaMemcpyDeviceToHost));
    for (int y = 0; y < n; y++)
        for (int x = 0; x < n; x++) CHECK(back[y][x] == (host[y][x] + host[y][x + 1 < n ? x + 1 : x]) / 2);
    printf("ok\n");
}
