struct large {
    long words[5];
};

double cudaMalloc(long, long, long, long, long, long, long, long, long, double, double, double, double, double, double, double,
                  double, double, float);
double cudaFree(int, ...);
struct large cuMemAlloc_v2(struct large, long);
int cuInit(unsigned);
