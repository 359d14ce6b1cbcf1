// Vectors of as many lanes as the instruction set has that this file is compiled for.
// Compilers' own vector types: the same source serves AVX-512, AVX2, SSE2 and NEON.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#define INLINE static inline __attribute__((always_inline))

template <typename T>
struct Lanes;

template <>
struct Lanes<float> {
  typedef float Vec __attribute__((vector_size(VECTOR_BYTES)));
  typedef float Loose __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));  // anywhere in memory
  typedef int32_t Int __attribute__((vector_size(VECTOR_BYTES)));
  typedef uint32_t Bits __attribute__((vector_size(VECTOR_BYTES)));
  typedef int32_t Index;
  typedef uint32_t Word;
  static constexpr int W = VECTOR_BYTES / 4;
};

template <>
struct Lanes<double> {
  typedef double Vec __attribute__((vector_size(VECTOR_BYTES)));
  typedef double Loose __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));
  typedef int64_t Int __attribute__((vector_size(VECTOR_BYTES)));
  typedef uint64_t Bits __attribute__((vector_size(VECTOR_BYTES)));
  typedef int64_t Index;
  typedef uint64_t Word;
  static constexpr int W = VECTOR_BYTES / 8;
};

template <typename T>
using Vec = typename Lanes<T>::Vec;
template <typename T>
using Int = typename Lanes<T>::Int;
template <typename T>
using Bits = typename Lanes<T>::Bits;

// Queries of one tile stand side by side along this many lanes.
template <typename T>
constexpr int TILE = 2 * Lanes<T>::W;

template <typename T>
INLINE Vec<T> load(const T* p) {
  return *reinterpret_cast<const typename Lanes<T>::Loose*>(p);
}

template <typename T>
INLINE void store(T* p, Vec<T> x) {
  *reinterpret_cast<typename Lanes<T>::Loose*>(p) = x;
}

template <typename T>
INLINE Vec<T> all(T x) {
  return Vec<T>{} + x;
}

// Whether any lane of a comparison holds.
template <typename T>
INLINE bool any(Int<T> mask) {
#if defined(__AVX512F__)
  return _mm512_test_epi64_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined(__AVX__)
  return !_mm256_testz_si256((__m256i)mask, (__m256i)mask);
#elif defined(__SSE2__)
  return _mm_movemask_epi8((__m128i)mask) != 0;
#else
  typedef int64_t Halves __attribute__((vector_size(VECTOR_BYTES)));
  const Halves halves = (Halves)mask;
  return (halves[0] | halves[1]) != 0;
#endif
}

// Lane i of the result is lane From(i) of a and b laid side by side.
template <typename T, typename From, int... I>
INLINE Vec<T> shuffle_lanes(Vec<T> a, Vec<T> b, std::integer_sequence<int, I...>) {
#if defined(__clang__)
  return __builtin_shufflevector(a, b, From::of(I)...);
#else
  constexpr Int<T> from = {From::of(I)...};
  return __builtin_shuffle(a, b, from);
#endif
}

template <typename T, typename From>
INLINE Vec<T> shuffle(Vec<T> a, Vec<T> b) {
  return shuffle_lanes<T, From>(a, b, std::make_integer_sequence<int, Lanes<T>::W>());
}

template <int STEP>
struct Partner {  // the lane that differs in one bit
  static constexpr int of(int i) { return i ^ STEP; }
};

// The sum of all lanes.
template <typename T, int STEP = Lanes<T>::W / 2>
INLINE T fold(Vec<T> x) {
  x += shuffle<T, Partner<STEP>>(x, x);
  if constexpr (STEP > 1)
    return fold<T, STEP / 2>(x);
  else
    return x[0];
}

// exp(x) to about one unit in the last place (range reduction by ln 2, polynomial of degree 5 after Cephes).
// Results below the normal range are 0: denormal numbers would slow every product that follows. NaN stays NaN.
INLINE Vec<float> vector_exp(Vec<float> x) {
  const Int<float> tiny = x < -87.3f;
  x = x < -87.3f ? all(-87.3f) : x;
  x = x > 88.f ? all(88.f) : x;
  const float shift = 12582912.f;  // 1.5 · 2^23: adding it rounds to a whole number
  const Vec<float> z = x * 1.44269504088896341f + shift;
  const Int<float> exponent = (Int<float>)z - 0x4B400000;
  const Vec<float> n = z - shift;
  x = x - n * 0.693359375f;
  x = x + n * 2.12194440e-4f;
  Vec<float> p = all(1.9875691500e-4f);
  p = p * x + 1.3981999507e-3f;
  p = p * x + 8.3334519073e-3f;
  p = p * x + 4.1665795894e-2f;
  p = p * x + 1.6666665459e-1f;
  p = p * x + 5.0000001201e-1f;
  p = p * (x * x) + x + 1.f;
  const Vec<float> power = (Vec<float>)((exponent + 127) << 23);
  return tiny ? Vec<float>{} : p * power;
}

INLINE Vec<double> vector_exp(Vec<double> x) {
  for (int i = 0; i < Lanes<double>::W; i++) x[i] = std::exp(x[i]);
  return x;
}
