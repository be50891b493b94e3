// Rows of floats.
#include "peer.h"
typedef float Item;
static Item* items(i64 n) { return units(n, 1); }
