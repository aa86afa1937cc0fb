// Every Kernels object that this machine can run.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernel/kernels.h"
#include "utils/thread_pool.h"

namespace minisgl::testing {

struct NamedKernels {
  std::string name;
  std::unique_ptr<ThreadPool> threads;
  std::unique_ptr<Kernels> kernels;
};

inline std::vector<NamedKernels> all_kernels() {
  std::vector<NamedKernels> all;
  all.push_back({"reference", nullptr, make_reference_kernels()});
  for (const std::string& isa : available_isas()) {
    auto threads = std::make_unique<ThreadPool>(2);
    auto kernels = make_cpu_kernels(*threads, isa);
    all.push_back({isa, std::move(threads), std::move(kernels)});
  }
  return all;
}

}  // namespace minisgl::testing
