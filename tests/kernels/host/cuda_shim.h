// Enough of CUDA's device language for a host C++ compiler to run this folder's kernels: every thread of a block is a
// fiber, barriers and warp operations switch between them.  It judges the references in Python, nothing else.
#pragma once
#include <cfenv>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <type_traits>
#include <ucontext.h>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __shared__ static
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define SHIM_INLINE static inline
#define SHIM_ROUNDED static __attribute__((noinline, optimize("rounding-math")))

struct dim3 { unsigned int x, y, z; };
static dim3 threadIdx, blockIdx, blockDim, gridDim;
alignas(16) static unsigned char shim_dynamic[1 << 16];

// ---- fibers ------------------------------------------------------------------------------------------------------

enum ShimState { SHIM_READY, SHIM_BARRIER, SHIM_WARP, SHIM_DONE };

struct ShimFiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    dim3 tid;
    unsigned int lane, warp, mask;
    ShimState state;
    uint64_t deposit, snapshot[32];
    unsigned int present;
};

static ucontext_t shim_scheduler;
static std::vector<ShimFiber> shim_fibers;
static ShimFiber *shim_now;
static int shim_count, shim_all, shim_any;
static void (*shim_call)(void **);
static void **shim_args;

static void shim_wait(ShimState state)
{
    shim_now->state = state;
    swapcontext(&shim_now->context, &shim_scheduler);
}

static void shim_body()
{
    shim_call(shim_args);
    shim_wait(SHIM_DONE);
}

static bool shim_release_warps()
{
    bool released = false;
    for (auto &leader : shim_fibers) {
        if (leader.state != SHIM_WARP)
            continue;
        unsigned int first = leader.warp * 32, live = 0, here = 0;
        for (unsigned int i = first; i < shim_fibers.size() && i < first + 32; ++i) {
            ShimFiber &f = shim_fibers[i];
            if (!(leader.mask >> f.lane & 1))
                continue;
            if (f.state != SHIM_DONE)
                live |= 1u << f.lane;
            if (f.state == SHIM_WARP && f.mask == leader.mask)
                here |= 1u << f.lane;
        }
        if (live != here)
            continue;
        uint64_t values[32] = {};
        for (unsigned int i = first; i < shim_fibers.size() && i < first + 32; ++i)
            if (here >> shim_fibers[i].lane & 1)
                values[shim_fibers[i].lane] = shim_fibers[i].deposit;
        for (unsigned int i = first; i < shim_fibers.size() && i < first + 32; ++i)
            if (here >> shim_fibers[i].lane & 1) {
                memcpy(shim_fibers[i].snapshot, values, sizeof values);
                shim_fibers[i].present = here;
                shim_fibers[i].state = SHIM_READY;
            }
        released = true;
    }
    return released;
}

static bool shim_release_barrier()
{
    shim_count = 0, shim_all = 1, shim_any = 0;
    unsigned int waiting = 0, live = 0;
    for (auto &f : shim_fibers) {
        live += f.state != SHIM_DONE;
        if (f.state == SHIM_BARRIER) {
            ++waiting;
            shim_count += f.deposit != 0;
            shim_all &= f.deposit != 0;
            shim_any |= f.deposit != 0;
        }
    }
    if (waiting == 0 || waiting != live)
        return false;
    for (auto &f : shim_fibers)
        if (f.state == SHIM_BARRIER)
            f.state = SHIM_READY;
    return true;
}

static int shim_run_block()
{
    unsigned int size = blockDim.x * blockDim.y * blockDim.z;
    const size_t stack = 1 << 16;
    shim_fibers = std::vector<ShimFiber>(size);
    for (unsigned int i = 0; i < size; ++i) {
        ShimFiber &f = shim_fibers[i];
        f.tid = {i % blockDim.x, i / blockDim.x % blockDim.y, i / (blockDim.x * blockDim.y)};
        f.lane = i % 32, f.warp = i / 32, f.state = SHIM_READY;
        f.stack = std::make_unique<char[]>(stack);
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = f.stack.get();
        f.context.uc_stack.ss_size = stack;
        f.context.uc_link = nullptr;
        makecontext(&f.context, shim_body, 0);
    }
    for (;;) {
        unsigned int done = 0, ready = 0;
        for (auto &f : shim_fibers) {
            if (f.state == SHIM_READY) {
                shim_now = &f;
                threadIdx = f.tid;
                swapcontext(&shim_scheduler, &f.context);
            }
            done += f.state == SHIM_DONE;
            ready += f.state == SHIM_READY; // it looks again for what another thread does
        }
        if (done == size)
            return 0;
        if (!ready && !shim_release_warps() && !shim_release_barrier())
            return 1; // deadlock
    }
}

