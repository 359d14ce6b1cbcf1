// What the library offers to Python: structures.py mirrors the structures field by field.
//
// Symbols: N tokens and R sentences of the batch, H heads, M selecting tokens, t places for sentences each. Tensors are
// contiguous, float or double throughout; dim is d_k filled up with zeros to a multiple of DIM_MULTIPLE.
#pragma once

#include <cstdint>

constexpr int64_t DIM_MULTIPLE = 16;  // lanes of the widest vectors

struct Call {
  int64_t is_double, threads, heads, dim;
};

struct Choice {  // KeepTopT of flat relevance
  Call call;
  const void *q, *k;                  // [N, H, dim], [R, H, dim]
  int64_t documents, places;          // documents that select; t, at most 16
  const int64_t *token, *tokens;        // [documents] first token, number of tokens
  const int64_t *sentence, *sentences;  // [documents] first sentence, number of sentences
  const int64_t* kept;                // [documents] t of each, at most its sentences
  int64_t* chosen;                    // [M, H, t] out: rows of sentences, −1: none
};

struct TreeChoice {  // the walk of sentence trees
  Call call;
  const void *q, *keys;          // [N, H, dim], [nodes, H, dim]
  int64_t documents, places;     // documents that select; t, at most 16
  const int64_t *token, *tokens;   // [documents] first token, number of tokens
  const int64_t* kept;           // [documents] t of each, at most its sentences
  const int64_t *first, *counts; // [heights, documents] first node and number of nodes, leaves first
  int64_t* chosen;               // [M, H, t] out: rows of sentences, ascending, then −1: none
};

struct Selection {
  int64_t tokens, places, rows;  // M, t, R
  const int64_t* items;         // [M] which tokens
  const int64_t* sentence;      // [M, H, t] rows of the chosen sentences, −1: none
};

struct Scores {  // R = scale · q·k of the chosen
  Call call;
  Selection selection;
  const void *q, *k;  // [N, H, dim], [R, H, dim]
  double scale;
  void* scores;              // [M, H, t] out; −∞ at places that hold none
  const void* grad_scores;   // [M, H, t]
  void *grad_q, *grad_k;     // [N, H, dim] out (rows of items only), [R, H, dim] out
};

struct Attention {
  Call call;
  Selection selection;
  const void *q, *k, *v;    // [N, H, dim]
  const void* scores;       // [M, H, t]
  const int64_t* offsets;   // [R + 1] first token of each sentence
  double scale, dropout;
  uint64_t seed;            // of dropout
  void* out;                // [M, H, dim] out of forward, in of backward
  void* log_sum;            // [M, H] the same: log Σ exp of a token's logits
  const void* grad_out;     // [M, H, dim]
  void *grad_q, *grad_k, *grad_v;  // [N, H, dim] out; grad_q: rows of items only
  void* grad_scores;        // [M, H, t] out
};

#pragma GCC visibility push(default)
extern "C" {
void kernel_choose(const Choice*);
void kernel_choose_in_tree(const TreeChoice*);
void kernel_score(const Scores*);
void kernel_score_backward(const Scores*);
void kernel_attend(const Attention*);
void kernel_attend_backward(const Attention*);
}
#pragma GCC visibility pop
