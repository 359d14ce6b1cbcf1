// Attention of the hypotheses of a search: few queries a sentence, each with keys of its own choice.
//
// What hypotheses share is read once for all of them from the nearest cache; what one does not see costs it nothing.

#include <algorithm>
#include <cmath>
#include <vector>

#include "lanes.h"
#include "scratch.h"
#include "step.h"

namespace {

constexpr int W = Lanes<float>::W;

// The sum over dim of a · b; dim is a multiple of W.
INLINE float product(const float* a, const float* b, int64_t dim) {
  Vec<float> sum = load(a) * load(b);
  for (int64_t j = W; j < dim; j += W) sum += load(a + j) * load(b + j);
  return fold<float>(sum);
}

// One hypothesis and one head: out [dim] = softmax(scale · q·k) v over the tokens `which` [count].
// DIM: of the head, where the compiler may know it; 0: dim is.
template <int DIM>
INLINE void look_at(const float* q, const float* k, const float* v, int64_t stride, const int32_t* which, int64_t count,
                    int64_t any_dim, float scale, float* weights, float* out) {
  const int64_t dim = DIM ? DIM : any_dim;
  float most = -std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < count; i++) {
    weights[i] = scale * product(q, k + which[i] * stride, dim);
    most = std::max(most, weights[i]);
  }
  const int64_t whole = (count + W - 1) / W * W;
  for (int64_t i = count; i < whole; i++) weights[i] = -std::numeric_limits<float>::infinity();
  Vec<float> sums{};
  for (int64_t i = 0; i < whole; i += W) {
    const Vec<float> w = vector_exp(load(weights + i) - most);
    store(weights + i, w);
    sums += w;
  }
  const float sum = fold<float>(sums), inverse = sum > 0 ? 1 / sum : 0;  // 0: nothing is seen
  if constexpr (DIM) {
    Vec<float> found[DIM / W] = {};
    for (int64_t i = 0; i < count; i++) {
      const float* row = v + which[i] * stride;
      for (int j = 0; j < DIM / W; j++) found[j] += weights[i] * load(row + j * W);
    }
    for (int j = 0; j < DIM / W; j++) store(out + j * W, found[j] * inverse);
  } else {
    for (int64_t j = 0; j < dim; j += W) {
      Vec<float> found{};
      for (int64_t i = 0; i < count; i++) found += weights[i] * load(v + which[i] * stride + j);
      store(out + j, found * inverse);
    }
  }
}

struct Room {
  std::vector<int32_t> which;  // of every hypothesis, the tokens that it sees
  std::vector<int64_t> counts;
  Scratch<float> weights;
};

template <int DIM>
void look_of_sentence(const Look& a, int64_t s, Room& room) {
  const int64_t b = a.hypotheses, heads = a.heads, dim = a.dim;
  const int64_t lists = a.seen_hypothesis ? b : 1;
  room.which.resize(lists * a.tokens);
  room.counts.assign(lists, 0);
  for (int64_t h = 0; h < lists; h++) {
    const bool* seen = a.seen + s * a.seen_sentence + h * a.seen_hypothesis;
    for (int64_t n = 0; n < a.tokens; n++)
      if (seen[n]) room.which[h * a.tokens + room.counts[h]++] = int32_t(n);
  }
  float* weights = room.weights.room(a.tokens + W);
  const float scale = float(1 / std::sqrt(double(dim)));
  for (int64_t head = 0; head < heads; head++) {
    const int64_t first = s * a.sentence_stride + head * a.head_stride;
    for (int64_t h = 0; h < b; h++) {
      const int64_t list = lists > 1 ? h : 0;
      const float* q = a.q + (s * b + h) * a.q_stride + head * dim;
      look_at<DIM>(q, a.k + first, a.v + first, a.token_stride, room.which.data() + list * a.tokens, room.counts[list],
                   dim, scale, weights, a.out + ((s * b + h) * heads + head) * dim);
    }
  }
}

template <int DIM>
void look(const Look& a) {
#pragma omp parallel num_threads(int(a.threads)) if (a.threads > 1)
  {
    Room room;
#pragma omp for schedule(dynamic, 4)
    for (int64_t s = 0; s < a.sentences; s++) look_of_sentence<DIM>(a, s, room);
  }
}

}  // namespace

extern "C" void kernel_look(const Look* a) {
  if (a->dim == 64)
    look<64>(*a);
  else if (a->dim == 32)
    look<32>(*a);
  else
    look<0>(*a);
}
