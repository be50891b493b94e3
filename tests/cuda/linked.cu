// Two files linked with -rdc=true: a function and a variable of the other one, objects on the device's heap, a virtual function.
#include "check.h"
#include "linked.h"

__device__ int Square::area() const { return twice(side) * side / 2; }

__global__ void make(Shape **shapes) { shapes[threadIdx.x] = new Square(threadIdx.x + base); }

__global__ void measure(Shape **shapes, int *areas) {
    areas[threadIdx.x] = shapes[threadIdx.x]->area();
    delete shapes[threadIdx.x];
}

int main() {
    const int n = 40;
    Shape **shapes;
    int *areas;
    CALL(cudaMallocManaged(&shapes, n * sizeof *shapes));
    CALL(cudaMallocManaged(&areas, n * sizeof *areas));
    make<<<1, n>>>(shapes);
    measure<<<1, n>>>(shapes, areas);
    CALL(cudaDeviceSynchronize());
    for (int i = 0; i < n; i++) CHECK(areas[i] == (i + 3) * (i + 3));
    printf("ok\n");
}
