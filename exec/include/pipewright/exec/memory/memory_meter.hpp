#pragma once

// Counts the bytes that tensors really hold, by account: an allocation is charged to the account
// of the thread that makes it, on a GPU to that of the rank's stream, and credited back to that
// account by whichever thread frees it.

#include <memory>

#include "pipewright/exec/tensors.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::exec {

struct AccountEntry;  // lives as long as the process, as a tensor may outlive its account

/// One account of LibTorch's allocators. The first one opened puts the counting allocator of the
/// CPU in place; it stays there for the life of the process.
class MemoryAccount {
 public:
  MemoryAccount();

  plan::Bytes held() const;
  /// The most held since the last `reset_peak`.
  plan::Bytes peak() const;
  void reset_peak();
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
