"""A vector sum, a softmax and a matrix product in Triton: `broadloom exec -- python examples/triton_kernels.py`."""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < n
    tl.store(out + index, tl.load(x + index, mask=inside) + tl.load(y + index, mask=inside), mask=inside)


@triton.jit
def softmax(out, x, row, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * row
    column = tl.arange(0, BLOCK)
    values = tl.load(x + start + column, mask=column < n, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + start + column, powers / tl.sum(powers, axis=0), mask=column < n)


@triton.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None]
    column = (tl.program_id(1) * BN + tl.arange(0, BN))[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        left = tl.load(a + row * K + k[None, :], mask=(row < M) & (k[None, :] < K), other=0.0)
        right = tl.load(b + k[:, None] * N + column, mask=(k[:, None] < K) & (column < N), other=0.0)
        total += tl.dot(left, right)
    tl.store(c + row * N + column, total, mask=(row < M) & (column < N))


def main():
    torch.manual_seed(0)
    good = True

    def tell(name, right):
        nonlocal good
        good = good and right
        print(f"{name}: {'right' if right else 'wrong'}", flush=True)

    x, y = torch.rand(100000), torch.rand(100000)
    out = torch.empty(100000, device="cuda")
    add[(triton.cdiv(100000, 1024),)](x.cuda(), y.cuda(), out, 100000, BLOCK=1024)
    tell("vector sum", torch.equal(out.cpu(), x + y))

    x = torch.randn(60, 781)
    out = torch.empty(60, 781, device="cuda")
    softmax[(60,)](out, x.cuda(), 781, 781, BLOCK=1024)
    tell("softmax", torch.allclose(out.cpu(), torch.softmax(x, 1), atol=1e-6))

    for dtype in (torch.float16, torch.float32):
        a, b = torch.randn(130, 97).to(dtype), torch.randn(97, 150).to(dtype)
        out = torch.empty(130, 150, device="cuda")
        product[(3, 3)](a.cuda(), b.cuda(), out, 130, 150, 97, BM=64, BN=64, BK=32)
        tell(f"product of {dtype}", torch.allclose(out.cpu(), a.float() @ b.float(), atol=1e-2, rtol=1e-2))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
