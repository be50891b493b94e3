// Nothing: what a launch itself costs.
extern "C" __global__ void empty() {}
