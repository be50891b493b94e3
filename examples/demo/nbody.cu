// Two galaxies pass through each other. Every star pulls every other one; the last frame is drawn in characters.
//
//     nvcc -O2 -cudart shared -gencode arch=compute_75,code=compute_75 nbody.cu -o nbody
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int THREADS = 256;

#define CALL(call)                                                       \
    do {                                                                 \
        cudaError_t status = (call);                                     \
        if (status != cudaSuccess) {                                     \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status)); \
            exit(1);                                                     \
        }                                                                \
    } while (0)

// Adds the pull of all stars to the velocity of each. Stars pass through shared memory in tiles of a block.
__global__ void pull(const float4 *stars, float4 *velocities, int n, float step) {
    __shared__ float4 tile[THREADS];
    int i = blockIdx.x * THREADS + threadIdx.x;
    float4 me = stars[i];
    float ax = 0, ay = 0, az = 0;
    for (int start = 0; start < n; start += THREADS) {
        tile[threadIdx.x] = stars[start + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < THREADS; j++) {
            float4 other = tile[j];
            float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
            float weight = other.w * inverse * inverse * inverse;
            ax += dx * weight, ay += dy * weight, az += dz * weight;
        }
        __syncthreads();
    }
    velocities[i].x += ax * step, velocities[i].y += ay * step, velocities[i].z += az * step;
}

__global__ void move(float4 *stars, const float4 *velocities, float step) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    stars[i].x += velocities[i].x * step, stars[i].y += velocities[i].y * step, stars[i].z += velocities[i].z * step;
}

// A number in 0..1 that looks random.
float unit(unsigned i, unsigned stream) {
    unsigned x = i * 0x9e3779b9u + stream * 0x85ebca6bu;
    x = (x ^ (x >> 16)) * 0x7feb352du, x = (x ^ (x >> 15)) * 0x846ca68bu;
    return (x ^ (x >> 16)) / 4294967296.0f;
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) / THREADS * THREADS : 8192, steps = argc > 2 ? atoi(argv[2]) : 20;
    if (n < THREADS || steps < 0) {
        fprintf(stderr, "usage: nbody [STARS [STEPS]], at least %d stars\n", THREADS);
        return 2;
    }
    const float step = 0.03f;
    std::vector<float4> stars(n), velocities(n);
    for (int i = 0; i < n; i++) {
        // A disc of stars on circular orbits; the second half is another galaxy, tilted.
        float side = i < n / 2 ? -1.0f : 1.0f;
        float radius = 0.1f + 0.9f * std::sqrt(unit(i, 1)), angle = 6.2831853f * unit(i, 2);
        float x = radius * std::cos(angle), y = radius * std::sin(angle), z = 0.1f * (unit(i, 3) - 0.5f);
        float speed = std::sqrt(0.5f * radius);
        stars[i] = make_float4(x + 1.1f * side, y * (side < 0 ? 0.5f : 0.9f) + 0.35f * side, z, 1.0f / n);
        velocities[i] = make_float4(-speed * y / radius - 0.4f * side, speed * x / radius, 0, 0);
    }
    float4 *where, *speed;
    CALL(cudaMalloc(&where, n * sizeof(float4)));
    CALL(cudaMalloc(&speed, n * sizeof(float4)));
    CALL(cudaMemcpy(where, stars.data(), n * sizeof(float4), cudaMemcpyHostToDevice));
    CALL(cudaMemcpy(speed, velocities.data(), n * sizeof(float4), cudaMemcpyHostToDevice));
    for (int i = 0; i < steps; i++) {
        pull<<<n / THREADS, THREADS>>>(where, speed, n, step);
        move<<<n / THREADS, THREADS>>>(where, speed, step);
    }
    CALL(cudaGetLastError());
    CALL(cudaMemcpy(stars.data(), where, n * sizeof(float4), cudaMemcpyDeviceToHost));
    CALL(cudaFree(where));
    CALL(cudaFree(speed));

    constexpr int ROWS = 22, COLUMNS = 76;
    int count[ROWS][COLUMNS] = {};
    double centre = 0;
    for (const float4 &star : stars) {
        int column = int((star.x + 2.4f) / 4.8f * COLUMNS), row = int((star.y + 1.4f) / 2.8f * ROWS);
        if (column >= 0 && column < COLUMNS && row >= 0 && row < ROWS) count[row][column]++;
        centre += std::fabs(star.x) / n;
    }
    for (auto &row : count) {
        char line[COLUMNS + 1] = {};
        for (int i = 0; i < COLUMNS; i++) {
            int level = int(1.7f * std::log2(1.0f + row[i] * 8192.0f / n));
            line[i] = " .:-=+*#%@"[level < 9 ? level : 9];
        }
        int end = COLUMNS;
        while (end > 0 && line[end - 1] == ' ') line[--end] = 0;
        puts(line);
    }
    printf("%d stars after %d steps, mean distance %.4f\n", n, steps, centre);
}
