// Exports a name of LLVM's to all libraries, with another meaning.

#include <stdio.h>

#include "types.h"

int LLVMContextCreate(void) { return 100; }

int main(void) {
    printf("own %d, replacement %d\n", LLVMContextCreate(), cuInit(0));
    return 0;
}
