// What generated kernels need of CUDA on a processor, however their threads are run.
// C's headers only: those of C++ take longer to read than most kernels. By this name, libstdc++ has
// C's header without its own.
#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include <math.h>
#undef _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include <setjmp.h>
#include <string.h>

#define __global__
#define __device__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __noinline__

struct Index {
  unsigned x, y, z;
};
extern Index threadIdx, blockIdx, blockDim, gridDim;

template <class To, class From>
inline To bits_as(From from) {
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}
inline float __uint_as_float(unsigned bits) { return bits_as<float>(bits); }
inline unsigned __float_as_uint(float value) { return bits_as<unsigned>(value); }
inline float __int_as_float(int bits) { return bits_as<float>(bits); }
inline double __longlong_as_double(long long bits) { return bits_as<double>(bits); }
inline long long __double_as_longlong(double value) { return bits_as<long long>(value); }

inline unsigned short rounded_to_bf16(float value) {
  unsigned bits = bits_as<unsigned>(value);
  if (value != value) {
    return 0x7fff;
  }
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
inline float widened_f16(unsigned short bits) { return (float)bits_as<_Float16>(bits); }
inline unsigned short rounded_to_f16(float value) {
  return bits_as<unsigned short>((_Float16)value);
}


struct uint4 {
  unsigned x, y, z, w;
};
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
