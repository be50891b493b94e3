// Accelerations of n bodies under gravity, softened; the bodies pass through shared memory tile by tile.
// A body is (x, y, z, mass).
//
// Launch: 1-D grid of ceil(n / 64) blocks of 64 threads.

extern "C" __global__ void nbody(const float4 *body, float4 *acceleration, int n, float softening)
{
    __shared__ float4 tile[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    float4 me = i < n ? body[i] : make_float4(0, 0, 0, 0);
    float ax = 0, ay = 0, az = 0;
    for (int start = 0; start < n; start += 64) {
        tile[threadIdx.x] = start + threadIdx.x < n ? body[start + threadIdx.x] : make_float4(0, 0, 0, 0);
        __syncthreads();
#pragma unroll 8
        for (int j = 0; j < 64; ++j) {
            float dx = tile[j].x - me.x, dy = tile[j].y - me.y, dz = tile[j].z - me.z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
            float s = tile[j].w * inverse * inverse * inverse;
            ax += dx * s;
            ay += dy * s;
            az += dz * s;
        }
        __syncthreads();
    }
    if (i < n)
        acceleration[i] = make_float4(ax, ay, az, 0.0f);
}
