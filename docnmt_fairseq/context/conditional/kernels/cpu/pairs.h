// The pairs (token, chosen sentence) of a selection: laid out by head, then sorted by sentence.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "api.h"

// A selection and its scores with one head's places one after another, and the range of sentences of every token.
template <typename T>
class ByHead {
 public:
  ByHead(const Selection& s, const T* scores, int64_t heads, int64_t threads)
      : places(s.places),
        least(s.tokens),
        most(s.tokens),
        tokens_(s.tokens),
        row_(new int32_t[heads * s.tokens * s.places]),
        score_(new T[heads * s.tokens * s.places]) {
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t w = 0; w < s.tokens; w++) {
      int64_t low = s.rows, high = -1;
      for (int64_t head = 0; head < heads; head++)
        for (int64_t j = 0; j < s.places; j++) {
          const int64_t from = (w * heads + head) * s.places + j, to = (head * s.tokens + w) * s.places + j;
          const int64_t row = s.sentence[from];
          low = row >= 0 ? std::min(low, row) : low;
          high = std::max(high, row);
          row_[to] = int32_t(row);
          score_[to] = scores[from];
        }
      least[w] = low;
      most[w] = high;
    }
  }

  const int32_t* rows(int64_t head, int64_t token) const { return &row_[(head * tokens_ + token) * places]; }
  const T* scores(int64_t head, int64_t token) const { return &score_[(head * tokens_ + token) * places]; }

  const int64_t places;
  std::vector<int64_t> least, most;  // [M] over all heads; least > most where a token chose none

 private:
  int64_t tokens_;
  std::unique_ptr<int32_t[]> row_;  // [H, M, t], −1: none
  std::unique_ptr<T[]> score_;
};

// The pairs of one head and a range of tokens, by sentence.
template <typename T>
class Pairs {
 public:
  // Sorts the pairs of tokens [first, last). Stable: a sentence's tokens ascend.
  void sort(const ByHead<T>& all, int64_t head, int64_t first, int64_t last) {
    first_row = *std::min_element(all.least.begin() + first, all.least.begin() + last);
    const int64_t end_row = *std::max_element(all.most.begin() + first, all.most.begin() + last) + 1;
    start.assign(std::max<int64_t>(0, end_row - first_row) + 1, 0);
    const int64_t total = (last - first) * all.places;
    const int32_t* row = all.rows(head, first);
    const T* scores = all.scores(head, first);
    for (int64_t j = 0; j < total; j++)
      if (row[j] >= 0) start[row[j] - first_row + 1]++;
    for (size_t r = 1; r < start.size(); r++) start[r] += start[r - 1];
    next_.assign(start.begin(), start.end() - 1);
    token.resize(start.back());
    place.resize(start.back());
    score.resize(start.back());
    for (int64_t j = 0; j < total; j++) {
      if (row[j] < 0) continue;
      const int64_t pair = next_[row[j] - first_row]++;
      token[pair] = int32_t(j / all.places);
      place[pair] = int32_t(j % all.places);
      score[pair] = scores[j];
    }
  }

  int64_t rows() const { return int64_t(start.size()) - 1; }

  // Returns the first sentence from r on that has pairs, rows() if there is none.
  int64_t occupied(int64_t r) const {
    while (r < rows() && start[r] == start[r + 1]) r++;
    return r;
  }

  int64_t first_row = 0;       // the first sentence of any pair
  std::vector<int64_t> start;  // [rows + 1] where the pairs of sentence first_row + r begin
  std::vector<int32_t> token;   // [pairs] counted from first
  std::vector<int32_t> place;  // [pairs] among the token's
  std::vector<T> score;        // [pairs]

 private:
  std::vector<int64_t> next_;
};
