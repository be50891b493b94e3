// Where does a pattern occur in a text?
//
// string_search: one thread per place of the text; match[i] = 1 where the pattern starts, else 0.
// string_search_hash: Rabin-Karp with a rolling hash: each thread goes over `span` places; *count starts at zero.
// Launch: 1-D grid that covers the text (or its spans).

extern "C" __global__ void string_search(const char *text, int length, const char *pattern, int m, unsigned char *match)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= length)
        return;
    int k = 0;
    while (k < m && i + k < length && text[i + k] == pattern[k])
        ++k;
    match[i] = k == m;
}

extern "C" __global__ void string_search_hash(const unsigned char *text, int length, const unsigned char *pattern, int m,
                                              int span, int *count)
{
    const unsigned base = 257, modulus = 1000003;
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * span;
    int last = min(first + span, length - m + 1);
    if (first >= last)
        return;
    unsigned wanted = 0, hash = 0, top = 1;
    for (int k = 0; k < m; ++k) {
        wanted = (wanted * base + pattern[k]) % modulus;
        hash = (hash * base + text[first + k]) % modulus;
        if (k > 0)
            top = top * base % modulus;
    }
    int found = 0;
    for (int i = first;; ++i) {
        if (hash == wanted) {
            int k = 0;
            while (k < m && text[i + k] == pattern[k])
                ++k;
            found += k == m;
        }
        if (i + 1 >= last)
            break;
        hash = ((hash + modulus - text[i] * top % modulus) * base + text[i + m]) % modulus;
    }
    atomicAdd(count, found);
}
