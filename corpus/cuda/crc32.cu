// CRC-32 (polynomial 0xEDB88320) of one message per thread, with a table that each block builds in shared memory; and the
// same bit by bit.
//
// Launch: 1-D grid with at least `messages` threads, blocks of 256 threads. Message i is bytes [start[i], start[i + 1]).

extern "C" __global__ void crc32(const unsigned char *data, const int *start, int messages, unsigned *out)
{
    __shared__ unsigned table[256];
    unsigned c = threadIdx.x;
    for (int k = 0; k < 8; ++k)
        c = c & 1 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
    table[threadIdx.x] = c;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= messages)
        return;
    unsigned crc = ~0u;
    for (int k = start[i]; k < start[i + 1]; ++k)
        crc = table[(crc ^ data[k]) & 0xff] ^ (crc >> 8);
    out[i] = ~crc;
}

extern "C" __global__ void crc32_bitwise(const unsigned char *data, const int *start, int messages, unsigned *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= messages)
        return;
    unsigned crc = ~0u;
    for (int k = start[i]; k < start[i + 1]; ++k) {
        crc ^= data[k];
#pragma unroll
        for (int b = 0; b < 8; ++b)
            crc = crc >> 1 ^ (0xEDB88320u & -(crc & 1));
    }
    out[i] = ~crc;
}
