"""Libraries with an LLVM of their own beside Triton's kernels, in one process: `broadloom exec -- python examples/other_llvm.py`."""

import ctypes
import sys

import llvmlite.binding as llvm
import torch

import triton_kernels

TRIANGLE = """
define i64 @triangle(i64 %n) {
  %next = add i64 %n, 1
  %twice = mul i64 %n, %next
  %half = sdiv i64 %twice, 2
  ret i64 %half
}
"""


def triangle(n):
    """Compiles a function with llvmlite and calls it."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    with llvm.create_mcjit_compiler(llvm.parse_assembly(TRIANGLE), machine) as engine:
        engine.finalize_object()
        return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(engine.get_function_address("triangle"))(n)


def main():
    good = True

    def tell(name, right):
        nonlocal good
        good = good and right
        print(f"{name}: {'right' if right else 'wrong'}", flush=True)

    # Before the first call of CUDA and after it: each side keeps its own LLVM in both orders.
    tell("llvmlite before CUDA", triangle(100) == 5050)
    kernels = triton_kernels.main()
    tell("llvmlite after CUDA", triangle(1000) == 500500)

    compiled = torch.compile(lambda x, y: torch.sin(x) * y + 1)
    x, y = torch.rand(1000), torch.rand(1000)
    tell("torch.compile on the host", torch.allclose(compiled(x, y), torch.sin(x) * y + 1))
    return 0 if good and kernels == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
