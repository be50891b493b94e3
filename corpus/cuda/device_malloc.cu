// The device's heap: a linked list per thread, an array per block that all its threads share, and new / delete.
//
// list_sum: 1-D grid with at least n threads; thread i builds a list of i % 16 + 1 nodes, sums and frees it.
// shared_array: 1-D grid; the first thread of each block allocates, all write, the last thread reads and frees.
// object_heap: 1-D grid with at least n threads; objects with constructors and destructors.

struct Node {
    int value;
    Node *next;
};

extern "C" __global__ void list_sum(int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    Node *head = nullptr;
    for (int k = 0; k <= i % 16; ++k) {
        Node *node = (Node *)malloc(sizeof(Node));
        if (node == nullptr) {
            out[i] = -1;
            return;
        }
        node->value = i + k;
        node->next = head;
        head = node;
    }
    int sum = 0;
    while (head != nullptr) {
        Node *next = head->next;
        sum = sum * 3 + head->value;
        free(head);
        head = next;
    }
    out[i] = sum;
}

extern "C" __global__ void shared_array(long long *out)
{
    __shared__ int *data;
    if (threadIdx.x == 0)
        data = (int *)malloc(blockDim.x * sizeof(int));
    __syncthreads();
    data[threadIdx.x] = (blockIdx.x + 1) * threadIdx.x;
    __syncthreads();
    if (threadIdx.x == blockDim.x - 1) {
        long long sum = 0;
        for (int k = 0; k < blockDim.x; ++k)
            sum += data[k];
        out[blockIdx.x] = sum;
        free(data);
    }
}

struct Counted {
    __device__ Counted(int *live, int v) : live(live), v(v) { atomicAdd(live, 1); }
    __device__ ~Counted() { atomicSub(live, 1); }
    int *live;
    int v;
};

// *live starts at zero and is zero again at the end; out[i] = i * i.
extern "C" __global__ void object_heap(int *live, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    Counted *object = new Counted(live, i);
    out[i] = object->v * object->v;
    delete object;
}
