// What the two files of `linked` know of each other.
#pragma once

extern __device__ int base;
__device__ int twice(int x);

struct Shape {
    __device__ virtual int area() const = 0;
    __device__ virtual ~Shape() {}
};

struct Square : Shape {
    int side;
    __device__ explicit Square(int side) : side(side) {}
    __device__ int area() const override;
};
