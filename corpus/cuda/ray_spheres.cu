// Casts one ray per pixel at a few spheres and shades the nearest hit: a small vector class with operators.
//
// Launch: 2-D grid that covers width x height. A sphere is (x, y, z, radius); the camera stands at the origin and looks along +z.

struct Vec {
    float x, y, z;
    __device__ Vec operator+(Vec o) const { return {x + o.x, y + o.y, z + o.z}; }
    __device__ Vec operator-(Vec o) const { return {x - o.x, y - o.y, z - o.z}; }
    __device__ Vec operator*(float s) const { return {x * s, y * s, z * s}; }
    __device__ float dot(Vec o) const { return x * o.x + y * o.y + z * o.z; }
    __device__ Vec unit() const { return *this * rsqrtf(dot(*this)); }
};

__device__ bool hit(Vec direction, Vec centre, float radius, float *distance)
{
    float b = direction.dot(centre), disc = b * b - centre.dot(centre) + radius * radius;
    if (disc < 0.0f)
        return false;
    *distance = b - sqrtf(disc);
    return *distance > 0.0f;
}

extern "C" __global__ void ray_spheres(const float4 *sphere, int n, float *image, int width, int height)
{
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height)
        return;
    Vec direction = Vec{(px + 0.5f) / width - 0.5f, (py + 0.5f) / height - 0.5f, 1.0f}.unit();
    float nearest = 1e30f, shade = 0.0f;
    for (int i = 0; i < n; ++i) {
        Vec centre = {sphere[i].x, sphere[i].y, sphere[i].z};
        float distance;
        if (hit(direction, centre, sphere[i].w, &distance) && distance < nearest) {
            nearest = distance;
            Vec normal = (direction * distance - centre).unit();
            shade = fmaxf(0.0f, normal.dot(Vec{-0.57735f, -0.57735f, -0.57735f})) + 0.1f;
        }
    }
    image[py * width + px] = shade;
}
