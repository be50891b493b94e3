// Sobel edge strength of a grey image of bytes: |gx| + |gy|, cut off at 255; the border is zero.
//
// Launch: 2-D grid that covers the image. pitch is the number of bytes from row to row.

extern "C" __global__ void sobel(const unsigned char *in, unsigned char *out, int width, int height, size_t pitch)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    int strength = 0;
    if (x > 0 && y > 0 && x < width - 1 && y < height - 1) {
        const unsigned char *up = in + (y - 1) * pitch + x, *mid = up + pitch, *down = mid + pitch;
        int gx = up[1] + 2 * mid[1] + down[1] - up[-1] - 2 * mid[-1] - down[-1];
        int gy = down[-1] + 2 * down[0] + down[1] - up[-1] - 2 * up[0] - up[1];
        strength = min(abs(gx) + abs(gy), 255);
    }
    out[y * pitch + x] = strength;
}
