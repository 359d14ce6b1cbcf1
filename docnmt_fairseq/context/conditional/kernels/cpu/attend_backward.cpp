// Attention to the tokens of selected sentences, backward, by recomputation: with P = exp(S + R − log_sum) and
// δ = rowsum(dO ⊙ O), dV = Pᵀ dO, dP = dO Vᵀ, dS = P ⊙ (dP − δ), dQ = dS K, dK = dSᵀ Q, dR = rowsum(dS).
//
// A sentence's dK and dV of one head are summed by one thread, tokens ascending; a token's dQ by one thread, sentences
// ascending: results depend neither on the number of threads nor on what else is in the batch.

#include "block.h"
#include "products.h"

namespace {

template <typename T>
struct Buffers {
  Pairs<T> pairs;
  Scratch<T> queries, grad_out, grad_queries, delta, log_sum, keys, values, grad_keys, grad_values, columns, weights, grads;
  Scratch<typename Lanes<T>::Word> query_bits, key_bits;
  std::vector<char> touched;  // sentences that have a gradient already
};

// Tokens [first, last) of the selection that chose sentences [first_row, last_row), as no other tokens did.
struct Segment {
  int64_t first, last, first_row, last_row;
};

// Returns the selection in segments, ascending; together they hold every token and every sentence.
template <typename T>
std::vector<Segment> segments(const Selection& s, const ByHead<T>& all) {
  std::vector<int64_t> least(all.least);  // of a token and all that follow
  least.push_back(s.rows);
  for (int64_t w = s.tokens - 1; w >= 0; w--) least[w] = std::min(least[w], least[w + 1]);
  std::vector<Segment> found;
  Segment next{0, 0, 0, 0};
  int64_t highest = -1;
  for (int64_t w = 0; w < s.tokens; w++) {
    highest = std::max(highest, all.most[w]);
    if (highest < least[w + 1] && (w + 1 == s.tokens || w + 1 - next.first >= BLOCK_WORDS / 8)) {
      next.last = w + 1;
      next.last_row = least[w + 1];
      found.push_back(next);
      next = {next.last, 0, next.last_row, 0};
    }
  }
  return found;
}

// From scores S and dP, both [m][TILE]: the weights that met the values into S, dS into dP, and rowsum(dS).
template <typename T, bool DROP>
INLINE void softmax_backward(T* scores, T* grads, int64_t m, int vectors, const T* shift, const T* delta, T* grad_bias,
                             const Dropout<T>& dropout, const typename Lanes<T>::Word* query_bits,
                             const typename Lanes<T>::Word* key_bits) {
  constexpr int W = Lanes<T>::W;
  for (int u = 0; u < vectors; u++) {
    T *score = scores + u * W, *grad = grads + u * W;
    const Vec<T> offset = load(shift + u * W), mean = load(delta + u * W);
    Vec<T> total{};
    Bits<T> bits{};
    if (DROP) bits = *reinterpret_cast<const Bits<T>*>(query_bits + u * W);
    for (int64_t k = 0; k < m; k++, score += TILE<T>, grad += TILE<T>) {
      const Vec<T> weight = vector_exp(load(score) + offset);
      Vec<T> of_weight = load(grad);
      if (DROP) {
        const Vec<T> factor = dropout.factor(bits, key_bits[k]);
        store(score, weight * factor);
        of_weight *= factor;
      } else {
        store(score, weight);
      }
      const Vec<T> of_score = weight * (of_weight - mean);
      store(grad, of_score);
      total += of_score;
    }
    store(grad_bias + u * W, total);
  }
}

template <typename T>
void tile_backward(const Attention& a, const Tile<T>& tile, int64_t head, int64_t first, int64_t m,
                   const Dropout<T>& dropout, Buffers<T>& b) {
  const int64_t dim = a.call.dim;
  T *columns = b.columns.data(), *weights = b.weights.data(), *grads = b.grads.data();
  const T *query[TILE<T>], *grad_out[TILE<T>];
  T* grad_query[TILE<T>];
  alignas(64) T shift[TILE<T>], delta[TILE<T>], grad_bias[TILE<T>], keep[TILE<T>];
  alignas(64) typename Lanes<T>::Word bits[TILE<T>];
  for (int x = 0; x < tile.lanes; x++) {
    const int64_t token = tile.token[x];
    query[x] = b.queries.data() + token * dim;
    grad_out[x] = b.grad_out.data() + token * dim;
    grad_query[x] = b.grad_queries.data() + token * dim;
    shift[x] = tile.score[x] - b.log_sum.data()[token];
    delta[x] = b.delta.data()[token];
    keep[x] = 1;
    if (dropout.active) bits[x] = b.query_bits.data()[token];
  }
  transpose<T>(query, tile.vectors, dim, columns);
  score_tile<T>(b.keys.data(), m, columns, tile.vectors, dim, weights);
  transpose<T>(grad_out, tile.vectors, dim, columns);
  score_tile<T>(b.values.data(), m, columns, tile.vectors, dim, grads);
  if (dropout.active)
    softmax_backward<T, true>(weights, grads, m, tile.vectors, shift, delta, grad_bias, dropout, bits,
                              b.key_bits.data());
  else
    softmax_backward<T, false>(weights, grads, m, tile.vectors, shift, delta, grad_bias, dropout, nullptr, nullptr);
  for (int x = 0; x < tile.queries; x++) *at<T>(a.grad_scores, ((first + tile.token[x]) * a.call.heads + head) * a.selection.places + tile.place[x]) =
        grad_bias[x];
  spread_rows<T>(weights, m, tile.queries, grad_out, dim, b.grad_values.data());
  spread_rows<T>(grads, m, tile.queries, query, dim, b.grad_keys.data());
  mix_values<T>(grads, tile.queries, b.keys.data(), m, dim, grad_query, keep);
}

// Tokens [first, last) of a segment and head; dK and dV are added to those of the blocks before.
template <typename T>
void block_backward(const Attention& a, const ByHead<T>& all, int64_t head, const Segment& segment, int64_t first, int64_t last,
                    Buffers<T>& b) {
  const int64_t tokens = last - first, heads = a.call.heads, dim = a.call.dim, stride = heads * dim;
  const Dropout<T> dropout(a.dropout, a.seed, heads);
  b.pairs.sort(all, head, first, last);
  T *queries = b.queries.room(tokens * dim), *grad_out = b.grad_out.room(tokens * dim);
  T *grad_queries = b.grad_queries.room(tokens * dim), *delta = b.delta.room(tokens), *log_sum = b.log_sum.room(tokens);
  b.columns.room(dim * TILE<T>);
  gather_rows(at<T>(a.grad_out, first * stride + head * dim), stride, tokens, dim, grad_out);
  for (int64_t w = 0; w < tokens; w++) {
    const int64_t item = a.selection.items[first + w];
    gather_rows(at<T>(a.q, item * stride + head * dim), stride, 1, dim, queries + w * dim, T(a.scale));
    const T* out = at<T>(const_cast<const void*>(a.out), (first + w) * stride + head * dim);
    Vec<T> product{};
    for (int64_t j = 0; j < dim; j += Lanes<T>::W) product += load(out + j) * load(grad_out + w * dim + j);
    delta[w] = fold<T>(product);
    log_sum[w] = *at<T>(const_cast<const void*>(a.log_sum), (first + w) * heads + head);
    if (dropout.active) b.query_bits.room(tokens)[w] = dropout.of_query(item, head);
  }
  std::fill(grad_queries, grad_queries + tokens * dim, T(0));
  for (int64_t r = b.pairs.occupied(0), next; r < b.pairs.rows(); r = next) {
    next = b.pairs.occupied(r + 1);
    const int64_t begin = b.pairs.start[r], end = b.pairs.start[r + 1];
    const int64_t row = b.pairs.first_row + r, key = a.offsets[row], m = a.offsets[row + 1] - key;
    const int64_t from = key * stride + head * dim;
    gather_rows(at<T>(a.k, from), stride, m, dim, b.keys.room(m * dim));
    gather_rows(at<T>(a.v, from), stride, m, dim, b.values.room(m * dim));
    T *grad_keys = b.grad_keys.room(m * dim), *grad_values = b.grad_values.room(m * dim);
    char& touched = b.touched[row - segment.first_row];
    if (touched) {
      gather_rows(at<T>(const_cast<const void*>(a.grad_k), from), stride, m, dim, grad_keys);
      gather_rows(at<T>(const_cast<const void*>(a.grad_v), from), stride, m, dim, grad_values);
    } else {
      std::fill(grad_keys, grad_keys + m * dim, T(0));
      std::fill(grad_values, grad_values + m * dim, T(0));
      touched = 1;
    }
    b.weights.room(m * TILE<T>);
    b.grads.room(m * TILE<T>);
    if (dropout.active)
      for (int64_t k = 0; k < m; k++) b.key_bits.room(m)[k] = dropout.of_key(key + k, head);
    Ahead<T> ahead = ahead_of<T>(a, head, b.pairs, next, (end - begin + TILE<T> - 1) / TILE<T>);
    for (int64_t c = begin; c < end; c += TILE<T>) {
      ahead.fetch();
      tile_backward<T>(a, Tile<T>(b.pairs, c, end), head, first, m, dropout, b);
    }
    scatter_rows(grad_keys, m, dim, at<T>(a.grad_k, from), stride);
    scatter_rows(grad_values, m, dim, at<T>(a.grad_v, from), stride);
  }
  for (int64_t w = 0; w < tokens; w++)
    scatter_rows(grad_queries + w * dim, 1, dim, at<T>(a.grad_q, a.selection.items[first + w] * stride + head * dim),
                 stride, T(a.scale));
}

template <typename T>
void segment_backward(const Attention& a, const ByHead<T>& all, int64_t head, const Segment& segment, Buffers<T>& b) {
  const int64_t tokens = segment.last - segment.first, stride = a.call.heads * a.call.dim;
  const int64_t most = block_words(all);
  const int64_t blocks = (tokens + most - 1) / most, size = (tokens + blocks - 1) / blocks;
  b.touched.assign(segment.last_row - segment.first_row, 0);
  for (int64_t first = segment.first; first < segment.last; first += size)
    block_backward<T>(a, all, head, segment, first, std::min(first + size, segment.last), b);
  for (int64_t row = segment.first_row; row < segment.last_row; row++)
    if (!b.touched[row - segment.first_row])
      for (int64_t key = a.offsets[row]; key < a.offsets[row + 1]; key++) {
        std::memset(at<T>(a.grad_k, key * stride + head * a.call.dim), 0, a.call.dim * sizeof(T));
        std::memset(at<T>(a.grad_v, key * stride + head * a.call.dim), 0, a.call.dim * sizeof(T));
      }
}

template <typename T>
void attend_backward(const Attention& a) {
  const ByHead<T> all(a.selection, at<T>(a.scores, 0), a.call.heads, a.call.threads);
  const std::vector<Segment> parts = segments<T>(a.selection, all);
  const int64_t jobs = int64_t(parts.size()) * a.call.heads;
#pragma omp parallel num_threads(a.call.threads)
  {
    Buffers<T> buffers;
#pragma omp for schedule(dynamic, 1)
    for (int64_t job = 0; job < jobs; job++)
      segment_backward<T>(a, all, job % a.call.heads, parts[job / a.call.heads], buffers);
  }
}

}  // namespace

extern "C" void kernel_attend_backward(const Attention* a) {
  if (a->selection.tokens == 0) return;
  if (a->call.is_double)
    attend_backward<double>(*a);
  else
    attend_backward<float>(*a);
}
