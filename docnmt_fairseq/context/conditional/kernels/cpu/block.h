// What forward and backward share: the tokens of a block and the tile of queries at work.
#pragma once

#include <cstring>

#include "dropout.h"
#include "lanes.h"
#include "pairs.h"
#include "scratch.h"
#include "transpose.h"

// Tokens attended for at a time: their queries and results stay in the second-level cache.
constexpr int64_t BLOCK_WORDS = 4096;
constexpr int64_t SENTENCE_PAIRS = 64;  // of a block with one sentence, on average and at least

// Returns how many tokens to attend for at a time. More of them where they choose among many sentences: else few would
// share a sentence's keys and values, which every block copies, and tiles would be half empty.
template <typename T>
int64_t block_words(const ByHead<T>& all) {
  int64_t span = 0;
  for (size_t w = 0; w < all.least.size(); w++) span = std::max(span, all.most[w] - all.least[w] + 1);
  return std::max(BLOCK_WORDS, SENTENCE_PAIRS * span / all.places);
}

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

// Keys and values of the sentence to come, fetched bit by bit while the tiles of the one before are computed: rows of one
// head lie far apart, and waiting for each would take as long as the arithmetic.
template <typename T>
class Ahead {
 public:
  Ahead(const T* k, const T* v, int64_t stride, int64_t rows, int64_t dim, int64_t steps)
      : k_(k), v_(v), stride_(stride), rows_(rows), dim_(dim), step_((rows + steps - 1) / steps) {}

  void fetch() {
    for (const int64_t end = std::min(rows_, next_ + step_); next_ < end; next_++)
      for (int64_t j = 0; j < dim_; j += 64 / int64_t(sizeof(T))) {
        __builtin_prefetch(k_ + next_ * stride_ + j, 0, 2);
        __builtin_prefetch(v_ + next_ * stride_ + j, 0, 2);
      }
  }

 private:
  const T *k_, *v_;
  int64_t stride_, rows_, dim_, step_, next_ = 0;
};

// Returns what is to be fetched in so many steps for sentence r of the pairs; nothing if there is none.
template <typename T>
Ahead<T> ahead_of(const Attention& a, int64_t head, const Pairs<T>& pairs, int64_t r, int64_t steps) {
  const int64_t dim = a.call.dim, stride = a.call.heads * dim;
  if (r >= pairs.rows()) return Ahead<T>(nullptr, nullptr, stride, 0, dim, 1);
  const int64_t key = a.offsets[pairs.first_row + r], from = key * stride + head * dim;
  return Ahead<T>(at<T>(a.k, from), at<T>(a.v, from), stride, a.offsets[pairs.first_row + r + 1] - key, dim, steps);
}

// Up to TILE pairs with one sentence. Lanes beyond the last pair repeat it; what they compute is not used.
template <typename T>
struct Tile {
  Tile(const Pairs<T>& pairs, int64_t begin, int64_t end)
      : queries(std::min<int64_t>(TILE<T>, end - begin)),
        vectors(int((queries + Lanes<T>::W - 1) / Lanes<T>::W)),
        lanes(vectors * Lanes<T>::W) {
    for (int x = 0; x < lanes; x++) {
      const int64_t pair = begin + std::min<int64_t>(x, queries - 1);
      token[x] = pairs.token[pair];
      place[x] = pairs.place[pair];
      score[x] = pairs.score[pair];
    }
  }

  int64_t queries;
  int vectors, lanes;
  int32_t token[TILE<T>];   // in the block
  int32_t place[TILE<T>];  // of the token's
  alignas(64) T score[TILE<T>];
};
