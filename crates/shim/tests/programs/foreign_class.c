// Exports a class of LLVM's to all libraries, with another meaning, and none of its functions for C.

#include <stdio.h>

#include "types.h"

int _ZN4llvm2cl6Option11addArgumentEv(void) { return 100; }

int main(void) {
    printf("own %d, replacement %d\n", _ZN4llvm2cl6Option11addArgumentEv(), cuInit(0));
    return 0;
}
