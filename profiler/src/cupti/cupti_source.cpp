// NVIDIA's GPUs as a source of records. When CUPTI needs a buffer, it requests one on the thread
// that launches, and returns it when it is full; both take no longer than a lock. Records are read
// when the work is done.

#include "cupti/cupti_source.hpp"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>

#include "activity/buffer_pool.hpp"
#include "cupti/activity_records.hpp"
#include "cupti/kept_buffers.hpp"
#include "cupti/recorded_calls.hpp"
#include "pipewright/exec/device/devices.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/profiler/activity/attribution.hpp"

namespace pipewright::profiler {
namespace {

constexpr std::size_t buffer_size = std::size_t{4} << 20U;  // some 10,000 launches
constexpr int buffers_ready = 8;
constexpr int buffers_at_most = 64;
constexpr auto label_kind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;

/// CUPTI's callbacks get only the buffer, so there is one pool at a time. They may be called on any
/// thread, even after the last flush.
std::mutex pool_mutex;
BufferPool* pool_in_use = nullptr;

/// Makes the pool the current one. Returns false if there is one already.
bool use(BufferPool& pool) {
  const std::lock_guard lock(pool_mutex);
  if (pool_in_use != nullptr)
    return false;
  pool_in_use = &pool;
  return true;
}

void use_no_pool() {
  const std::lock_guard lock(pool_mutex);
  pool_in_use = nullptr;
}

void CUPTIAPI buffer_wanted(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  const std::lock_guard lock(pool_mutex);
  *buffer = pool_in_use == nullptr ? nullptr : pool_in_use->take();
  *size = *buffer == nullptr ? 0 : pool_in_use->size();
  *most_records = 0;  // no limit except the buffer's size
}

void CUPTIAPI buffer_filled(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                            std::size_t used) {
  const std::lock_guard lock(pool_mutex);
  if (pool_in_use != nullptr)
    pool_in_use->fill(buffer, used);
}

void CUPTIAPI nothing_called(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

/// Activity kinds that are recorded completely.
constexpr std::array activity_kinds{
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,
    CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};

class CuptiSource final : public ActivitySource {
 public:
  CuptiSource(const CuptiLibrary& cupti, const GiveWork& try_it)
      : cupti_(cupti),
        pool_(buffer_size, buffers_ready, buffers_at_most),
        other_runtime_calls_(known_calls(cupti, CUPTI_CB_DOMAIN_RUNTIME_API).others),
        other_driver_calls_(known_calls(cupti, CUPTI_CB_DOMAIN_DRIVER_API).others) {
    const std::uint32_t version = required_version();
    subscribe();
    if (!use(pool_)) {
      cupti_.unsubscribe(subscriber_);
      throw plan::InputError("CUPTI: this process is already being recorded");
    }
    try {
      set_up();
      if (try_it && !tells_calls_of(try_it))
        throw plan::InputError(
            "CUPTI records the GPU's work, but not which calls submitted it. The library and the "
            "driver may be incompatible");
      kept_ = KeptBuffers::from_environment(version);
    } catch (...) {
      cupti_.unsubscribe(subscriber_);
      use_no_pool();
      throw;
    }
  }

  ~CuptiSource() override {
    switch_all(false);
    flush();
    cupti_.unsubscribe(subscriber_);
    use_no_pool();
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

  void open(std::uint64_t label) override {
    cupti_.push_label(label_kind, label);
    if (kept_)
      kept_->opened(label, now());
  }
  void close() override {
    std::uint64_t label = 0;
    cupti_.pop_label(label_kind, &label);
    if (kept_)
      kept_->closed(label, now());
  }

  Activity collect() override {
    flush();
    Activity activity;
    RecordNames names;
    const NameReader kernel_name = [&](const char* name) { return names.number_at(name); };
    const CallNamer call_name = [this](bool of_runtime, std::uint32_t number) {
      return name_of_call(of_runtime, number);
    };
    for (const BufferPool::Filled& buffer : pool_.filled()) {
      const ActivityBytes bytes(buffer.data, buffer.used);
      const RecordPlaces places = places_by_library(bytes);
      append_records(bytes.first(places.end), places.begins, names, kernel_name, call_name,
                     activity);
      activity.unread += bytes.size() - places.end;
      if (kept_)
        kept_->add(bytes.first(places.end), places.begins);
      pool_.give_back(buffer);
    }
    if (kept_)
      kept_->end_collection();
    activity.names = names.names();
    std::size_t dropped = 0;
    cupti_.dropped_records(nullptr, 0, &dropped);
    activity.dropped = dropped;
    activity.late_buffers = pool_.late();
    activity.missing_buffers = pool_.out();
    return activity;
  }

 private:
  std::uint32_t required_version() const {
    std::uint32_t version = 0;
    cupti_.require(cupti_.get_version(&version), "its version");
    constexpr std::uint32_t major = 10'000;
    // Newer versions append fields to their records; older ones have shorter records than are read
    // here.
    if (version / major != CUPTI_API_VERSION / major || version < CUPTI_API_VERSION)
      throw plan::InputError(
          fmt::format("CUPTI {} was found, but {} or a later version of CUDA {} is needed", version,
                      CUPTI_API_VERSION, CUPTI_API_VERSION / major));
    return version;
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
    // Our buffers are zeroed already; otherwise CUPTI would zero them on the launching thread.
    std::uint8_t zeros = 1;
    std::size_t size = sizeof zeros;
    cupti_.require(
        cupti_.set_attribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &zeros),
        "zeroed buffers");
    // The device has buffers as well. An existing context keeps those that it has.
    std::size_t ready = buffers_ready;
    size = sizeof ready;
    cupti_.set_attribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE, &size, &ready);
    cupti_.require(cupti_.register_callbacks(buffer_wanted, buffer_filled), "its buffers");
    // Otherwise a thread id is a part of the address of the thread's own memory.
    if (cupti_.set_thread_numbers != nullptr)
      cupti_.set_thread_numbers(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
    std::uint64_t time = 0;
    cupti_.require(cupti_.get_timestamp(&time), "its clock");
    // Reports errors now that would otherwise occur later.
    switch_all(true);
    switch_all(false);
  }

  /// Returns true if that work is recorded with its label and call.
  bool tells_calls_of(const GiveWork& try_it) {
    constexpr std::uint64_t label = 1;
    start();
    open(label);
    try_it();
    close();
    stop();
    const Activity activity = collect();
    const Attribution found =
        attribute(activity, {{.label = label, .instruction = {}, .start = 0, .end = now()}});
    const auto labeled = std::count_if(found.range_of.begin(), found.range_of.end(),
                                       [](int range) { return range != Attribution::none; });
    return labeled > 0 && found.without_call == 0;
  }

  void switch_all(bool on) {
    for (const CUpti_ActivityKind kind : activity_kinds) {
      const CUptiResult result = on ? cupti_.enable(kind) : cupti_.disable(kind);
      if (on)
        cupti_.require(result, "recording kernels and copies");
    }
    switch_calls(cupti_.enable_runtime_call, other_runtime_calls_, CUPTI_ACTIVITY_KIND_RUNTIME, on);
    switch_calls(cupti_.enable_driver_call, other_driver_calls_, CUPTI_ACTIVITY_KIND_DRIVER, on);
  }

  /// Enables all calls and disables those that submit no work. CUPTI 13.0.1 accepts enabling a
  /// single call, but does not record it (on an H200).
  void switch_calls(decltype(&cuptiActivityEnableRuntimeApi) enable,
                    const std::vector<CUpti_CallbackId>& others, CUpti_ActivityKind all, bool on) {
    if (!on) {
      cupti_.disable(all);
      return;
    }
    cupti_.require(cupti_.enable(all), "recording calls");
    for (const CUpti_CallbackId call : others)
      enable(call, 0);
  }

  std::string name_of_call(bool of_runtime, std::uint32_t number) const {
    const char* name = nullptr;
    cupti_.call_name(of_runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API, number,
                     &name);
    return name == nullptr ? fmt::format("call {}", number) : without_version(name);
  }

  void flush() { cupti_.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED); }

  /// Finds records with the library, whose records may be longer than those in our headers. If it
  /// finds no more records before the end, the last one is assumed to be as long as in the headers.
  RecordPlaces places_by_library(ActivityBytes buffer) const {
    RecordPlaces places;
    auto* const data = const_cast<std::uint8_t*>(buffer.data());  // not written to
    CUpti_Activity* record = nullptr;
    CUptiResult result = CUPTI_SUCCESS;
    while ((result = cupti_.next_record(data, buffer.size(), &record)) == CUPTI_SUCCESS)
      places.begins.push_back(
          static_cast<std::size_t>(reinterpret_cast<const std::uint8_t*>(record) - data));
    places.end = buffer.size();
    if (result != CUPTI_ERROR_MAX_LIMIT_REACHED)
      places.end = places.begins.empty() ? 0 : end_of_record(buffer, places.begins.back());
    return places;
  }

  const CuptiLibrary& cupti_;
  BufferPool pool_;
  std::vector<CUpti_CallbackId> other_runtime_calls_, other_driver_calls_;
  CUpti_SubscriberHandle subscriber_{};
  std::unique_ptr<KeptBuffers> kept_;
};

}  // namespace

std::unique_ptr<ActivitySource> watch_by(const CuptiLibrary& cupti, const GiveWork& try_it) {
  return std::make_unique<CuptiSource>(cupti, try_it);
}

std::unique_ptr<ActivitySource> cupti_source(at::Device device) {
  if (const exec::Gpus& gpus = exec::gpus(); gpus.names.empty())
    throw plan::InputError("CUPTI: no GPU: " + gpus.why_none);
  const c10::impl::VirtualGuardImpl gpu(at::kCUDA);
  const auto index = device.has_index() ? device.index() : gpu.getDevice().index();
  return watch_by(CuptiLibrary::get(), [&] {
    at::zeros({1}, at::TensorOptions(at::Device(at::kCUDA, index)));
    gpu.synchronizeDevice(index);
  });
}

}  // namespace pipewright::profiler
