// A small interpreter: a switch of ten cases in a loop, with continue, return and an inner loop.
extern "C" __global__ void switch_loop(const unsigned char *code, int *out, int n, int steps)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int acc = out[i], pc = i;
    for (int s = 0; s < steps; ++s) {
        int op = code[pc & 63];
        switch (op) {
        case 0: acc += pc; break;
        case 1: acc ^= acc << 3; pc += 2; break;
        case 2: acc *= 5; break;
        case 3: pc ^= acc; break;
        case 4:
            if (acc & 1) {
                ++pc;
                continue;
            }
            acc >>= 1;
            break;
        case 5: acc = (int)__brev((unsigned int)acc); break;
        case 6: out[i] = acc; return;
        case 7: acc -= op * pc; break;
        case 8:
            for (int j = 0, stop = acc & 7; j < stop; ++j)
                acc += j * pc;
            break;
        case 9: acc = ~acc; break;
        default: acc += op; break;
        }
        ++pc;
    }
    out[i] = acc ^ 0x40000000;
}
