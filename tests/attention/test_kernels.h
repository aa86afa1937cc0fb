// Every Kernels object that this machine can run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernel/kernels.h"

namespace minisgl::testing {

struct NamedKernels {
  std::string name;
  std::unique_ptr<Kernels> kernels;
};

inline std::vector<NamedKernels> all_kernels() {
  std::vector<NamedKernels> all;
  all.push_back({"reference", make_reference_kernels()});
  return all;
}

}  // namespace minisgl::testing
