// Selection by walking sentence trees ([T] sec. 3.3.2): the format of the trees is told in context/conditional/tree.py.
//
// Every head and token walks by itself, with the nodes of a height that it keeps in ascending order: so are their
// children, and the leftmost comes first among equals.

#include <vector>

#include "block.h"

namespace {

constexpr int64_t JOB_WORDS = 64;
constexpr int64_t MOST = 16;  // nodes kept of a height

struct Job {
  int64_t document, head, first, last;  // tokens of the document, counted from its first
};

template <typename T>
INLINE T product(const T* a, const T* b, int64_t dim) {
  Vec<T> sum{};
  for (int64_t j = 0; j < dim; j += Lanes<T>::W) sum += load(a + j) * load(b + j);
  return fold<T>(sum);
}

// Keeps the t best of ascending nodes in place, still ascending; returns how many there are.
template <typename T>
INLINE int64_t keep_best(int64_t* nodes, const T* scores, int64_t count, int64_t t) {
  int64_t kept = 0;
  for (int64_t i = 0; i < count && kept < t; i++) {
    int better = 0;
    for (int64_t j = 0; j < i; j++) better += scores[j] >= scores[i];
    for (int64_t j = i + 1; j < count; j++) better += scores[j] > scores[i];
    if (better < t) nodes[kept++] = nodes[i];
  }
  return kept;
}

// Walks down document `d` for one token and head; returns how many leaves it found, which are then in `nodes`.
template <typename T>
int64_t walk(const TreeChoice& c, int64_t d, const T* q, int64_t head, int64_t* nodes) {
  const int64_t t = c.kept[d], stride = c.call.heads * c.call.dim;
  const T* keys = at<T>(c.keys, head * c.call.dim);
  int64_t height = 0;
  while (c.counts[height * c.documents + d] > t) height++;  // from there up everything is kept, whatever it scores
  int64_t kept = c.counts[height * c.documents + d];
  for (int64_t i = 0; i < kept; i++) nodes[i] = i;
  while (height-- > 0) {
    const int64_t first = c.first[height * c.documents + d], end = c.counts[height * c.documents + d];
    int64_t children[2 * MOST], count = 0;
    T scores[2 * MOST];
    for (int64_t i = 0; i < kept; i++)
      for (int64_t child = 2 * nodes[i]; child < std::min(end, 2 * nodes[i] + 2); child++) {
        children[count] = child;
        scores[count++] = product<T>(q, keys + (first + child) * stride, c.call.dim);
      }
    kept = keep_best<T>(children, scores, count, t);
    std::copy(children, children + kept, nodes);
  }
  return kept;
}

template <typename T>
void choose_in_tree(const TreeChoice& c) {
  std::vector<Job> jobs;
  std::vector<int64_t> position(1, 0);  // of a document's first token in the selection
  for (int64_t d = 0; d < c.documents; d++) {
    for (int64_t head = 0; head < c.call.heads; head++)
      for (int64_t w = 0; w < c.tokens[d]; w += JOB_WORDS) jobs.push_back({d, head, w, std::min(w + JOB_WORDS, c.tokens[d])});
    position.push_back(position.back() + c.tokens[d]);
  }
#pragma omp parallel for schedule(dynamic, 4) num_threads(c.call.threads)
  for (int64_t j = 0; j < int64_t(jobs.size()); j++) {
    const Job job = jobs[j];
    for (int64_t w = job.first; w < job.last; w++) {
      const T* q = at<T>(c.q, ((c.token[job.document] + w) * c.call.heads + job.head) * c.call.dim);
      int64_t* chosen = c.chosen + ((position[job.document] + w) * c.call.heads + job.head) * c.places;
      int64_t nodes[MOST];
      const int64_t found = walk<T>(c, job.document, q, job.head, nodes);
      for (int64_t i = 0; i < c.places; i++) chosen[i] = i < found ? c.first[job.document] + nodes[i] : -1;
    }
  }
}

}  // namespace

extern "C" void kernel_choose_in_tree(const TreeChoice* c) {
  if (c->call.is_double)
    choose_in_tree<double>(*c);
  else
    choose_in_tree<float>(*c);
}
