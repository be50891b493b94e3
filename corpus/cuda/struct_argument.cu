// Structures passed by value, with members of mixed sizes and an array inside.
//
// Launch: any 1-D grid with at least n threads.

struct Affine {
    float matrix[2][2];
    double offset[2];
    short repeat;
    signed char sign;
    int n;
};

struct Point {
    float x, y;
};

__device__ Point apply(Affine t, Point p)
{
    Point q;
    q.x = t.sign * (t.matrix[0][0] * p.x + t.matrix[0][1] * p.y) + (float)t.offset[0];
    q.y = t.sign * (t.matrix[1][0] * p.x + t.matrix[1][1] * p.y) + (float)t.offset[1];
    return q;
}

// Applies the map t.repeat times to every point.
extern "C" __global__ void struct_argument(Affine t, const Point *in, Point *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= t.n)
        return;
    Point p = in[i];
    for (int k = 0; k < t.repeat; ++k)
        p = apply(t, p);
    out[i] = p;
}

struct Weights {
    int w[8];
};

// A by-value array that is indexed with a value known only at run time.
extern "C" __global__ void indexed_argument(Weights weights, const unsigned *key, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = weights.w[key[i] & 7] * 3 + weights.w[(key[i] >> 3) & 7];
}
