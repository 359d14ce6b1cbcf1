// Relevance of the chosen sentences, R = scale · q·k ([T] eq. 3), and its gradient.

#include <vector>

#include "block.h"

namespace {

constexpr int64_t JOB_WORDS = 128;
constexpr int64_t SUMS = 16;  // jobs that the gradient of the keys is divided into, whatever the number of threads

template <typename T>
void score_words(const Scores& s, int64_t first, int64_t last) {
  const int64_t heads = s.call.heads, dim = s.call.dim, places = s.selection.places;
  for (int64_t w = first; w < last; w++)
    for (int64_t head = 0; head < heads; head++) {
      const T* q = at<T>(s.q, (s.selection.items[w] * heads + head) * dim);
      const int64_t place = (w * heads + head) * places;
      for (int64_t j = place; j < place + places; j++) {
        const int64_t row = s.selection.sentence[j];
        Vec<T> product{};
        if (row >= 0) {
          const T* k = at<T>(s.k, (row * heads + head) * dim);
          for (int64_t c = 0; c < dim; c += Lanes<T>::W) product += load(q + c) * load(k + c);
        }
        at<T>(s.scores, 0)[j] = row >= 0 ? fold<T>(product) * T(s.scale) : -std::numeric_limits<T>::infinity();
      }
    }
}

template <typename T>
void score(const Scores& s) {
#pragma omp parallel for schedule(dynamic, 1) num_threads(s.call.threads)
  for (int64_t first = 0; first < s.selection.tokens; first += JOB_WORDS)
    score_words<T>(s, first, std::min(first + JOB_WORDS, s.selection.tokens));
}

// Tokens [first, last) of one head: their dQ, and what they add to dK, into grad_k [R, dim] of this job.
template <typename T>
void backward_words(const Scores& s, int64_t head, int64_t first, int64_t last, T* grad_k, int64_t k_stride) {
  const int64_t heads = s.call.heads, dim = s.call.dim, places = s.selection.places;
  for (int64_t w = first; w < last; w++) {
    const int64_t query = (s.selection.items[w] * heads + head) * dim, place = (w * heads + head) * places;
    const T* q = at<T>(s.q, query);
    T* grad_q = at<T>(s.grad_q, query);
    for (int64_t c = 0; c < dim; c += Lanes<T>::W) store(grad_q + c, Vec<T>{});
    for (int64_t j = place; j < place + places; j++) {
      const int64_t row = s.selection.sentence[j];
      if (row < 0) continue;
      const T grad = at<T>(s.grad_scores, 0)[j] * T(s.scale);
      const T* k = at<T>(s.k, (row * heads + head) * dim);
      T* to = grad_k + row * k_stride;
      for (int64_t c = 0; c < dim; c += Lanes<T>::W) {
        store(grad_q + c, load(grad_q + c) + load(k + c) * grad);
        store(to + c, load(to + c) + load(q + c) * grad);
      }
    }
  }
}

// Every job sums into a gradient of its own; these are added in the order of tokens.
template <typename T>
void score_backward(const Scores& s) {
  const int64_t heads = s.call.heads, tokens = s.selection.tokens, size = s.selection.rows * heads * s.call.dim;
  const int64_t parts = std::max<int64_t>(1, SUMS / heads), step = (tokens + parts - 1) / parts;
  std::vector<T> partial((parts - 1) * size, T(0));
  T* grad_k = at<T>(s.grad_k, 0);
  std::fill(grad_k, grad_k + size, T(0));
#pragma omp parallel for schedule(dynamic, 1) num_threads(s.call.threads)
  for (int64_t job = 0; job < parts * heads; job++) {
    const int64_t part = job / heads, head = job % heads;
    T* sums = part == 0 ? grad_k : partial.data() + (part - 1) * size;
    backward_words<T>(s, head, std::min(tokens, part * step), std::min(tokens, (part + 1) * step),
                      sums + head * s.call.dim, heads * s.call.dim);
  }
  for (int64_t part = 1; part < parts; part++) {
    const T* sums = partial.data() + (part - 1) * size;
    for (int64_t i = 0; i < size; i++) grad_k[i] += sums[i];
  }
}

}  // namespace

extern "C" void kernel_score(const Scores* s) {
  if (s->call.is_double)
    score<double>(*s);
  else
    score<float>(*s);
}

extern "C" void kernel_score_backward(const Scores* s) {
  if (s->call.is_double)
    score_backward<double>(*s);
  else
    score_backward<float>(*s);
}