extern "C" int shim_launch(void (*call)(void **), void **args, const unsigned int *dims)
{
    shim_call = call, shim_args = args;
    gridDim = {dims[0], dims[1], dims[2]}, blockDim = {dims[3], dims[4], dims[5]};
    for (blockIdx.z = 0; blockIdx.z < gridDim.z; ++blockIdx.z)
        for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)
            for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x)
                if (shim_run_block())
                    return 1;
    return 0;
}

// ---- barriers, warps, atomics --------------------------------------------------------------------------------------

SHIM_INLINE void __syncthreads() { shim_now->deposit = 0; shim_wait(SHIM_BARRIER); }
SHIM_INLINE void __threadfence() {}
SHIM_INLINE void shim_block_vote(int p) { shim_now->deposit = p != 0; shim_wait(SHIM_BARRIER); }
SHIM_INLINE int __syncthreads_count(int p) { shim_block_vote(p); return shim_count; }
SHIM_INLINE int __syncthreads_and(int p) { shim_block_vote(p); return shim_all; }
SHIM_INLINE int __syncthreads_or(int p) { shim_block_vote(p); return shim_any; }

SHIM_INLINE void shim_exchange(unsigned int mask, uint64_t value)
{
    shim_now->deposit = value, shim_now->mask = mask;
    shim_wait(SHIM_WARP);
}
template <class T> static T shim_shuffle(unsigned int mask, T value, int source_lane)
{
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    shim_exchange(mask, bits);
    bits = shim_now->snapshot[source_lane];
    memcpy(&value, &bits, sizeof value);
    return value;
}
template <class T> static T __shfl_sync(unsigned int m, T v, int lane, int width = 32)
{
    return shim_shuffle(m, v, (int)(shim_now->lane & ~(width - 1)) | (lane & (width - 1)));
}
template <class T> static T __shfl_up_sync(unsigned int m, T v, int delta, int width = 32)
{
    int lane = shim_now->lane, at = lane & (width - 1);
    return shim_shuffle(m, v, at >= delta ? lane - delta : lane);
}
template <class T> static T __shfl_down_sync(unsigned int m, T v, int delta, int width = 32)
{
    int lane = shim_now->lane, at = lane & (width - 1);
    return shim_shuffle(m, v, at + delta < width ? lane + delta : lane);
}
template <class T> static T __shfl_xor_sync(unsigned int m, T v, int bits, int width = 32)
{
    int lane = shim_now->lane, at = (lane & (width - 1)) ^ bits;
    return shim_shuffle(m, v, at < width ? (lane & ~(width - 1)) | at : lane);
}
SHIM_INLINE unsigned int __ballot_sync(unsigned int m, int p)
{
    shim_exchange(m, p != 0);
    unsigned int r = 0;
    for (int i = 0; i < 32; ++i)
        r |= (unsigned int)(shim_now->snapshot[i] & 1) << i;
    return r & shim_now->present;
}
SHIM_INLINE int __any_sync(unsigned int m, int p) { return __ballot_sync(m, p) != 0; }
SHIM_INLINE int __all_sync(unsigned int m, int p) { unsigned int r = __ballot_sync(m, p); return r == shim_now->present; }
template <class T> static unsigned int __match_any_sync(unsigned int m, T v)
{
    shim_exchange(m, (uint64_t)v);
    unsigned int r = 0;
    for (int i = 0; i < 32; ++i)
        r |= (unsigned int)(shim_now->snapshot[i] == (uint64_t)v) << i;
    return r & shim_now->present;
}
template <class T> static unsigned int __match_all_sync(unsigned int m, T v, int *same)
{
    unsigned int r = __match_any_sync(m, v);
    *same = r == shim_now->present;
    return *same ? r : 0;
}

#define SHIM_ATOMIC(name, expression)                                                                                  \
    template <class T> static T name(T *p, T v) { T old = *p; *p = (T)(expression); return old; }
