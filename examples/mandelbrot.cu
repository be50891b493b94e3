// The Mandelbrot set, drawn by the kernel itself: a block computes a row with one thread per column, and prints it.

#include <cstdio>

extern "C" __global__ void mandelbrot(int rows, int limit)
{
    __shared__ char row[257];
    const char shades[] = " .,:;-~=+*oxO#%";
    int column = threadIdx.x, columns = blockDim.x;
    for (int y = 0; y < rows; y++) {
        float cr = -2.3f + 3.2f * column / columns;
        float ci = 1.2f - 2.4f * y / (rows - 1);
        float zr = 0, zi = 0;
        int steps = 0;
        while (steps < limit && zr * zr + zi * zi < 4) {
            float next = zr * zr - zi * zi + cr;
            zi = 2 * zr * zi + ci;
            zr = next;
            steps++;
        }
        row[column] = steps == limit ? '@' : shades[steps % 15];
        if (column == 0)
            row[columns] = '\0';
        __syncthreads();
        if (column == 0)
            printf("%s\n", row);
        __syncthreads();
    }
}
