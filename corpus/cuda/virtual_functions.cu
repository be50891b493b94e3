// Objects with virtual functions, made on the device: areas of shapes, through an abstract base and two levels of
// inheritance.
//
// Launch: 1-D grid with at least n threads. kind selects the shape, size holds two numbers for each.

class Shape {
  public:
    __device__ virtual float area() const = 0;
    __device__ virtual float scale() const { return 1.0f; }
};

class Rectangle : public Shape {
  public:
    __device__ Rectangle(float w, float h) : width(w), height(h) {}
    __device__ float area() const override { return width * height; }

  protected:
    float width, height;
};

class Triangle : public Rectangle {
  public:
    __device__ Triangle(float w, float h) : Rectangle(w, h) {}
    __device__ float scale() const override { return 0.5f; }
};

class Ellipse : public Shape {
  public:
    __device__ Ellipse(float a, float b) : a(a), b(b) {}
    __device__ float area() const override { return 3.14159265f * a * b; }

  private:
    float a, b;
};

__device__ __noinline__ float measure(const Shape *shape) { return shape->area() * shape->scale(); }

extern "C" __global__ void virtual_functions(const int *kind, const float2 *size, float *area, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    Rectangle rectangle(size[i].x, size[i].y);
    Triangle triangle(size[i].x, size[i].y);
    Ellipse ellipse(size[i].x, size[i].y);
    const Shape *shapes[3] = {&rectangle, &triangle, &ellipse};
    area[i] = measure(shapes[kind[i] % 3]);
}
