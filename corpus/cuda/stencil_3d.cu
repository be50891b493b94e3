// Seven-point Laplacian of an nx x ny x nz box; each thread marches along z with three planes in registers. The outer
// shell is left alone.
//
// Launch: 2-D grid of 2-D blocks that covers nx x ny.

extern "C" __global__ void stencil_3d(const float *in, float *out, int nx, int ny, int nz)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= nx - 1 || y >= ny - 1)
        return;
    int plane = nx * ny, at = y * nx + x;
    float below = in[at], here = in[at + plane];
    for (int z = 1; z < nz - 1; ++z) {
        int c = at + z * plane;
        float above = in[c + plane];
        out[c] = in[c - 1] + in[c + 1] + in[c - nx] + in[c + nx] + below + above - 6.0f * here;
        below = here;
        here = above;
    }
}
