// Differences of neighbours, with a mistake at the end: the last thread reads past its array.

extern "C" __global__ void differences(const int *in, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i + 1] - in[i];
}
