#define TAPS 64
