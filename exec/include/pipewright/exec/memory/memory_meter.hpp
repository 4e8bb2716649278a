#pragma once

// Counts the bytes that tensors actually use, by account. An allocation is charged to the account
// of the allocating thread, on a GPU to that of the rank's stream, and credited back to that
// account by the thread that frees it.

#include <cstdint>
#include <functional>
#include <memory>

#include "pipewright/exec/tensors.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::exec {

struct AccountEntry;  // lives as long as the process, as a tensor may outlive its account

/// An allocation or release of a tensor's memory on the CPU, in requested bytes; negative for a
/// release.
struct AllocationEvent {
  const void* data = nullptr;
  std::int64_t bytes = 0;
};
/// Called on the thread that allocates or frees, one call at a time; must not create tensors
/// itself.
using AllocationObserver = std::function<void(const AllocationEvent&)>;

/// An account of LibTorch's allocators. The first account installs the counting CPU allocator,
/// which stays installed for the life of the process.
class MemoryAccount {
 public:
  MemoryAccount();

  plan::Bytes held() const;
  /// Returns the highest `held` since the last `reset_peak`.
  plan::Bytes peak() const;
  void reset_peak();
  /// Calls the observer with all later charges and credits, except of GPU memory; null: stops.
  void follow(AllocationObserver observer) const;
  AccountEntry* entry() const { return entry_; }

 private:
  friend class ChargeTo;
  AccountEntry* entry_;
};

/// Returns the account that this thread's allocations are charged to, to pass to a thread that
/// works for it.
AccountEntry* current_account();

/// Moves the charge for a CPU tensor's memory to this thread's account.
void take_charge_of(const at::Tensor& tensor);

/// Moves the charge only if `from` was charged with the tensor.
void take_charge_of(const at::Tensor& tensor, const MemoryAccount& from);

/// While it exists, the allocations of this thread are charged to `account`; null: to no rank's.
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
