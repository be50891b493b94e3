// Rows of integers.
#include "peer.h"
typedef int Item;
static Item* items(i64 n) { return filled<int>(n, [](i64 i) { return (int)(hashed((uint32_t)i, 1) >> 16); }); }
