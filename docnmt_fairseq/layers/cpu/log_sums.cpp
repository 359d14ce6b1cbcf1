// log Σ exp of rows of logits: twice over a row while it is in a near cache, and nothing is written but the sums.

#include <algorithm>
#include <cmath>

#include "lanes.h"
#include "step.h"

namespace {

constexpr int W = Lanes<float>::W;
constexpr int APART = 4;  // sums that do not wait for each other

float log_sum(const float* x, int64_t count) {
  const int64_t whole = count / (APART * W) * (APART * W);
  float most = -std::numeric_limits<float>::infinity();
  Vec<float> largest[APART], sums[APART] = {};
  for (auto& one : largest) one = all(most);
  for (int64_t i = 0; i < whole; i += APART * W)
    for (int j = 0; j < APART; j++) {
      const Vec<float> y = load(x + i + j * W);
      largest[j] = largest[j] > y ? largest[j] : y;
    }
  for (const auto& one : largest)
    for (int lane = 0; lane < W; lane++) most = std::max(most, one[lane]);
  for (int64_t i = whole; i < count; i++) most = std::max(most, x[i]);
  if (std::isinf(most)) return most;
  for (int64_t i = 0; i < whole; i += APART * W)
    for (int j = 0; j < APART; j++) sums[j] += vector_exp(load(x + i + j * W) - most);
  double sum = 0;
  for (const auto& one : sums) sum += fold<float>(one);
  for (int64_t i = whole; i < count; i++) sum += std::exp(x[i] - most);
  return most + float(std::log(sum));
}

}  // namespace

extern "C" void kernel_log_sums(const Rows* a) {
#pragma omp parallel for num_threads(int(a->threads)) if (a->threads > 1)
  for (int64_t r = 0; r < a->rows; r++) a->log_sums[r] = log_sum(a->logits + r * a->tokens, a->tokens);
}
