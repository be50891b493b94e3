#define TAPS 512
