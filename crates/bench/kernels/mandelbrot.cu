// How many steps each point of a part of the plane takes to escape. One thread per point, blocks of 32 x 8; neighbours leave
// the loop at different times.
extern "C" __global__ void mandelbrot(int* __restrict__ out, int w, int h, float left, float top, float step, int limit) {
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= w || py >= h) return;
    float cx = left + step * px, cy = top + step * py, x = 0.0f, y = 0.0f;
    int i = 0;
    while (i < limit && x * x + y * y <= 4.0f) {
        float next = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = next;
        i++;
    }
    out[py * w + px] = i;
}
