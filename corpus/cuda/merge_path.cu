// Merges two sorted arrays: every thread finds by binary search where its diagonal crosses the merge path and then
// merges ITEMS elements on its own. Equal keys: those of a come first.
//
// Launch: any 1-D grid with at least ceil((na + nb) / 8) threads.

#define ITEMS 8

extern "C" __global__ void merge_path(const int *a, int na, const int *b, int nb, int *out)
{
    int diagonal = (blockIdx.x * blockDim.x + threadIdx.x) * ITEMS;
    if (diagonal >= na + nb)
        return;
    int low = max(0, diagonal - nb), high = min(diagonal, na);
    while (low < high) {
        int mid = (low + high) / 2;
        if (a[mid] <= b[diagonal - 1 - mid])
            low = mid + 1;
        else
            high = mid;
    }
    int i = low, j = diagonal - low;
    for (int k = diagonal; k < min(diagonal + ITEMS, na + nb); ++k)
        out[k] = j >= nb || (i < na && a[i] <= b[j]) ? a[i++] : b[j++];
}
