// paged_attention() of the CPU: the ragged batch cut into tasks of one request, one key-value head
// and a run of its queries.
#pragma once

#include <vector>

#include "kernel/cpu/scratch.h"
#include "kernel/cpu/table.h"
#include "kernel/cpu/team.h"
#include "kernel/kernels.h"

namespace minisgl::cpu {

class Attention {
 public:
  Attention(const Table& table, const Team& team) : table_(table), team_(team) {}
  void operator()(const PagedAttentionArgs& args);

 private:
  struct Task {
    int64_t request, head, first_token, tokens;
  };
  void plan(const PagedAttentionArgs& args);
  void run(const PagedAttentionArgs& args, const Task& task, float* scratch) const;

  const Table& table_;
  const Team& team_;
  std::vector<Task> tasks_;
  Scratch scratch_;
};

}  // namespace minisgl::cpu
