// Solves one sudoku per thread by recursive backtracking, with sets of free digits as bit masks in local memory.
//
// Launch: 1-D grid with at least n threads. A board is 81 bytes, zero for an empty cell; it is solved in place, and
// solved[i] tells whether it could be.

struct Board {
    unsigned char cell[81];
    unsigned short row[9], column[9], box[9];
};

__device__ bool solve(Board &b, int at)
{
    while (at < 81 && b.cell[at] != 0)
        ++at;
    if (at == 81)
        return true;
    int r = at / 9, c = at % 9, x = r / 3 * 3 + c / 3;
    unsigned open = 0x1ff & ~(b.row[r] | b.column[c] | b.box[x]);
    while (open != 0) {
        unsigned bit = open & -open;
        open ^= bit;
        b.row[r] |= bit;
        b.column[c] |= bit;
        b.box[x] |= bit;
        b.cell[at] = __ffs(bit);
        if (solve(b, at + 1))
            return true;
        b.row[r] &= ~bit;
        b.column[c] &= ~bit;
        b.box[x] &= ~bit;
        b.cell[at] = 0;
    }
    return false;
}

extern "C" __global__ void sudoku(unsigned char *boards, int n, unsigned char *solved)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    Board b = {};
    for (int k = 0; k < 81; ++k) {
        unsigned char d = boards[i * 81 + k];
        b.cell[k] = d;
        if (d != 0) {
            unsigned bit = 1u << (d - 1);
            b.row[k / 9] |= bit;
            b.column[k % 9] |= bit;
            b.box[k / 27 * 3 + k % 9 / 3] |= bit;
        }
    }
    solved[i] = solve(b, 0);
    for (int k = 0; k < 81; ++k)
        boards[i * 81 + k] = b.cell[k];
}
