// What forward and backward share: the words of a block and the tile of queries at work.
#pragma once

#include <cstring>

#include "dropout.h"
#include "lanes.h"
#include "pairs.h"
#include "scratch.h"
#include "transpose.h"

// Words attended for at a time: their queries and results stay in the second-level cache.
constexpr int64_t BLOCK_WORDS = 1024;

template <typename T>
T* at(void* base, int64_t offset) {
  return static_cast<T*>(base) + offset;
}
template <typename T>
const T* at(const void* base, int64_t offset) {
  return static_cast<const T*>(base) + offset;
}

// Copies rows that are `stride` apart to rows of dim one after another, each number times scale.
template <typename T>
void gather_rows(const T* from, int64_t stride, int64_t rows, int64_t dim, T* to, T scale = 1) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t j = 0; j < dim; j += Lanes<T>::W) store(to + r * dim + j, load(from + r * stride + j) * scale);
}

template <typename T>
void scatter_rows(const T* from, int64_t rows, int64_t dim, T* to, int64_t stride, T scale = 1) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t j = 0; j < dim; j += Lanes<T>::W) store(to + r * stride + j, load(from + r * dim + j) * scale);
}

// Up to TILE pairs with one sentence. Lanes beyond the last pair repeat it; what they compute is not used.
template <typename T>
struct Tile {
  Tile(const Pairs& pairs, int64_t begin, int64_t end)
      : queries(std::min<int64_t>(TILE<T>, end - begin)),
        vectors(int((queries + Lanes<T>::W - 1) / Lanes<T>::W)),
        lanes(vectors * Lanes<T>::W) {
    for (int x = 0; x < lanes; x++) {
      const int64_t pair = begin + std::min<int64_t>(x, queries - 1);
      word[x] = pairs.word[pair];
      place[x] = pairs.place[pair];
    }
  }

  int64_t queries;
  int vectors, lanes;
  int32_t word[TILE<T>];   // in the block
  int64_t place[TILE<T>];  // in [M, H, t]
};
