// The pairs (word, chosen sentence) of one head and a range of words, sorted by sentence.
#pragma once

#include <algorithm>
#include <vector>

#include "api.h"

// The sentences that words chose: [least[w], most[w]], over all heads; least > most where a word chose none.
struct Extent {
  std::vector<int64_t> least, most;

  Extent(const Selection& s, int64_t heads) : least(s.words, s.rows), most(s.words, -1) {
    for (int64_t w = 0; w < s.words; w++)
      for (int64_t j = w * heads * s.places; j < (w + 1) * heads * s.places; j++) {
        const int64_t row = s.sentence[j];
        least[w] = row >= 0 ? std::min(least[w], row) : least[w];
        most[w] = std::max(most[w], row);
      }
  }
};

template <typename T>
class Pairs {
 public:
  // Sorts the pairs of words [first, last) of the selection. Stable: a sentence's words ascend.
  // scores: [M, H, t], each is put beside its pair.
  void sort(const Selection& s, const T* scores, const Extent& extent, int64_t heads, int64_t head, int64_t first,
            int64_t last) {
    first_row = *std::min_element(extent.least.begin() + first, extent.least.begin() + last);
    const int64_t end_row = *std::max_element(extent.most.begin() + first, extent.most.begin() + last) + 1;
    start.assign(std::max<int64_t>(0, end_row - first_row) + 1, 0);
    row_.resize((last - first) * s.places);
    int32_t* row = row_.data();
    for (int64_t w = first; w < last; w++)
      for (int64_t j = (w * heads + head) * s.places, end = j + s.places; j < end; j++, row++) {
        *row = s.sentence[j] < 0 ? -1 : int32_t(s.sentence[j] - first_row);
        if (*row >= 0) start[*row + 1]++;
      }
    for (size_t r = 1; r < start.size(); r++) start[r] += start[r - 1];
    next_.assign(start.begin(), start.end() - 1);
    word.resize(start.back());
    place.resize(start.back());
    score.resize(start.back());
    row = row_.data();
    for (int64_t w = first; w < last; w++)
      for (int64_t j = (w * heads + head) * s.places, end = j + s.places; j < end; j++, row++)
        if (*row >= 0) {
          const int64_t pair = next_[*row]++;
          word[pair] = int32_t(w - first);
          place[pair] = j;
          score[pair] = scores[j];
        }
  }

  int64_t rows() const { return int64_t(start.size()) - 1; }

  // Returns the first sentence from r on that has pairs, rows() if there is none.
  int64_t occupied(int64_t r) const {
    while (r < rows() && start[r] == start[r + 1]) r++;
    return r;
  }

  int64_t first_row = 0;        // the first sentence of any pair
  std::vector<int64_t> start;   // [rows + 1] where the pairs of sentence first_row + r begin
  std::vector<int32_t> word;    // [pairs] counted from first
  std::vector<int64_t> place;   // [pairs] where the pair is in [M, H, t]
  std::vector<T> score;         // [pairs]

 private:
  std::vector<int32_t> row_;    // [words · t]
  std::vector<int64_t> next_;
};
