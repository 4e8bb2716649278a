#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <map>
#include <mutex>

#include "memory/account_entry.hpp"
#include "pipewright/exec/device/gpu.hpp"

namespace pipewright::exec {
namespace {

using c10::CachingDeviceAllocator::TraceEntry;

/// Charges the blocks of LibTorch's caching allocator to the accounts of their streams. The
/// allocator reports each block in the order of its stream's work, so an account's value at a call
/// is valid for that point of the stream. It calls with its lock held, so this class must not
/// allocate from it.
class Follower {
 public:
  void follow(void* stream, AccountEntry* account) {
    const std::lock_guard lock(mutex_);
    accounts_[stream] = account;
  }

  void operator()(const TraceEntry& entry) {
    const std::lock_guard lock(mutex_);
    const auto address = static_cast<std::size_t>(entry.addr_);
    const auto size = static_cast<std::int64_t>(entry.size_);
    if (entry.action_ == TraceEntry::ALLOC) {
      const auto account = accounts_.find(entry.stream_);
      if (account == accounts_.end())
        return;
      account->second->add(size);
      blocks_[address] = {account->second, size};
    } else if (entry.action_ == TraceEntry::FREE_REQUESTED) {
      const auto block = blocks_.extract(address);
      if (!block.empty())
        block.mapped().account->subtract(block.mapped().size);
    }
  }

 private:
  struct Block {
    AccountEntry* account = nullptr;
    std::int64_t size = 0;
  };
  std::mutex mutex_;
  std::map<void*, AccountEntry*> accounts_;  // by stream
  std::map<std::size_t, Block> blocks_;      // by address
};

}  // namespace

void charge_stream(const Stream& stream, AccountEntry* account) {
  if (!stream.native())
    return;
  static auto* const follower = [] {
    at::globalContext().lazyInitDevice(at::kCUDA);  // creates the allocator
    auto* const made = new Follower;  // lives as long as the allocator, that is, the process
    c10::cuda::CUDACachingAllocator::attachAllocatorTraceTracker(
        [made](const TraceEntry& entry) { (*made)(entry); });
    return made;
  }();
  follower->follow(stream.native()->native_handle(), account);
}

}  // namespace pipewright::exec
