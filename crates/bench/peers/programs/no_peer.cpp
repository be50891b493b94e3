// Stands for programs without a natural loop.
