#pragma once

// The memory of a Megatron-LM training on one rank in LibTorch's allocator, by name: after an
// iteration, and at its peak. It is computed from sizes and options. docs/megatron-memory.md has
// the rules and their sources.

#include <string>
#include <string_view>
#include <vector>

#include "pipewright/models/megatron/megatron_run.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::models {

struct Holder {
  std::string name;
  plan::Bytes bytes{};
  friend bool operator==(const Holder&, const Holder&) = default;
};

/// Named sizes in the order of their first addition. Repeated names are summed.
class MemoryByName {
 public:
  /// Adds `bytes` to a name. Ignores 0.
  void add(std::string_view name, long long bytes);
  void add(const MemoryByName& others, long long times);
  /// Returns the bytes of a name, or 0 if it was never added.
  long long of(std::string_view name) const;
  long long total() const;
  const std::vector<Holder>& holders() const { return holders_; }

 private:
  std::vector<Holder> holders_;
};

struct MegatronMemory {
  MemoryByName behind_iteration;
  MemoryByName at_peak;
  plan::Bytes allocated{};        // the total of `behind_iteration`
  plan::Bytes peak{};             // over all steps
  plan::Bytes first_step_peak{};  // before the optimizer state exists
};

/// Computes the memory of a run. Throws InputError if its sizes do not fit together, or if it uses
/// a feature that is not supported.
MegatronMemory megatron_memory(const MegatronRun& run);

}  // namespace pipewright::models
