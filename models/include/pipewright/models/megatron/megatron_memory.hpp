#pragma once

// What LibTorch's allocator holds of a training by Megatron-LM on one rank, by name: behind an
// iteration, and at its peak. Counted from sizes and options; the rules, with where they come from,
// are in docs/megatron-memory.md.

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

/// Holders by name, in the order of their first addition; what is added again is summed.
class Holdings {
 public:
  /// Nothing where `bytes` is 0.
  void add(std::string_view name, long long bytes);
  void add(const Holdings& others, long long times);
  /// Of a name; 0 where nobody has it.
  long long of(std::string_view name) const;
  long long total() const;
  const std::vector<Holder>& holders() const { return holders_; }

 private:
  std::vector<Holder> holders_;
};

struct MegatronMemory {
  Holdings behind_iteration;
  Holdings at_peak;
  plan::Bytes allocated{};        // the sum of the former
  plan::Bytes peak{};             // over all steps
  plan::Bytes first_step_peak{};  // before there is an optimizer's state
};

/// Throws InputError where the run's sizes do not fit each other, or where it has something that
/// nobody has counted.
MegatronMemory megatron_memory(const MegatronRun& run);

}  // namespace pipewright::models
