// KeepTopT of flat relevance ([T] eq. 3-4): the t sentences of its document that score highest, for every token and head.
//
// A tile of tokens stands along the lanes; every sentence's score goes before what is smaller in t slots, from the best
// down, which moves on by one. Among equals the one that was there stays first, sentences ascend: the lowest is first.

#include <vector>

#include "block.h"
#include "products.h"

namespace {

constexpr int64_t JOB_WORDS = 256;   // tokens that share one copy of the document's keys
constexpr int64_t SENTENCES = 48;    // scored before they are inserted: a multiple of KEY_ROWS

struct Job {
  int64_t document, head, first, last;  // tokens of the document, counted from its first
};

template <typename T>
struct Buffers {
  Scratch<T> keys, columns, scores;
};

// Inserts the scores [sentences][TILE] of sentences first, first + 1, ... into the slots of one vector of tokens.
template <typename T, int SLOTS>
INLINE void insert(const T* scores, int64_t sentences, int64_t first, Vec<T> (&best)[SLOTS], Int<T> (&which)[SLOTS]) {
  for (int64_t s = 0; s < sentences; s++) {
    const Vec<T> score = load(scores + s * TILE<T>);
    if (!any<T>(score > best[SLOTS - 1])) continue;
    Vec<T> next = score;  // what a slot gets if it moves on
    Int<T> sentence = Int<T>{} + typename Lanes<T>::Index(first + s);
#pragma GCC unroll 16
    for (int slot = 0; slot < SLOTS; slot++) {
      const Int<T> moves = score > best[slot];  // then so do all slots below
      const Vec<T> before = best[slot];
      const Int<T> of_before = which[slot];
      best[slot] = moves ? next : before;
      which[slot] = moves ? sentence : of_before;
      next = moves ? before : next;
      sentence = moves ? of_before : sentence;
    }
  }
}

// Chooses for tokens [first, first + tokens) of the batch, whose results begin at token `position` of the selection.
template <typename T, int SLOTS>
void choose_tile(const Choice& c, const Job& job, int64_t first, int64_t position, int64_t tokens, Buffers<T>& b) {
  constexpr int W = Lanes<T>::W;
  const int64_t dim = c.call.dim, heads = c.call.heads, sentences = c.sentences[job.document];
  T *columns = b.columns.room(dim * TILE<T>), *scores = b.scores.room(SENTENCES * TILE<T>);
  const int vectors = tokens > W ? 2 : 1;
  const T* query[TILE<T>];
  for (int x = 0; x < vectors * W; x++)
    query[x] = at<T>(c.q, ((first + std::min<int64_t>(x, tokens - 1)) * heads + job.head) * dim);
  transpose<T>(query, vectors, dim, columns);
  Vec<T> best[2][SLOTS];
  Int<T> which[2][SLOTS];
  for (int u = 0; u < vectors; u++)
    for (int slot = 0; slot < SLOTS; slot++) {
      best[u][slot] = all(-std::numeric_limits<T>::infinity());
      which[u][slot] = Int<T>{} - 1;
    }
  for (int64_t s = 0; s < sentences; s += SENTENCES) {
    const int64_t some = std::min(SENTENCES, sentences - s);
    score_tile<T>(b.keys.data() + s * dim, some, columns, vectors, dim, scores);
    for (int u = 0; u < vectors; u++) insert<T, SLOTS>(scores + u * W, some, s, best[u], which[u]);
  }
  for (int64_t x = 0; x < tokens; x++) {
    int64_t* chosen = c.chosen + ((position + x) * heads + job.head) * c.places;
    for (int64_t slot = 0; slot < c.places; slot++) {
      const int64_t place = slot < SLOTS && slot < c.kept[job.document] ? which[x / W][slot][x % W] : -1;
      chosen[slot] = place < 0 ? -1 : c.sentence[job.document] + place;
    }
  }
}

template <typename T>
void run(const Choice& c, const Job& job, int64_t position, Buffers<T>& b) {
  const int64_t dim = c.call.dim, stride = c.call.heads * dim, sentences = c.sentences[job.document];
  gather_rows(at<T>(c.k, c.sentence[job.document] * stride + job.head * dim), stride, sentences, dim,
              b.keys.room(sentences * dim));
  for (int64_t w = job.first; w < job.last; w += TILE<T>) {
    const int64_t tokens = std::min<int64_t>(TILE<T>, job.last - w), first = c.token[job.document] + w, t = c.kept[job.document];
    if (t == 1) choose_tile<T, 1>(c, job, first, position + w, tokens, b);
    else if (t == 2) choose_tile<T, 2>(c, job, first, position + w, tokens, b);
    else if (t <= 4) choose_tile<T, 4>(c, job, first, position + w, tokens, b);
    else if (t <= 8) choose_tile<T, 8>(c, job, first, position + w, tokens, b);
    else choose_tile<T, 16>(c, job, first, position + w, tokens, b);
  }
}

template <typename T>
void choose(const Choice& c) {
  std::vector<Job> jobs;
  std::vector<int64_t> position(1, 0);
  for (int64_t document = 0; document < c.documents; document++) {
    for (int64_t head = 0; head < c.call.heads; head++)
      for (int64_t w = 0; w < c.tokens[document]; w += JOB_WORDS)
        jobs.push_back({document, head, w, std::min(w + JOB_WORDS, c.tokens[document])});
    position.push_back(position.back() + c.tokens[document]);
  }
#pragma omp parallel num_threads(c.call.threads)
  {
    Buffers<T> buffers;
#pragma omp for schedule(dynamic, 1)
    for (int64_t j = 0; j < int64_t(jobs.size()); j++) run<T>(c, jobs[j], position[jobs[j].document], buffers);
  }
}

}  // namespace

extern "C" void kernel_choose(const Choice* c) {
  if (c->call.is_double)
    choose<double>(*c);
  else
    choose<float>(*c);
}
