// A small stack machine: each thread runs the same program on its own input. The big switch becomes a jump table.
//
// Launch: 1-D grid with at least n threads. The program ends with opcode 0; its stack is at most 8 deep.
//
// nvcc: --jump-table-density=30

enum Op { HALT, PUSH, INPUT, ADD, SUB, MUL, AND, OR, XOR, SHL, SHR, NOT, NEG, DUP, SWAP, DROP, JUMP_IF_ZERO };

extern "C" __global__ void switch_dispatch(const int *program, const int *input, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int stack[8], top = 0, pc = 0;
    for (bool running = true; running;) {
        int a = top > 0 ? stack[top - 1] : 0, b = top > 1 ? stack[top - 2] : 0;
        switch (program[pc++]) {
        case HALT: running = false; break;
        case PUSH: stack[top++] = program[pc++]; break;
        case INPUT: stack[top++] = input[i]; break;
        case ADD: stack[--top - 1] = b + a; break;
        case SUB: stack[--top - 1] = b - a; break;
        case MUL: stack[--top - 1] = b * a; break;
        case AND: stack[--top - 1] = b & a; break;
        case OR: stack[--top - 1] = b | a; break;
        case XOR: stack[--top - 1] = b ^ a; break;
        case SHL: stack[--top - 1] = b << (a & 31); break;
        case SHR: stack[--top - 1] = b >> (a & 31); break;
        case NOT: stack[top - 1] = ~a; break;
        case NEG: stack[top - 1] = -a; break;
        case DUP: stack[top++] = a; break;
        case SWAP:
            stack[top - 1] = b;
            stack[top - 2] = a;
            break;
        case DROP: --top; break;
        case JUMP_IF_ZERO: {
            --top;
            int target = program[pc++];
            if (a == 0)
                pc = target;
            break;
        }
        }
    }
    out[i] = stack[top - 1];
}

__device__ __noinline__ int classify(unsigned char c)
{
    switch (c) {
    case 0: return 11;
    case 1: return 7;
    case 2: return 5;
    case 3: return c * 100;
    case 4: return -1;
    case 5: return 13;
    case 6: return 1 << 20;
    case 7: return 6;
    case 8:
    case 9: return 99;
    case 200: return 4;
    default: return 0;
    }
}

extern "C" __global__ void switch_values(const unsigned char *in, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = classify(in[i]);
}
