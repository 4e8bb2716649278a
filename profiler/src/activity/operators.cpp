// The CPU as a source of records: LibTorch reports the begin and end of each operator.

#include <ATen/record_function.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "pipewright/plan/error.hpp"
#include "pipewright/profiler/activity/activity_source.hpp"

namespace pipewright::profiler {
namespace {

Nanoseconds host_now() {
  return static_cast<Nanoseconds>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                      std::chrono::steady_clock::now().time_since_epoch())
                                      .count());
}

thread_local std::uint64_t label_of_thread = 0;

struct OperatorBegin final : at::ObserverContext {
  Nanoseconds start = host_now();
};

/// The records of all threads. A lock takes less time than an operator.
class OperatorRecords {
 public:
  static OperatorRecords& get() {
    static OperatorRecords only;
    return only;
  }

  void add(const char* name, Nanoseconds start, Nanoseconds end, std::uint32_t thread) {
    const std::lock_guard lock(mutex_);
    GpuRecord& record = activity_.records.emplace_back();
    record.name = number_of(name);
    record.stream = thread;
    record.label = label_of_thread;
    record.start = start;
    record.end = end;
  }

  Activity take() {
    const std::lock_guard lock(mutex_);
    numbers_.clear();
    return std::exchange(activity_, {});
  }

 private:
  std::uint32_t number_of(std::string_view name) {
    const auto [at, is_new] =
        numbers_.try_emplace(std::string(name), static_cast<std::uint32_t>(activity_.names.size()));
    if (is_new)
      activity_.names.emplace_back(name);
    return at->second;
  }

  std::mutex mutex_;
  Activity activity_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

std::unique_ptr<at::ObserverContext> begin_operator(const at::RecordFunction&) {
  return std::make_unique<OperatorBegin>();
}

void end_operator(const at::RecordFunction& function, at::ObserverContext* context) {
  const auto* const begin = dynamic_cast<const OperatorBegin*>(context);
  if (begin != nullptr && !function.isAsync())
    OperatorRecords::get().add(function.name(), begin->start, host_now(),
                               static_cast<std::uint32_t>(function.threadId()));
}

std::atomic<bool> is_in_use = false;

class OperatorSource final : public ActivitySource {
 public:
  OperatorSource() {
    if (is_in_use.exchange(true))
      throw plan::InputError("the operators of this process are already being recorded");
  }
  ~OperatorSource() override {
    end();
    is_in_use = false;
  }

  std::string name() const override { return "the host's clock"; }
  bool on_device() const override { return false; }
  Nanoseconds now() override { return host_now(); }
  void start() override {
    if (callback_ == at::INVALID_CALLBACK_HANDLE)
      callback_ = at::addGlobalCallback(at::RecordFunctionCallback(begin_operator, end_operator)
                                            .scopes({at::RecordScope::FUNCTION}));
  }
  void stop() override { end(); }
  void open(std::uint64_t label) override { label_of_thread = label; }
  void close() override { label_of_thread = 0; }
  Activity collect() override { return OperatorRecords::get().take(); }

 private:
  void end() {
    if (callback_ != at::INVALID_CALLBACK_HANDLE)
      at::removeCallback(std::exchange(callback_, at::INVALID_CALLBACK_HANDLE));
  }

  at::CallbackHandle callback_ = at::INVALID_CALLBACK_HANDLE;
};

}  // namespace

std::unique_ptr<ActivitySource> operator_source() { return std::make_unique<OperatorSource>(); }

}  // namespace pipewright::profiler
