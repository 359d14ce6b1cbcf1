// The three small matrix products of a tile, each in blocks that stay in registers.
// A tile has up to TILE queries; scores S and weights P of a tile are [m][TILE], m the tokens of one sentence.
#pragma once

#include <algorithm>

#include "lanes.h"

#if defined(__AVX512F__) || defined(__aarch64__)  // 32 registers
constexpr int KEY_ROWS = 12, PANEL = 4;
#else  // 16
constexpr int KEY_ROWS = 6, PANEL = 2;
#endif
constexpr int ROWS = 6;

// Calls f(first, constant of rows) for blocks of nearly equal size, at most MOST rows each.
template <int MOST, typename F>
INLINE void in_blocks(int64_t rows, F&& f) {
  const int64_t blocks = (rows + MOST - 1) / MOST;
  for (int64_t b = 0, first = 0; b < blocks; b++) {
    const int64_t size = (rows - first + blocks - b - 1) / (blocks - b);
    switch (size) {
#define CASE(R) \
  case R:       \
    if constexpr (R <= MOST) f(first, std::integral_constant<int, R>()); \
    break;
      CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12)
#undef CASE
    }
    first += size;
  }
}

// Calls f(first column, constant of vectors) for panels of 4, 2 or 1 vectors; dim is a multiple of W.
template <typename T, typename F>
INLINE void in_panels(int64_t dim, F&& f) {
  constexpr int W = Lanes<T>::W;
  int64_t c = 0;
  if constexpr (PANEL == 4)
    for (; c + 4 * W <= dim; c += 4 * W) f(c, std::integral_constant<int, 4>());
  for (; c + 2 * W <= dim; c += 2 * W) f(c, std::integral_constant<int, 2>());
  for (; c < dim; c += W) f(c, std::integral_constant<int, 1>());
}

template <typename T, int R, int NV>
INLINE void score_block(const T* keys, const T* queries, int64_t dim, T* scores) {
  constexpr int W = Lanes<T>::W;
  Vec<T> sum[R][NV] = {};
  for (int64_t j = 0; j < dim; j++) {
    Vec<T> query[NV];
#pragma GCC unroll 2
    for (int u = 0; u < NV; u++) query[u] = load(queries + j * TILE<T> + u * W);
#pragma GCC unroll 12
    for (int r = 0; r < R; r++)
#pragma GCC unroll 2
      for (int u = 0; u < NV; u++) sum[r][u] += query[u] * keys[r * dim + j];
  }
#pragma GCC unroll 12
  for (int r = 0; r < R; r++)
#pragma GCC unroll 2
    for (int u = 0; u < NV; u++) store(scores + r * TILE<T> + u * W, sum[r][u]);
}

// S = K Qᵀ. keys: [m][dim]; queries: transposed, [dim][TILE]; vectors: 1 or 2 of the tile in use.
template <typename T>
INLINE void score_tile(const T* keys, int64_t m, const T* queries, int vectors, int64_t dim, T* scores) {
  in_blocks<KEY_ROWS>(m, [&](int64_t k, auto rows) __attribute__((always_inline)) {
    if (vectors == 2)
      score_block<T, rows.value, 2>(keys + k * dim, queries, dim, scores + k * TILE<T>);
    else
      score_block<T, rows.value, 1>(keys + k * dim, queries, dim, scores + k * TILE<T>);
  });
}

template <typename T, int R, int NV>
INLINE void mix_block(const T* weights, const T* values, int64_t m, int64_t dim, T* const* out, const T* keep) {
  constexpr int W = Lanes<T>::W;
  Vec<T> sum[R][NV];
#pragma GCC unroll 6
  for (int r = 0; r < R; r++)
#pragma GCC unroll 4
    for (int u = 0; u < NV; u++) sum[r][u] = load(out[r] + u * W) * keep[r];
  for (int64_t k = 0; k < m; k++) {
    Vec<T> value[NV];
#pragma GCC unroll 4
    for (int u = 0; u < NV; u++) value[u] = load(values + k * dim + u * W);
#pragma GCC unroll 6
    for (int r = 0; r < R; r++)
#pragma GCC unroll 4
      for (int u = 0; u < NV; u++) sum[r][u] += value[u] * weights[k * TILE<T> + r];
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; r++)
#pragma GCC unroll 4
    for (int u = 0; u < NV; u++) store(out[r] + u * W, sum[r][u]);
}

// out[x] = keep[x] · out[x] + Σ_k P[k][x] values[k] for x < queries. values: [m][dim]; out: rows of dim anywhere.
template <typename T>
INLINE void mix_values(
    const T* weights, int64_t queries, const T* values, int64_t m, int64_t dim, T* const* out, const T* keep) {
  in_blocks<ROWS>(queries, [&](int64_t x, auto rows) __attribute__((always_inline)) {
    in_panels<T>(dim, [&](int64_t c, auto vectors) __attribute__((always_inline)) {
      T* target[rows.value];
      for (int r = 0; r < rows.value; r++) target[r] = out[x + r] + c;
      mix_block<T, rows.value, vectors.value>(weights + x, values + c, m, dim, target, keep + x);
    });
  });
}

template <typename T, int R, int NV>
INLINE void spread_block(const T* weights, int64_t queries, const T* const* rows, int64_t c, T* out, int64_t dim) {
  constexpr int W = Lanes<T>::W;
  Vec<T> sum[R][NV];
#pragma GCC unroll 6
  for (int r = 0; r < R; r++)
#pragma GCC unroll 4
    for (int u = 0; u < NV; u++) sum[r][u] = load(out + r * dim + u * W);
  for (int64_t x = 0; x < queries; x++) {
    Vec<T> row[NV];
#pragma GCC unroll 4
    for (int u = 0; u < NV; u++) row[u] = load(rows[x] + c + u * W);
#pragma GCC unroll 6
    for (int r = 0; r < R; r++)
#pragma GCC unroll 4
      for (int u = 0; u < NV; u++) sum[r][u] += row[u] * weights[r * TILE<T> + x];
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; r++)
#pragma GCC unroll 4
    for (int u = 0; u < NV; u++) store(out + r * dim + u * W, sum[r][u]);
}

// out[k] += Σ_x P[k][x] rows[x] for k < m. rows: of dim each, anywhere; out: [m][dim].
// Queries are added one after another: the sum does not depend on where tiles end.
template <typename T>
INLINE void spread_rows(const T* weights, int64_t m, int64_t queries, const T* const* rows, int64_t dim, T* out) {
  in_blocks<ROWS>(m, [&](int64_t k, auto block) __attribute__((always_inline)) {
    in_panels<T>(dim, [&](int64_t c, auto vectors) __attribute__((always_inline)) {
      spread_block<T, block.value, vectors.value>(
          weights + k * TILE<T>, queries, rows, c, out + k * dim + c, dim);
    });
  });
}
