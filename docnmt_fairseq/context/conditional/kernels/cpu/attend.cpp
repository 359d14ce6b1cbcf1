// Attention to the tokens of selected sentences, forward ([T] eq. 7).
//
// A block of tokens of one head visits the sentences that any of them chose, one after another. The queries that chose a
// sentence attend to its tokens in tiles, with the running maximum and sum of an online softmax: out is rescaled as the
// maximum rises, so that no logit is kept. A token's sentences are visited in ascending order, whatever the block.

#include <cmath>

#include "block.h"
#include "products.h"

namespace {

template <typename T>
struct Buffers {
  Pairs<T> pairs;
  Scratch<T> queries, out, highest, sum, keys, values, columns, weights;
  Scratch<typename Lanes<T>::Word> query_bits, key_bits;
};

// Turns the scores [m][TILE] of a tile into weights exp(score + bias − highest); updates highest and sum of its tokens,
// and returns in `keep` by how much what they have so far is to be scaled.
template <typename T, bool DROP>
INLINE void online_softmax(T* scores, int64_t m, int vectors, const T* bias, T* highest, T* sum, T* keep,
                           const Dropout<T>& dropout, const typename Lanes<T>::Word* query_bits,
                           const typename Lanes<T>::Word* key_bits) {
  constexpr int W = Lanes<T>::W;
  for (int u = 0; u < vectors; u++) {
    T* column = scores + u * W;
    Vec<T> most = load(column);
    for (int64_t k = 1; k < m; k++) {
      const Vec<T> score = load(column + k * TILE<T>);
      most = most > score ? most : score;
    }
    const Vec<T> before = load(highest + u * W), offset = load(bias + u * W);
    most = most + offset;
    most = most > before ? most : before;
    const Vec<T> shift = offset - most;
    Vec<T> total{};
    Bits<T> bits{};
    if (DROP) bits = *reinterpret_cast<const Bits<T>*>(query_bits + u * W);
    for (int64_t k = 0; k < m; k++) {
      Vec<T> weight = vector_exp(load(column + k * TILE<T>) + shift);
      total += weight;
      if (DROP) weight *= dropout.factor(bits, key_bits[k]);
      store(column + k * TILE<T>, weight);
    }
    const Vec<T> rescale = vector_exp(before - most);
    store(keep + u * W, rescale);
    store(highest + u * W, most);
    store(sum + u * W, load(sum + u * W) * rescale + total);
  }
}

template <typename T>
void attend_tile(const Attention& a, const Tile<T>& tile, int64_t m, const Dropout<T>& dropout, Buffers<T>& b) {
  const int64_t dim = a.call.dim;
  T *queries = b.queries.data(), *out = b.out.data(), *all_highest = b.highest.data(), *all_sums = b.sum.data();
  T *columns = b.columns.data(), *weights = b.weights.data();
  const T* query[TILE<T>];
  T* target[TILE<T>];
  alignas(64) T highest[TILE<T>], sum[TILE<T>], keep[TILE<T>];
  alignas(64) typename Lanes<T>::Word bits[TILE<T>];
  for (int x = 0; x < tile.lanes; x++) {
    const int64_t token = tile.token[x];
    query[x] = queries + token * dim;
    target[x] = out + token * dim;
    highest[x] = all_highest[token];
    sum[x] = all_sums[token];
    if (dropout.active) bits[x] = b.query_bits.data()[token];
  }
  transpose<T>(query, tile.vectors, dim, columns);
  score_tile<T>(b.keys.data(), m, columns, tile.vectors, dim, weights);
  if (dropout.active)
    online_softmax<T, true>(weights, m, tile.vectors, tile.score, highest, sum, keep, dropout, bits, b.key_bits.data());
  else
    online_softmax<T, false>(weights, m, tile.vectors, tile.score, highest, sum, keep, dropout, nullptr, nullptr);
  for (int x = 0; x < tile.queries; x++) {
    all_highest[tile.token[x]] = highest[x];
    all_sums[tile.token[x]] = sum[x];
  }
  mix_values<T>(weights, tile.queries, b.values.data(), m, dim, target, keep);
}

// Attends for tokens [first, last) of the selection.
template <typename T>
void attend_block(const Attention& a, const ByHead<T>& all, int64_t head, int64_t first, int64_t last, Buffers<T>& b) {
  const int64_t tokens = last - first, dim = a.call.dim, stride = a.call.heads * dim;
  const Dropout<T> dropout(a.dropout, a.seed, a.call.heads);
  b.pairs.sort(all, head, first, last);
  T *queries = b.queries.room(tokens * dim), *out = b.out.room(tokens * dim);
  T *highest = b.highest.room(tokens), *sum = b.sum.room(tokens);
  b.columns.room(dim * TILE<T>);
  for (int64_t w = 0; w < tokens; w++) {
    const int64_t item = a.selection.items[first + w];
    gather_rows(at<T>(a.q, item * stride + head * dim), stride, 1, dim, queries + w * dim, T(a.scale));
    if (dropout.active) b.query_bits.room(tokens)[w] = dropout.of_query(item, head);
  }
  std::fill(out, out + tokens * dim, T(0));
  std::fill(highest, highest + tokens, -std::numeric_limits<T>::infinity());
  std::fill(sum, sum + tokens, T(0));
  for (int64_t r = b.pairs.occupied(0), next; r < b.pairs.rows(); r = next) {
    next = b.pairs.occupied(r + 1);
    const int64_t begin = b.pairs.start[r], end = b.pairs.start[r + 1];
    const int64_t key = a.offsets[b.pairs.first_row + r], m = a.offsets[b.pairs.first_row + r + 1] - key;
    gather_rows(at<T>(a.k, key * stride + head * dim), stride, m, dim, b.keys.room(m * dim));
    gather_rows(at<T>(a.v, key * stride + head * dim), stride, m, dim, b.values.room(m * dim));
    b.weights.room(m * TILE<T>);
    if (dropout.active)
      for (int64_t k = 0; k < m; k++) b.key_bits.room(m)[k] = dropout.of_key(key + k, head);
    Ahead<T> ahead = ahead_of<T>(a, head, b.pairs, next, (end - begin + TILE<T> - 1) / TILE<T>);
    for (int64_t c = begin; c < end; c += TILE<T>) {
      ahead.fetch();
      attend_tile<T>(a, Tile<T>(b.pairs, c, end), m, dropout, b);
    }
  }
  for (int64_t w = 0; w < tokens; w++) {
    const int64_t row = (first + w) * a.call.heads + head;
    scatter_rows(out + w * dim, 1, dim, at<T>(a.out, row * dim), dim, T(1) / sum[w]);
    *at<T>(a.log_sum, row) = highest[w] + std::log(sum[w]);
  }
}

template <typename T>
void attend(const Attention& a) {
  const int64_t tokens = a.selection.tokens, heads = a.call.heads;
  const ByHead<T> all(a.selection, at<T>(a.scores, 0), heads, a.call.threads);
  // Enough blocks for every thread, where there are few heads.
  const int64_t most = block_words(all);
  const int64_t wanted = std::max<int64_t>((2 * a.call.threads + heads - 1) / heads, (tokens + most - 1) / most);
  const int64_t size = (tokens + wanted - 1) / wanted, blocks = (tokens + size - 1) / size;
#pragma omp parallel num_threads(a.call.threads)
  {
    Buffers<T> buffers;
#pragma omp for schedule(dynamic, 1)
    for (int64_t job = 0; job < heads * blocks; job++) {
      const int64_t first = job % blocks * size;
      attend_block<T>(a, all, job / blocks, first, std::min(tokens, first + size), buffers);
    }
  }
}

}  // namespace

extern "C" void kernel_attend(const Attention* a) {
  if (a->selection.tokens == 0) return;
  if (a->call.is_double)
    attend<double>(*a);
  else
    attend<float>(*a);
}
