// Loops that are entered in the middle and left from two levels: control flow that is not nested.
//
// Launch: 1-D grid with at least n threads. Collatz steps for even places, a two-state automaton for odd ones.

extern "C" __global__ void goto_machine(const unsigned *in, unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned v = in[i], steps = 0;
    if (i & 1)
        goto left;
    goto even;
odd:
    v = 3 * v + 1;
    ++steps;
even:
    if (v == 1 || steps > 200)
        goto done;
    if (v & 1)
        goto odd;
    v >>= 1;
    ++steps;
    goto even;
left:
    // Entered at either of its two states, depending on data.
    if (v % 3 == 0)
        goto right;
    v = v * 5 + 1;
    if (++steps > 40)
        goto done;
right:
    v = v / 2 + 7;
    if (++steps > 50)
        goto done;
    if (v & 2)
        goto left;
    v += steps;
    if (v % 7 != 0)
        goto right;
done:
    out[i] = v * 1000 + steps;
}
