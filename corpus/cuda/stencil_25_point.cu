// Eighth-order wave step in three dimensions: 25 points, coefficients in constant memory.
// next = 2 now - before + k * laplacian(now), for the points at least 4 away from every face.
//
// Launch: 3-D grid of 3-D blocks that covers the nx x ny x nz box.

__constant__ float coefficient[5] = {-205.0f / 72.0f, 8.0f / 5.0f, -1.0f / 5.0f, 8.0f / 315.0f, -1.0f / 560.0f};

extern "C" __global__ void stencil_25_point(const float *now, const float *before, float *next, int nx, int ny, int nz,
                                            float k)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x < 4 || y < 4 || z < 4 || x >= nx - 4 || y >= ny - 4 || z >= nz - 4)
        return;
    int row = nx, plane = nx * ny, c = z * plane + y * row + x;
    float sum = 3.0f * coefficient[0] * now[c];
#pragma unroll
    for (int r = 1; r <= 4; ++r)
        sum += coefficient[r] * (now[c - r] + now[c + r] + now[c - r * row] + now[c + r * row] + now[c - r * plane] +
                                 now[c + r * plane]);
    next[c] = 2.0f * now[c] - before[c] + k * sum;
}
