// The other file of `linked`.
#include "linked.h"

__device__ int base = 3;
__device__ __noinline__ int twice(int x) { return x + x; }
