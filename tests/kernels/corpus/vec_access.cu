// Vector loads and stores of 8 and 16 bytes, with elements shuffled between.
struct __align__(16) Quad {
    int x, y, z, w;
};
struct __align__(8) Duo {
    short a, b, c, d;
};

extern "C" __global__ void vec_access(const Quad *in, const Duo *small, Quad *out, Duo *packed, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    Quad q = in[i];
    Duo s = small[i];
    Quad r;
    r.x = q.w;
    r.y = q.x + q.z;
    r.z = q.y ^ s.a;
    r.w = q.z - s.d;
    out[i] = r;
    Duo t;
    t.a = s.d;
    t.b = (short)(s.c + q.x);
    t.c = s.a;
    t.d = (short)(q.y >> 16);
    packed[i] = t;
}
