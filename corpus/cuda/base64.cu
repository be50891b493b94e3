// Base64: each thread turns three bytes into four characters. n is a multiple of three.
//
// Launch: 1-D grid with at least n / 3 threads.

__device__ const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

extern "C" __global__ void base64_encode(const unsigned char *in, int n, char *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (3 * i >= n)
        return;
    unsigned word = in[3 * i] << 16 | in[3 * i + 1] << 8 | in[3 * i + 2];
    for (int k = 0; k < 4; ++k)
        out[4 * i + k] = alphabet[word >> (18 - 6 * k) & 63];
}

__device__ unsigned decode(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : 63;
}

extern "C" __global__ void base64_decode(const char *in, int n, unsigned char *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (4 * i >= n)
        return;
    unsigned word = 0;
    for (int k = 0; k < 4; ++k)
        word = word << 6 | decode(in[4 * i + k]);
    out[3 * i] = word >> 16;
    out[3 * i + 1] = word >> 8;
    out[3 * i + 2] = word;
}
