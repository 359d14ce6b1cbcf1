// What the library offers for a step of a search: structures.py mirrors the structures field by field.
//
// Symbols: S sentences side by side, b hypotheses of each, H heads of dim numbers, V tokens of the vocabulary.
#pragma once

#include <cstdint>

struct Look {  // what hypotheses find among n tokens of their sentence, which other hypotheses may have written
  int64_t threads, sentences, hypotheses, heads, dim, tokens;  // S, b, H, dim, n
  const float* q;                                              // [S, b, H, dim], q_stride apart
  int64_t q_stride;                                            // from one hypothesis to the next
  const float *k, *v;                                          // [S, H, n, dim]
  int64_t sentence_stride, head_stride, token_stride;          // of k and of v
  const bool* seen;                                            // [S, b, n] who sees which
  int64_t seen_sentence, seen_hypothesis;                      // strides; 0: all hypotheses see the same
  float* out;                                                  // [S, b, H, dim]
};

struct Rows {  // rows of logits
  int64_t threads, rows, tokens;  // R, V
  const float* logits;            // [R, V]
  float* log_sums;                // [R] out: log Σ exp
};

#pragma GCC visibility push(default)
extern "C" {
void kernel_look(const Look*);
void kernel_log_sums(const Rows*);
}
#pragma GCC visibility pop
