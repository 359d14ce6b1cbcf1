// The pairs (word, chosen sentence) of one head and a range of words, sorted by sentence.
#pragma once

#include <algorithm>
#include <vector>

#include "api.h"

class Pairs {
 public:
  // Sorts the pairs of words [first, last) of the selection. Stable: a sentence's words ascend.
  void sort(const Selection& s, int64_t heads, int64_t head, int64_t first, int64_t last) {
    int64_t least = s.rows, most = -1;
    for_each(s, heads, head, first, last, [&](int64_t, int64_t row, int64_t) {
      least = std::min(least, row);
      most = std::max(most, row);
    });
    first_row = least;
    start.assign(std::max<int64_t>(0, most - least + 1) + 1, 0);
    if (most < 0) return;
    for_each(s, heads, head, first, last, [&](int64_t, int64_t row, int64_t) { start[row - least + 1]++; });
    for (size_t r = 1; r < start.size(); r++) start[r] += start[r - 1];
    next_.assign(start.begin(), start.end() - 1);
    word.resize(start.back());
    place.resize(start.back());
    for_each(s, heads, head, first, last, [&](int64_t w, int64_t row, int64_t at) {
      const int64_t pair = next_[row - least]++;
      word[pair] = int32_t(w - first);
      place[pair] = at;
    });
  }

  int64_t rows() const { return int64_t(start.size()) - 1; }

  int64_t first_row = 0;        // the first sentence of any pair
  std::vector<int64_t> start;   // [rows + 1] where the pairs of sentence first_row + r begin
  std::vector<int32_t> word;    // [pairs] counted from first
  std::vector<int64_t> place;   // [pairs] where the pair is in [M, H, t]

 private:
  template <typename F>
  static void for_each(const Selection& s, int64_t heads, int64_t head, int64_t first, int64_t last, F&& f) {
    for (int64_t w = first; w < last; w++) {
      const int64_t at = (w * heads + head) * s.places;
      for (int64_t j = at; j < at + s.places; j++)
        if (s.sentence[j] >= 0) f(w, s.sentence[j], j);
    }
  }

  std::vector<int64_t> next_;
};
