// Counts the solutions of the n queens problem: each thread places the first two queens and searches the rest with an
// explicit stack in local memory.
//
// Launch: 1-D grid with at least n * n threads; n up to 16. *count starts at zero.

extern "C" __global__ void queens(int n, unsigned *count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * n)
        return;
    int place[16];
    place[0] = i / n;
    place[1] = i % n;
    if (abs(place[0] - place[1]) <= 1)
        return;
    unsigned found = 0;
    int row = 2;
    place[2] = -1;
    while (row >= 2) {
        bool fits = false;
        while (!fits && ++place[row] < n) {
            fits = true;
            for (int r = 0; r < row; ++r)
                if (place[r] == place[row] || abs(place[r] - place[row]) == row - r)
                    fits = false;
        }
        if (!fits) {
            --row;
        } else if (row == n - 1) {
            ++found;
        } else {
            ++row;
            place[row] = -1;
        }
    }
    atomicAdd(count, found);
}