SHIM_ATOMIC(atomicSub, old - v)
SHIM_ATOMIC(atomicMin, old < v ? old : v)
SHIM_ATOMIC(atomicMax, old > v ? old : v)
SHIM_ATOMIC(atomicAnd, old &v)
SHIM_ATOMIC(atomicOr, old | v)
SHIM_ATOMIC(atomicXor, old ^ v)
SHIM_ATOMIC(atomicExch, v)
SHIM_ATOMIC(atomicInc, old >= v ? 0 : old + 1)
SHIM_ATOMIC(atomicDec, old == 0 || old > v ? v : old - 1)
template <class T> static T shim_flush(T v)
{
    if constexpr (std::is_same_v<T, float>)
        return std::fabs(v) < 0x1p-126f ? std::copysign(0.0f, v) : v; // as atom.global.add.f32 does
    else
        return v;
}
template <class T> static T atomicAdd(T *p, T v)
{
    T old = *p;
    *p = shim_flush((T)(shim_flush(old) + shim_flush(v)));
    return old;
}
template <class T> static T atomicCAS(T *p, T compare, T v)
{
    T old = *p;
    if (old == compare)
        *p = v;
    return old;
}

// ---- integers ------------------------------------------------------------------------------------------------------

using std::abs;
using std::isinf;
using std::signbit;
template <class A, class B> static std::common_type_t<A, B> min(A a, B b) { return a < b ? a : b; }
template <class A, class B> static std::common_type_t<A, B> max(A a, B b) { return a > b ? a : b; }
template <class T> static T shim_divide(T a, T b) { return b == 0 ? T(0) : b == T(-1) && std::is_signed_v<T> ? T(0 - a) : T(a / b); }
template <class T> static T shim_modulo(T a, T b) { return b == 0 ? T(0) : b == T(-1) && std::is_signed_v<T> ? T(0) : T(a % b); }

SHIM_INLINE int __popc(unsigned int v) { return __builtin_popcount(v); }
SHIM_INLINE int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
SHIM_INLINE int __clz(int v) { return v ? __builtin_clz((unsigned int)v) : 32; }
SHIM_INLINE int __clzll(long long v) { return v ? __builtin_clzll((unsigned long long)v) : 64; }
SHIM_INLINE int __ffs(int v) { return __builtin_ffs(v); }
SHIM_INLINE int __ffsll(long long v) { return __builtin_ffsll(v); }
SHIM_INLINE unsigned long long __brevll(unsigned long long v)
{
    unsigned long long r = 0;
    for (int i = 0; i < 64; ++i)
        r = r << 1 | (v >> i & 1);
    return r;
}
SHIM_INLINE unsigned int __brev(unsigned int v) { return (unsigned int)(__brevll(v) >> 32); }
SHIM_INLINE unsigned int __byte_perm(unsigned int a, unsigned int b, unsigned int s)
{
    uint64_t pool = (uint64_t)b << 32 | a;
    unsigned int r = 0;
    for (int i = 0; i < 4; ++i) {
        unsigned int byte = (unsigned int)(pool >> 8 * (s >> 4 * i & 7)) & 255;
        r |= (s >> 4 * i & 8 ? (byte & 128 ? 255u : 0u) : byte) << 8 * i;
    }
    return r;
}
SHIM_INLINE int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
SHIM_INLINE unsigned int __umulhi(unsigned int a, unsigned int b) { return (unsigned int)((uint64_t)a * b >> 32); }
SHIM_INLINE long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
SHIM_INLINE unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
SHIM_INLINE int __mul24(int a, int b) { return (int)((long long)(a << 8 >> 8) * (b << 8 >> 8)); }
SHIM_INLINE unsigned int __funnelshift_l(unsigned int lo, unsigned int hi, unsigned int s)
{
    return (unsigned int)((((uint64_t)hi << 32 | lo) << (s & 31)) >> 32);
}
SHIM_INLINE unsigned int __funnelshift_r(unsigned int lo, unsigned int hi, unsigned int s)
{
    return (unsigned int)(((uint64_t)hi << 32 | lo) >> (s & 31));
}
SHIM_INLINE unsigned int __funnelshift_lc(unsigned int lo, unsigned int hi, unsigned int s)
{
    return s >= 32 ? lo : __funnelshift_l(lo, hi, s);
}
SHIM_INLINE unsigned int __funnelshift_rc(unsigned int lo, unsigned int hi, unsigned int s)
{
    return s >= 32 ? hi : __funnelshift_r(lo, hi, s);
}
SHIM_INLINE int __dp4a(int a, int b, int c)
{
    for (int i = 0; i < 4; ++i)
        c += (signed char)(a >> 8 * i) * (signed char)(b >> 8 * i);
    return c;
}
SHIM_INLINE unsigned int __dp4a(unsigned int a, unsigned int b, unsigned int c)
{
    for (int i = 0; i < 4; ++i)
        c += (a >> 8 * i & 255) * (b >> 8 * i & 255);
    return c;
}
SHIM_INLINE int __dp2a_lo(int a, int b, int c)
{
    return c + (short)a * (signed char)b + (short)(a >> 16) * (signed char)(b >> 8);
}
SHIM_INLINE unsigned int __dp2a_hi(unsigned int a, unsigned int b, unsigned int c)
{
    return c + (a & 0xffff) * (b >> 16 & 255) + (a >> 16) * (b >> 24);
}

