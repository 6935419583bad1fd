// A private array of structures, sorted by insertion at run-time indices.
struct Item {
    int key;
    short rank;
    unsigned char tag[2];
};

extern "C" __global__ void local_structs(const int *x, int *keys, int *marks, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    Item items[8];
    unsigned int state = (unsigned int)x[i];
    for (int k = 0; k < 8; ++k) {
        state = state * 1103515245u + 12345u;
        Item fresh;
        fresh.key = (int)(state >> 8) % 1000;
        fresh.rank = (short)k;
        fresh.tag[0] = (unsigned char)state;
        fresh.tag[1] = (unsigned char)(state >> 24);
        int at = k;
        while (at > 0 && items[at - 1].key > fresh.key) {
            items[at] = items[at - 1];
            --at;
        }
        items[at] = fresh;
    }
    int pick = (x[i] >> 3) & 7;
    keys[i] = items[pick].key;
    marks[i] = items[pick].rank * 65536 + items[7 - pick].tag[0] * 256 + items[pick ^ 1].tag[1];
}
