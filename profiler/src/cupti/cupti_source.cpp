// NVIDIA's GPUs as a source of records. CUPTI asks for a buffer when it has none, on the thread
// that launches, and hands it back when it is full; both take no longer than a lock. Records are
// read when the work is done.

#include <fmt/format.h>

#include <array>
#include <atomic>

#include "activity/buffer_pool.hpp"
#include "cupti/activity_records.hpp"
#include "cupti/cupti_library.hpp"
#include "pipewright/exec/device/devices.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/profiler/activity/activity_source.hpp"

namespace pipewright::profiler {
namespace {

constexpr std::size_t buffer_size = std::size_t{4} << 20U;  // some 10,000 launches
constexpr int buffers_ready = 8;
constexpr int buffers_at_most = 64;
constexpr auto label_kind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;

/// CUPTI's callbacks are told no more than the buffer, so there is one pool at a time.
std::atomic<BufferPool*> pool_in_use = nullptr;

void CUPTIAPI buffer_wanted(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  BufferPool* const pool = pool_in_use;
  *buffer = pool == nullptr ? nullptr : pool->take();
  *size = *buffer == nullptr ? 0 : pool->size();
  *most_records = 0;  // as many as there is room for
}

void CUPTIAPI buffer_filled(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                            std::size_t used) {
  if (BufferPool* const pool = pool_in_use)
    pool->fill(buffer, used);
}

void CUPTIAPI nothing_called(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

/// Kinds that are recorded as a whole.
constexpr std::array kinds{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                           CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET,
                           CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};

/// Calls that ask a device for work. There are ten times as many others, and all would be recorded.
constexpr std::array runtime_calls{CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000,
                                   CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_v13000,
                                   CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_ptsz_v13000,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_ptsz_v11060,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_v9000,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_ptsz_v9000,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_ptsz_v7000,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyPeerAsync_v4000,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_ptsz_v7000,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_ptsz_v10000};

/// cuBLAS, NCCL and compiled kernels launch by the driver.
constexpr std::array driver_calls{CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                                  CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
                                  CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
                                  CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
                                  CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
                                  CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
                                  CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync,
                                  CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2,
                                  CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2,
                                  CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2,
                                  CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async,
                                  CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async,
                                  CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch};

class CuptiSource final : public ActivitySource {
 public:
  CuptiSource() : cupti_(CuptiLibrary::get()), pool_(buffer_size, buffers_ready, buffers_at_most) {
    require_version();
    subscribe();
    BufferPool* nobody = nullptr;
    if (!pool_in_use.compare_exchange_strong(nobody, &pool_)) {
      cupti_.unsubscribe(subscriber_);
      throw plan::InputError("CUPTI: this process is being watched already");
    }
    try {
      set_up();
    } catch (...) {
      cupti_.unsubscribe(subscriber_);
      pool_in_use = nullptr;
      throw;
    }
  }

  ~CuptiSource() override {
    switch_all(false);
    cupti_.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    cupti_.unsubscribe(subscriber_);
    pool_in_use = nullptr;
  }

  std::string name() const override { return "CUPTI"; }
  bool on_device() const override { return true; }

  Nanoseconds now() override {
    std::uint64_t time = 0;
    cupti_.get_timestamp(&time);
    return time;
  }

  void start() override { switch_all(true); }
  void stop() override {
    flush();
    switch_all(false);
  }

  void open(std::uint64_t label) override { cupti_.push_label(label_kind, label); }
  void close() override {
    std::uint64_t label = 0;
    cupti_.pop_label(label_kind, &label);
  }

  Activity collect() override {
    flush();
    Activity activity;
    RecordNames names;
    const NameReader kernel_name = [&](const char* name) { return names.number_at(name); };
    for (const BufferPool::Filled& buffer : pool_.filled()) {
      const ActivityBytes bytes(buffer.data, buffer.used);
      append_records(bytes, places_by_library(bytes), names, kernel_name, activity);
      pool_.give_back(buffer);
    }
    activity.names = names.names();
    std::size_t dropped = 0;
    cupti_.dropped_records(nullptr, 0, &dropped);
    activity.dropped = dropped;
    activity.late_buffers = pool_.late();
    return activity;
  }

 private:
  void require_version() {
    std::uint32_t version = 0;
    cupti_.require(cupti_.get_version(&version), "its version");
    constexpr std::uint32_t major = 10'000;
    // Newer ones append to their records; older ones have shorter records than are read here.
    if (version / major != CUPTI_API_VERSION / major || version < CUPTI_API_VERSION)
      throw plan::InputError(fmt::format("CUPTI {} is here; {} or a later one of CUDA {} is needed",
                                         version, CUPTI_API_VERSION, CUPTI_API_VERSION / major));
  }

  void subscribe() {
    if (cupti_.subscribe_with_names == nullptr)
      return cupti_.require(cupti_.subscribe(&subscriber_, nothing_called, nullptr), "watching");
    std::array<char, 128> other{};
    CUpti_SubscriberParams names{};
    names.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
    names.subscriberName = "Pipewright";
    names.oldSubscriberName = other.data();
    names.oldSubscriberSize = other.size();
    const CUptiResult result =
        cupti_.subscribe_with_names(&subscriber_, nothing_called, nullptr, &names);
    other.back() = '\0';
    if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
      throw plan::InputError(fmt::format("CUPTI: {}", advice(result, other.data())));
    cupti_.require(result, "watching");
  }

  void set_up() {
    // Our buffers are zeros already; CUPTI would fill them on the thread that launches.
    std::uint8_t zeros = 1;
    std::size_t size = sizeof zeros;
    cupti_.require(
        cupti_.set_attribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &zeros),
        "buffers of zeros");
    // The device has buffers too; a context that is there already keeps those that it has.
    std::size_t ready = buffers_ready;
    size = sizeof ready;
    cupti_.set_attribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE, &size, &ready);
    cupti_.require(cupti_.register_callbacks(buffer_wanted, buffer_filled), "its buffers");
    // Says now what would be refused later.
    switch_all(true);
    switch_all(false);
  }

  void switch_all(bool on) {
    for (const CUpti_ActivityKind kind : kinds) {
      const CUptiResult result = on ? cupti_.enable(kind) : cupti_.disable(kind);
      if (on)
        cupti_.require(result, "recording kernels and copies");
    }
    // A library that does not know one of these calls has none of that name to record.
    for (const auto call : runtime_calls)
      cupti_.enable_runtime_call(call, on ? 1 : 0);
    for (const auto call : driver_calls)
      cupti_.enable_driver_call(call, on ? 1 : 0);
  }

  void flush() { cupti_.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED); }

  /// By the library, whose records may be longer than those in our headers.
  std::vector<std::size_t> places_by_library(ActivityBytes buffer) const {
    std::vector<std::size_t> begins;
    auto* const data = const_cast<std::uint8_t*>(buffer.data());  // it is not written to
    CUpti_Activity* record = nullptr;
    while (cupti_.next_record(data, buffer.size(), &record) == CUPTI_SUCCESS)
      begins.push_back(
          static_cast<std::size_t>(reinterpret_cast<const std::uint8_t*>(record) - data));
    return begins;
  }

  const CuptiLibrary& cupti_;
  BufferPool pool_;
  CUpti_SubscriberHandle subscriber_{};
};

}  // namespace

std::unique_ptr<ActivitySource> cupti_source() {
  if (const exec::Gpus& gpus = exec::gpus(); gpus.names.empty())
    throw plan::InputError("CUPTI: no GPU: " + gpus.why_none);
  return std::make_unique<CuptiSource>();
}

}  // namespace pipewright::profiler
