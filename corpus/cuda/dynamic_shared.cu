// Dynamic shared memory that holds arrays of different types, beside static shared memory.
//
// Launch: 1-D grid, n threads per block, n * 16 bytes of dynamic shared memory: n doubles, n ints, n shorts, n times 2 bytes.
// Each block reverses its n elements and writes double + int + short + bytes.

extern "C" __global__ void dynamic_shared(const int *in, double *out)
{
    extern __shared__ __align__(16) unsigned char pool[];
    __shared__ int checksum[4];
    int n = blockDim.x, t = threadIdx.x, i = blockIdx.x * n + t, mirror = n - 1 - t;
    double *d = (double *)pool;
    int *w = (int *)(d + n);
    short *h = (short *)(w + n);
    unsigned char *b = (unsigned char *)(h + n);
    if (t < 4)
        checksum[t] = 0;
    __syncthreads();
    d[t] = in[i] * 0.5;
    w[t] = in[i] * 3;
    h[t] = (short)in[i];
    b[2 * t] = in[i];
    b[2 * t + 1] = in[i] >> 8;
    atomicXor(&checksum[t & 3], in[i]);
    __syncthreads();
    out[i] = d[mirror] + w[mirror] + h[mirror] + b[2 * mirror] + b[2 * mirror + 1] + checksum[mirror & 3];
}
