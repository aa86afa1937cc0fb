#include "kernel/cpu/isas.h"

#include <fmt/ranges.h>

#include <cstdlib>
#include <vector>

#include "kernel/kernels.h"
#include "utils/error.h"
#include "utils/system.h"

namespace minisgl {
namespace cpu {

#if defined(__x86_64__)
namespace x86_64_v2 {
extern const Table kTable;
}
namespace avx2 {
extern const Table kTable;
}
namespace avx512 {
extern const Table kTable;
}
#else
namespace generic {
extern const Table kTable;
}
#endif

namespace {

std::vector<const Table*> find_runnable() {
  std::vector<const Table*> tables;
#if defined(__x86_64__)
  const CpuFeatures features = cpu_features();
  if (features.avx512) tables.push_back(&avx512::kTable);
  if (features.avx2) tables.push_back(&avx2::kTable);
  if (features.x86_64_v2) tables.push_back(&x86_64_v2::kTable);
#else
  tables.push_back(&generic::kTable);
#endif
  return tables;
}

}  // namespace

std::span<const Table* const> runnable_tables() {
  static const std::vector<const Table*> tables = find_runnable();
  return tables;
}

const Table& find_table(const std::string& isa) {
  std::string name = isa;
  if (name == "auto") {
    const char* forced = std::getenv("MINISGL_ISA");
    if (forced != nullptr && *forced != '\0') name = forced;
  }
  const auto tables = runnable_tables();
  if (name == "auto" && !tables.empty()) return *tables.front();
  for (const Table* table : tables) {
    if (name == table->isa) return *table;
  }
  throw_error(ErrorKind::kInvalidArgument,
              "instruction set '{}' is not available, this machine ({}) runs: {}", name,
              cpu_model_name(), fmt::join(available_isas(), ", "));
}

}  // namespace cpu

std::span<const std::string> available_isas() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const cpu::Table* table : cpu::runnable_tables()) list.emplace_back(table->isa);
    return list;
  }();
  return names;
}

}  // namespace minisgl
