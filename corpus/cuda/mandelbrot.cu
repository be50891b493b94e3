// Steps until z^2 + c leaves the disc of radius 2, for a grid of points c; and the same for Julia sets in doubles.
//
// Launch: 2-D grid that covers width x height.

extern "C" __global__ void mandelbrot(unsigned short *steps, int width, int height, float left, float top, float step,
                                      int limit)
{
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height)
        return;
    // Rounded after every operation, so that each implementation counts alike.
    float cx = __fadd_rn(left, __fmul_rn(px, step)), cy = __fadd_rn(top, __fmul_rn(py, step));
    float x = 0.0f, y = 0.0f;
    int k = 0;
    while (k < limit) {
        float xx = __fmul_rn(x, x), yy = __fmul_rn(y, y);
        if (__fadd_rn(xx, yy) > 4.0f)
            break;
        y = __fadd_rn(__fmul_rn(__fmul_rn(2.0f, x), y), cy);
        x = __fadd_rn(__fsub_rn(xx, yy), cx);
        ++k;
    }
    steps[py * width + px] = k;
}

extern "C" __global__ void julia(unsigned short *steps, int width, int height, double2 c, double scale, int limit)
{
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height)
        return;
    double x = __dmul_rn(px - width / 2, scale), y = __dmul_rn(py - height / 2, scale);
    int k = 0;
    for (; k < limit; ++k) {
        double xx = __dmul_rn(x, x), yy = __dmul_rn(y, y);
        if (__dadd_rn(xx, yy) > 4.0)
            break;
        double xy = __dmul_rn(x, y);
        x = __dadd_rn(__dsub_rn(xx, yy), c.x);
        y = __dadd_rn(__dadd_rn(xy, xy), c.y);
    }
    steps[py * width + px] = k;
}
