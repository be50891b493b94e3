// The same bits seen as other types: unions, reinterpretation intrinsics, bit-fields, packed structures, memcpy.
//
// Launch: 1-D grid with at least n threads.

#include <string.h>

union Word {
    float f;
    unsigned u;
    unsigned char b[4];
    unsigned short h[2];
};

struct Fields {
    unsigned low : 5;
    int middle : 11;
    unsigned high : 16;
};

struct __attribute__((packed)) Packed {
    unsigned char tag;
    unsigned value;
    unsigned short tail;
};

// The fast inverse square root of each float, and the digest of its bytes and fields.
extern "C" __global__ void type_punning(const float *in, float *root, unsigned *digest, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    Word w;
    w.f = in[i];
    unsigned sum = w.b[0] + 3 * w.b[1] + 5 * w.b[2] + 7 * w.b[3] + w.h[0] * w.h[1];
    w.u = 0x5f3759dfu - (w.u >> 1);
    root[i] = w.f * (1.5f - 0.5f * in[i] * w.f * w.f);
    Fields f;
    unsigned bits = __float_as_uint(in[i]);
    memcpy(&f, &bits, 4);
    f.middle += 3;
    f.high ^= f.low;
    memcpy(&bits, &f, 4);
    Packed p = {(unsigned char)i, bits, (unsigned short)(sum >> 4)};
    unsigned char raw[7];
    memcpy(raw, &p, 7);
    for (int k = 0; k < 7; ++k)
        sum = sum * 33 + raw[k];
    long long l = __double_as_longlong((double)in[i]);
    digest[i] = sum ^ (unsigned)(l >> 32) ^ (unsigned)l ^ (__hiloint2double(i, i) > 0.0);
}
