#include "pipewright/exec/memory/memory_meter.hpp"

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>
#include <utility>

#include "account_entry.hpp"

namespace pipewright::exec {

namespace {

/// Creates an entry. Entries are never freed (see AccountEntry); one list keeps them all, so that
/// leak checkers see them as reachable.
AccountEntry* open_entry() {
  static std::mutex mutex;
  static auto* const entries = new std::deque<AccountEntry>;
  const std::lock_guard lock(mutex);
  return &entries->emplace_back();
}

/// Returns the account of allocations that are charged to no other account.
AccountEntry* common_account() {
  static auto* const entry = open_entry();
  return entry;
}

thread_local AccountEntry* current = nullptr;

/// The header before each block. It is as long as a cache line, so that the tensor's data keep the
/// alignment that LibTorch's kernels need.
struct alignas(c10::gAlignment) Header {
  AccountEntry* account;
  std::int64_t size;
};
static_assert(sizeof(Header) == c10::gAlignment);

void release(void* data) {
  if (data == nullptr)
    return;
  auto* const header = static_cast<Header*>(data) - 1;
  header->account->let_go(data, header->size);
  std::free(header);
}

AccountEntry* account_now() { return current == nullptr ? common_account() : current; }

/// The size from which glibc maps blocks separately. It is the largest threshold that glibc
/// accepts.
constexpr std::size_t mapped_from = std::size_t{32} << 20;

/// Requests huge pages (2 MiB) from `begin` to `end`. They take fewer page table entries, and the
/// speed at which a core reads a tensor depends less on the physical location of its pages.
void want_huge_pages(std::uintptr_t begin, std::uintptr_t end) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  begin = (begin + page - 1) / page * page;
  if (begin < end)
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);  // a failure is harmless
}

/// Requests huge pages for the memory of a new block, if the heap has grown for it.
void want_huge_pages_of(void* block, std::size_t size) {
  static std::atomic<std::uintptr_t> asked_up_to{0};
  const auto begin = reinterpret_cast<std::uintptr_t>(block);
  if (size >= mapped_from)
    return want_huge_pages(begin, begin + size);
  const std::uintptr_t known = asked_up_to.load(std::memory_order_relaxed);
  if (begin + size <= known)
    return;
  const auto heap_end = reinterpret_cast<std::uintptr_t>(sbrk(0));
  if (begin + size > heap_end)  // not in the heap: it was mapped
    return;
  want_huge_pages(std::max(known, begin), heap_end);
  asked_up_to.store(heap_end, std::memory_order_relaxed);
}

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t size) override {
    if (size == 0)
      return {nullptr, nullptr, &release, c10::Device(c10::DeviceType::CPU)};
    void* block = nullptr;
    if (posix_memalign(&block, c10::gAlignment, size + sizeof(Header)) != 0)
      throw std::bad_alloc();
    want_huge_pages_of(block, size);
    auto* const account = account_now();
    auto* const header = new (block) Header{account, static_cast<std::int64_t>(size)};
    void* const data = header + 1;
    account->take(data, header->size);
    return {data, data, &release, c10::Device(c10::DeviceType::CPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t count) const override {
    std::memcpy(to, from, count);
  }
};

void install() {
  static std::once_flag once;
  std::call_once(once, [] {
    // A step allocates and frees the same large blocks again and again. By default glibc maps each
    // of them again or returns emptied arenas to the kernel, and pays for the page faults. One
    // arena that only grows keeps its pages.
    mallopt(M_MMAP_THRESHOLD, mapped_from);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_TOP_PAD, 64 << 20);
    mallopt(M_ARENA_MAX, 1);
    static CountingAllocator allocator;
    c10::SetCPUAllocator(&allocator, /*priority=*/100);
  });
}

}  // namespace

MemoryAccount::MemoryAccount() : entry_(open_entry()) { install(); }

plan::Bytes MemoryAccount::held() const { return {entry_->held.load(std::memory_order_relaxed)}; }

plan::Bytes MemoryAccount::peak() const { return {entry_->peak.load(std::memory_order_relaxed)}; }

void MemoryAccount::reset_peak() { entry_->peak.store(held().value, std::memory_order_relaxed); }

void MemoryAccount::follow(AllocationObserver observer) const {
  entry_->follow(std::move(observer));
}

AccountEntry* current_account() { return current; }

namespace {

/// Returns the header of a tensor's memory; null if this meter did not allocate it.
Header* header_of(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.storage().data_ptr().get_deleter() != &release)
    return nullptr;
  void* const data = tensor.storage().mutable_data();
  return data == nullptr ? nullptr : static_cast<Header*>(data) - 1;
}

}  // namespace

void take_charge_of(const at::Tensor& tensor) {
  Header* const header = header_of(tensor);
  if (header == nullptr)
    return;
  header->account->let_go(header + 1, header->size);
  header->account = account_now();
  header->account->take(header + 1, header->size);
}

void take_charge_of(const at::Tensor& tensor, const MemoryAccount& from) {
  Header* const header = header_of(tensor);
  AccountEntry* account = from.entry();
  // Other ranks may use the same tensor of a Dataset that keeps it; only the first takes it over.
  if (header == nullptr ||
      !std::atomic_ref(header->account).compare_exchange_strong(account, account_now()))
    return;
  account->let_go(header + 1, header->size);
  account_now()->take(header + 1, header->size);
}

ChargeTo::ChargeTo(const MemoryAccount& account) : ChargeTo(account.entry_) {}

ChargeTo::ChargeTo(AccountEntry* account) : before_(current) { current = account; }

ChargeTo::~ChargeTo() { current = before_; }

}  // namespace pipewright::exec
