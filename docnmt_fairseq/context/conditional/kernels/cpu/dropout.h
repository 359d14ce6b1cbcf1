// Dropout of attention weights. Whether a weight is dropped is a hash of seed, head, token and key: the backward pass
// finds the same weights without storing them, and the number of threads has no part in it.
#pragma once

#include "lanes.h"

inline uint64_t mix_bits(uint64_t x) {  // the finaliser of SplitMix64
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

INLINE Bits<float> mix_lanes(Bits<float> x) {  // a 32-bit finaliser in the manner of MurmurHash3
  x = (x ^ (x >> 16)) * 0x7FEB352Du;
  x = (x ^ (x >> 15)) * 0x846CA68Bu;
  return x ^ (x >> 16);
}

INLINE Bits<double> mix_lanes(Bits<double> x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

template <typename T>
class Dropout {
 public:
  using Word = typename Lanes<T>::Word;
  using Index = typename Lanes<T>::Index;
  static constexpr Index MOST = std::numeric_limits<Index>::max();

  Dropout(double probability, uint64_t seed, int64_t heads)
      : active(probability > 0),
        seed_(mix_bits(seed)),
        heads_(heads),
        threshold_(probability < 1 ? Index(probability * double(MOST)) : MOST),
        scale_(probability < 1 ? T(1 / (1 - probability)) : T(0)) {}  // where all are dropped, none is scaled

  // A number for a token as query, and another for it as key.
  Word of_query(int64_t token, int64_t head) const { return Word(mix_bits(seed_ + 2 * (token * heads_ + head))); }
  Word of_key(int64_t token, int64_t head) const { return Word(mix_bits(seed_ + 2 * (token * heads_ + head) + 1)); }

  // 0 or 1/(1 − p) for one key and as many queries as there are lanes.
  inline __attribute__((always_inline)) Vec<T> factor(Bits<T> queries, Word key) const {
    const Int<T> draw = (Int<T>)(mix_lanes(queries ^ key) >> 1);  // not negative
    return draw < threshold_ ? Vec<T>{} : all(scale_);
  }

  const bool active;

 private:
  uint64_t seed_;
  int64_t heads_;
  Index threshold_;
  T scale_;
};
