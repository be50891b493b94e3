// What the programs of this folder share: a failed call, or a wrong result, ends with the line that it is in.
#pragma once
#include <cstdio>
#include <cstdlib>

#define CALL(call)                                                                                                                                   \
    do {                                                                                                                                             \
        cudaError_t status = (call);                                                                                                                 \
        if (status != cudaSuccess) {                                                                                                                 \
            printf("line %d: %s\n", __LINE__, cudaGetErrorName(status));                                                                             \
            exit(1);                                                                                                                                 \
        }                                                                                                                                            \
    } while (0)

#define CHECK(condition)                                                                                                                             \
    do {                                                                                                                                             \
        if (!(condition)) {                                                                                                                          \
            printf("line %d: not " #condition "\n", __LINE__);                                                                                       \
            exit(1);                                                                                                                                 \
        }                                                                                                                                            \
    } while (0)