// ---- floats --------------------------------------------------------------------------------------------------------

template <class To, class From> static To shim_bits(From v) { To r; memcpy(&r, &v, sizeof r); return r; }
SHIM_INLINE float __int_as_float(int v) { return shim_bits<float>(v); }
SHIM_INLINE float __uint_as_float(unsigned int v) { return shim_bits<float>(v); }
SHIM_INLINE unsigned int __float_as_uint(float v) { return shim_bits<unsigned int>(v); }
SHIM_INLINE float shim_fmaxf(float a, float b)
{
    return std::isnan(a) ? b : std::isnan(b) ? a : a > b ? a : b > a ? b : std::signbit(a) ? b : a;
}
SHIM_INLINE float shim_fminf(float a, float b) { return -shim_fmaxf(-a, -b); }
#define fmaxf shim_fmaxf
#define fminf shim_fminf
SHIM_INLINE float __saturatef(float v) { return v > 0.0f ? (v < 1.0f ? v : 1.0f) : 0.0f; }
static __attribute__((noinline)) float __fmul_rn(float a, float b) { return a * b; }
static __attribute__((noinline)) float __fadd_rn(float a, float b) { return a + b; }
static __attribute__((noinline)) float __fsub_rn(float a, float b) { return a - b; }
SHIM_INLINE float rsqrtf(float v) { return (float)(1.0 / std::sqrt((double)v)); }
SHIM_INLINE float __fdividef(float a, float b)
{
    float size = std::fabs(b);
    if (size > 0x1p126f && !std::isinf(b))
        return std::isinf(a) || std::isnan(a) ? NAN : 0.0f;
    return a / b;
}

template <class T, class F> static T shim_to_int(F v, double (*round)(double))
{
    constexpr bool wide = sizeof(T) == 8 || std::is_same_v<F, double>;
    constexpr T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
    if (std::isnan(v))
        return !wide ? T(0) : std::is_signed_v<T> ? low : T(T(1) << (8 * sizeof(T) - 1));
    double r = round((double)v);
    double end = std::ldexp(1.0, 8 * sizeof(T) - (std::is_signed_v<T> ? 1 : 0));
    return r >= end ? high : r <= (double)low ? low : (T)r;
}
SHIM_INLINE int __float2int_rn(float v) { return shim_to_int<int>(v, std::rint); }
SHIM_INLINE int __float2int_rz(float v) { return shim_to_int<int>(v, std::trunc); }
SHIM_INLINE int __float2int_rd(float v) { return shim_to_int<int>(v, std::floor); }
SHIM_INLINE int __double2int_ru(double v) { return shim_to_int<int>(v, std::ceil); }
SHIM_INLINE unsigned int __float2uint_rz(float v) { return shim_to_int<unsigned int>(v, std::trunc); }
SHIM_INLINE unsigned int __double2uint_rn(double v) { return shim_to_int<unsigned int>(v, std::rint); }
SHIM_INLINE long long __float2ll_rz(float v) { return shim_to_int<long long>(v, std::trunc); }
SHIM_INLINE long long __double2ll_rn(double v) { return shim_to_int<long long>(v, std::rint); }
SHIM_INLINE float __int2float_rn(int v) { return (float)v; }
SHIM_INLINE float __ull2float_rn(unsigned long long v) { return (float)v; }
SHIM_INLINE float __double2float_rn(double v) { return (float)v; }
SHIM_INLINE double __ll2double_rn(long long v) { return (double)v; }
SHIM_ROUNDED float __uint2float_rz(unsigned int v)
{
    fesetround(FE_TOWARDZERO);
    volatile float r = (float)(long long)v;
    fesetround(FE_TONEAREST);
    return r;
}
SHIM_ROUNDED float __double2float_rd(double v)
{
    fesetround(FE_DOWNWARD);
    volatile float r = (float)v;
    fesetround(FE_TONEAREST);
    return r;
}
SHIM_ROUNDED float __fsqrt_rz(float v)
{
    fesetround(FE_TOWARDZERO);
    volatile float r = __builtin_sqrtf(v);
    fesetround(FE_TONEAREST);
    return r;
}
