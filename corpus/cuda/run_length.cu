// Run-length encoding of one block's bytes and its inverse.
//
// run_length_encode: one block of 256 threads; n up to 256. run_length_decode: 1-D grid with one thread per decoded byte;
// start[r] is the first place of run r, start[runs] the length.

extern "C" __global__ void run_length_encode(const unsigned char *in, int n, unsigned char *symbol, int *length, int *runs)
{
    __shared__ int index[256];
    __shared__ int first[257];
    int t = threadIdx.x;
    int head = t < n && (t == 0 || in[t] != in[t - 1]);
    index[t] = head;
    __syncthreads();
    for (int offset = 1; offset < 256; offset *= 2) {
        int left = t >= offset ? index[t - offset] : 0;
        __syncthreads();
        index[t] += left;
        __syncthreads();
    }
    int total = index[255];
    if (head)
        first[index[t] - 1] = t;
    if (t == 0)
        first[total] = n;
    __syncthreads();
    if (t < total) {
        symbol[t] = in[first[t]];
        length[t] = first[t + 1] - first[t];
    }
    if (t == 0)
        *runs = total;
}

extern "C" __global__ void run_length_decode(const unsigned char *symbol, const int *start, int runs, unsigned char *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= start[runs])
        return;
    int low = 0, high = runs - 1;
    while (low < high) {
        int mid = (low + high + 1) / 2;
        if (start[mid] <= i)
            low = mid;
        else
            high = mid - 1;
    }
    out[i] = symbol[low];
}
