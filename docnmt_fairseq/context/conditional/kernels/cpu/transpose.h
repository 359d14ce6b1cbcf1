// Rows of queries into columns, so that queries stand side by side along the lanes.
#pragma once

#include "lanes.h"

// After exchanging blocks of STEP lanes between rows i and i + STEP, for STEP = 1, 2, 4, ..., the block is transposed.
template <int W, int STEP>
struct UpperRow {
  static constexpr int of(int i) { return i & STEP ? W + i - STEP : i; }
};
template <int W, int STEP>
struct LowerRow {
  static constexpr int of(int i) { return i & STEP ? W + i : i + STEP; }
};

template <typename T, int STEP>
INLINE void exchange(Vec<T> (&row)[Lanes<T>::W]) {
  constexpr int W = Lanes<T>::W;
#pragma GCC unroll 16
  for (int i = 0; i < W; i++)
    if (!(i & STEP)) {
      const Vec<T> upper = row[i], lower = row[i + STEP];
      row[i] = shuffle<T, UpperRow<W, STEP>>(upper, lower);
      row[i + STEP] = shuffle<T, LowerRow<W, STEP>>(upper, lower);
    }
  if constexpr (2 * STEP < W) exchange<T, 2 * STEP>(row);
}

// out[j][x] = rows[x][j] for x < vectors · W, j < dim; out is [dim][TILE], dim a multiple of W.
template <typename T>
INLINE void transpose(const T* const* rows, int vectors, int64_t dim, T* out) {
  constexpr int W = Lanes<T>::W;
  for (int u = 0; u < vectors; u++)
    for (int64_t j = 0; j < dim; j += W) {
      Vec<T> block[W];
#pragma GCC unroll 16
      for (int i = 0; i < W; i++) block[i] = load(rows[u * W + i] + j);
      exchange<T, 1>(block);
#pragma GCC unroll 16
      for (int i = 0; i < W; i++) store(out + (j + i) * TILE<T> + u * W, block[i]);
    }
}
