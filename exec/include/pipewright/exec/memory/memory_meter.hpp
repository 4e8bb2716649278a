#pragma once

// Counts the bytes that tensors really hold, by account: an allocation is charged to the account
// of the thread that makes it, on a GPU to that of the rank's stream, and credited back to that
// account by whichever thread frees it.

#include <cstdint>
#include <functional>
#include <memory>

#include "pipewright/exec/tensors.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::exec {

struct AccountEntry;  // lives as long as the process, as a tensor may outlive its account

/// The memory of a tensor on the CPU, in bytes as asked for: taken, or below zero let go of.
struct AllocationEvent {
  const void* data = nullptr;
  std::int64_t bytes = 0;
};
/// Called on whichever thread does it, one call after the other; must not make tensors itself.
using AllocationObserver = std::function<void(const AllocationEvent&)>;

/// One account of LibTorch's allocators. The first one opened puts the counting allocator of the
/// CPU in place; it stays there for the life of the process.
class MemoryAccount {
 public:
  MemoryAccount();

  plan::Bytes held() const;
  /// The most held since the last `reset_peak`.
  plan::Bytes peak() const;
  void reset_peak();
  /// Tells of all that it is charged with from now on, and of what it is credited with; null: no
  /// more. Not of what lies on a GPU.
  void follow(AllocationObserver observer) const;
  AccountEntry* entry() const { return entry_; }

 private:
  friend class ChargeTo;
  AccountEntry* entry_;
};

/// What this thread's allocations are charged to now: for another one that works for it.
AccountEntry* current_account();

/// The memory of a CPU tensor is this thread's account's from now on.
void take_charge_of(const at::Tensor& tensor);

/// The same of one that `from` was charged with; of others nothing changes.
void take_charge_of(const at::Tensor& tensor, const MemoryAccount& from);

/// While it lives, the allocations of this thread are charged to `account`; null: to nobody's.
class ChargeTo {
 public:
  explicit ChargeTo(const MemoryAccount& account);
  explicit ChargeTo(AccountEntry* account);
  ~ChargeTo();
  ChargeTo(const ChargeTo&) = delete;
  ChargeTo& operator=(const ChargeTo&) = delete;

 private:
  AccountEntry* before_;
};

}  // namespace pipewright::exec
