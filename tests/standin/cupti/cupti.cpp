// NVIDIA's functions as the stand-in implements them. A call's record precedes that of its work,
// and its labels precede both; work is recorded when it is done.

#include <cupti.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "behavior.hpp"
#include "buffers.hpp"
#include "calls.hpp"
#include "cupti_standin.hpp"
#include "played.hpp"
#include "records.hpp"

namespace pipewright::standin {
namespace {

using Labels = std::map<CUpti_ExternalCorrelationKind, std::vector<std::uint64_t>>;
thread_local Labels labels_of_thread;

class Cupti {
 public:
  Cupti() {
    const char* const words = std::getenv("PIPEWRIGHT_STANDIN_CUPTI");
    behave(words == nullptr ? "" : words);
  }

  void behave(const std::string& words) {
    const std::lock_guard lock(mutex_);
    behavior_ = behavior_of(words);
    played_ = behavior_.play.empty() ? Played{} : played_from(behavior_.play);
    collection_ = 0;
    calls_ = 0;
    buffers_.behave(behavior_);
  }

  /// Returns the error with which a function must fail, if any.
  CUptiResult refusal(const char* function) {
    const std::lock_guard lock(mutex_);
    const auto found = behavior_.refuse.find(function);
    return found == behavior_.refuse.end() ? CUPTI_SUCCESS : found->second;
  }

  std::uint32_t version() {
    const std::lock_guard lock(mutex_);
    return behavior_.version;
  }

  CUptiResult subscribe(CUpti_SubscriberHandle* handle, CUpti_SubscriberParams* names) {
    const std::lock_guard lock(mutex_);
    const std::string watcher = subscribed_ ? name_ : behavior_.watcher;
    if (subscribed_ || !watcher.empty()) {
      if (names != nullptr && names->oldSubscriberSize > 0) {
        std::strncpy(names->oldSubscriberName, watcher.c_str(), names->oldSubscriberSize - 1);
        names->oldSubscriberName[names->oldSubscriberSize - 1] = '\0';
      }
      return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    }
    subscribed_ = true;
    name_ = names == nullptr ? "" : names->subscriberName;
    *handle = reinterpret_cast<CUpti_SubscriberHandle>(this);
    listen(pipewright_standin_cupti_hear);
    return CUPTI_SUCCESS;
  }

  void unsubscribe() {
    const std::lock_guard lock(mutex_);
    subscribed_ = false;
    listen(nullptr);
  }

  void enable(CUpti_ActivityKind kind, bool on) {
    const std::lock_guard lock(mutex_);
    if (on)
      kinds_.insert(kind);
    else
      kinds_.erase(kind);
    // Enabling or disabling a kind overrides earlier settings of its calls.
    std::erase_if(switched_off_,
                  [&](const auto& call) { return kind_of_calls(call.first) == kind; });
  }

  void enable(const CallId& call, bool on) {
    const std::lock_guard lock(mutex_);
    if (on)
      switched_off_.erase({call.domain, call.number});
    else
      switched_off_.insert({call.domain, call.number});
  }

  void flush() {
    {
      const std::lock_guard lock(mutex_);
      if (!kinds_.empty()) {
        ++collection_;
        for (const PlayedBuffer& buffer : played_.buffers)
          if (buffer.collection == collection_)
            buffers_.put(buffer.bytes, buffer.begins);
      }
    }
    buffers_.flush();
  }

  void hear(const PipewrightStandinWork& work) {
    const std::lock_guard lock(mutex_);
    const CUpti_ActivityKind kind = kind_of(work);
    if (kind == CUPTI_ACTIVITY_KIND_INVALID || !behavior_.play.empty())
      return;
    const std::uint32_t correlation = correlation_of(work);
    if (kinds_.contains(kind))
      put(work_record(work, place_of(work), correlation, behavior_.longer));
  }

  Buffers& buffers() { return buffers_; }

 private:
  /// Returns the correlation of the call that submitted the work, and records the call if it is
  /// new: a graph's works share one call.
  std::uint32_t correlation_of(const PipewrightStandinWork& work) {
    const auto call = std::tuple(std::string(work.call), work.thread, work.called_ns);
    const bool continues = std::strstr(work.call, "GraphLaunch") != nullptr && call == last_call_;
    last_call_ = call;
    if (continues)
      return correlation_;
    ++correlation_;
    if (behavior_.lose_calls == 0 || ++calls_ % behavior_.lose_calls != 0)
      record_call(work);
    return correlation_;
  }

  void record_call(const PipewrightStandinWork& work) {
    const auto id = id_of(work.call);
    if (!id)
      return;
    if (!is_recorded(*id))
      return;
    if (kinds_.contains(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION))
      for (const auto& [kind, labels] : labels_of_thread)
        if (!labels.empty())
          put(label_record(kind, labels.back(), correlation_, behavior_.longer));
    put(call_record(work, *id, correlation_, behavior_.longer));
  }

  static CUpti_ActivityKind kind_of_calls(CUpti_CallbackDomain domain) {
    return domain == CUPTI_CB_DOMAIN_RUNTIME_API ? CUPTI_ACTIVITY_KIND_RUNTIME
                                                 : CUPTI_ACTIVITY_KIND_DRIVER;
  }

  bool is_recorded(const CallId& call) const {
    // A call that is enabled alone is not recorded, without an error (CUPTI 13.0.1 on an H200).
    return !behavior_.no_calls && kinds_.contains(kind_of_calls(call.domain)) &&
           !switched_off_.contains({call.domain, call.number});
  }

  void put(const Bytes& record) {
    if (behavior_.newer)
      buffers_.put(newer_record());
    buffers_.put(record);
  }

  /// Numbers streams within their context, so streams of two devices can have the same numbers.
  Place place_of(const PipewrightStandinWork& work) {
    constexpr std::uint32_t default_stream = 7, first_stream = 13;
    const auto device = static_cast<std::uint32_t>(work.device);
    auto& own = streams_[device];
    if (work.stream == 0)
      return {device + 1, default_stream};
    const auto number = first_stream + static_cast<std::uint32_t>(own.size());
    return {device + 1, own.try_emplace(work.stream, number).first->second};
  }

  static void listen(void (*listener)(const PipewrightStandinWork*)) {
    if (const auto runtime = reinterpret_cast<decltype(&pipewright_standin_listen)>(
            dlsym(RTLD_DEFAULT, "pipewright_standin_listen")))
      runtime(listener);
  }

  std::mutex mutex_;
  Behavior behavior_;
  Played played_;
  Buffers buffers_;
  bool subscribed_ = false;
  std::string name_;
  std::set<CUpti_ActivityKind> kinds_;
  std::set<std::pair<CUpti_CallbackDomain, CUpti_CallbackId>> switched_off_;
  int collection_ = 0;
  int calls_ = 0;
  std::uint32_t correlation_ = 0;
  std::tuple<std::string, std::uint32_t, std::uint64_t> last_call_{};
  std::map<std::uint32_t, std::map<std::uint32_t, std::uint32_t>> streams_;  // by device
};

Cupti& cupti() {
  // Never destroyed: others call until the very end of the process.
  static Cupti* const one = new Cupti;
  return *one;
}

std::optional<std::size_t> size_at(const std::uint8_t* record, std::size_t left) {
  std::uint32_t kind = 0;
  if (left < sizeof kind)
    return {};
  std::memcpy(&kind, record, sizeof kind);
  return size_of(static_cast<CUpti_ActivityKind>(kind));
}

/// Finds the next record in a buffer that the stand-in has not filled, by the sizes in our headers.
CUptiResult next_in_foreign(std::uint8_t* buffer, std::size_t used, CUpti_Activity** record) {
  std::size_t at = 0;
  if (*record != nullptr) {
    at = static_cast<std::size_t>(reinterpret_cast<std::uint8_t*>(*record) - buffer);
    at += size_at(buffer + at, used - at).value_or(used - at);
  }
  if (at >= used)
    return CUPTI_ERROR_MAX_LIMIT_REACHED;
  const auto size = size_at(buffer + at, used - at);
  if (!size || *size > used - at)
    return CUPTI_ERROR_INVALID_KIND;
  *record = reinterpret_cast<CUpti_Activity*>(buffer + at);
  return CUPTI_SUCCESS;
}

/// Finds the next record in one of the stand-in's own buffers, whose records may be longer.
CUptiResult next_in_own(std::uint8_t* buffer, std::size_t used, const Records& records,
                        CUpti_Activity** record) {
  auto next = records.begins.begin();
  if (*record != nullptr) {
    const auto at = static_cast<std::size_t>(reinterpret_cast<std::uint8_t*>(*record) - buffer);
    next = std::upper_bound(next, records.begins.end(), at);
  }
  if (next == records.begins.end())
    return used > records.end ? CUPTI_ERROR_INVALID_KIND : CUPTI_ERROR_MAX_LIMIT_REACHED;
  const std::size_t end = next + 1 == records.begins.end() ? records.end : *(next + 1);
  if (end > used)
    return CUPTI_ERROR_INVALID_KIND;
  *record = reinterpret_cast<CUpti_Activity*>(buffer + *next);
  return CUPTI_SUCCESS;
}

}  // namespace
}  // namespace pipewright::standin

using pipewright::standin::cupti;

extern "C" {

#define REFUSE_IF_TOLD()                                                               \
  if (const CUptiResult refusal = cupti().refusal(__func__); refusal != CUPTI_SUCCESS) \
  return refusal

void pipewright_standin_cupti(const char* words) { cupti().behave(words); }
void pipewright_standin_cupti_hear(const PipewrightStandinWork* work) { cupti().hear(*work); }

CUptiResult CUPTIAPI cuptiGetVersion(std::uint32_t* version) {
  REFUSE_IF_TOLD();
  *version = cupti().version();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetTimestamp(std::uint64_t* timestamp) {
  REFUSE_IF_TOLD();
  *timestamp = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                              std::chrono::system_clock::now().time_since_epoch())
                                              .count());
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetErrorMessage(CUptiResult, const char** message) {
  REFUSE_IF_TOLD();
  *message = "the stand-in was told to refuse it";
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult, const char** text) {
  *text = "a result of the stand-in";
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetCallbackName(CUpti_CallbackDomain domain, std::uint32_t number,
                                          const char** name) {
  REFUSE_IF_TOLD();
  *name = pipewright::standin::name_of({domain, number});
  return *name == nullptr ? CUPTI_ERROR_INVALID_PARAMETER : CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc, void*) {
  REFUSE_IF_TOLD();
  return cupti().subscribe(subscriber, nullptr);
}

CUptiResult CUPTIAPI cuptiSubscribe_v2(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc,
                                       void*, CUpti_SubscriberParams* names) {
  REFUSE_IF_TOLD();
  return cupti().subscribe(subscriber, names);
}

CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle) {
  REFUSE_IF_TOLD();
  cupti().unsubscribe();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc wanted,
                                                    CUpti_BuffersCallbackCompleteFunc filled) {
  REFUSE_IF_TOLD();
  cupti().buffers().lend(wanted, filled);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivitySetAttribute(CUpti_ActivityAttribute, std::size_t*, void*) {
  REFUSE_IF_TOLD();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiSetThreadIdType(CUpti_ActivityThreadIdType) {
  REFUSE_IF_TOLD();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind) {
  REFUSE_IF_TOLD();
  cupti().enable(kind, true);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind) {
  REFUSE_IF_TOLD();
  cupti().enable(kind, false);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityEnableRuntimeApi(CUpti_CallbackId call, std::uint8_t enable) {
  REFUSE_IF_TOLD();
  cupti().enable(pipewright::standin::CallId{CUPTI_CB_DOMAIN_RUNTIME_API, call}, enable != 0);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityEnableDriverApi(CUpti_CallbackId call, std::uint8_t enable) {
  REFUSE_IF_TOLD();
  cupti().enable(pipewright::standin::CallId{CUPTI_CB_DOMAIN_DRIVER_API, call}, enable != 0);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                            std::uint64_t id) {
  REFUSE_IF_TOLD();
  pipewright::standin::labels_of_thread[kind].push_back(id);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                           std::uint64_t* last) {
  REFUSE_IF_TOLD();
  auto& labels = pipewright::standin::labels_of_thread[kind];
  if (labels.empty())
    return CUPTI_ERROR_QUEUE_EMPTY;
  *last = labels.back();
  labels.pop_back();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityFlushAll(std::uint32_t) {
  REFUSE_IF_TOLD();
  cupti().flush();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t used,
                                                CUpti_Activity** record) {
  REFUSE_IF_TOLD();
  const auto* const records = cupti().buffers().records_in(buffer);
  return records == nullptr ? pipewright::standin::next_in_foreign(buffer, used, record)
                            : pipewright::standin::next_in_own(buffer, used, *records, record);
}

CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t,
                                                       std::size_t* dropped) {
  REFUSE_IF_TOLD();
  *dropped = cupti().buffers().take_dropped();
  return CUPTI_SUCCESS;
}

// Functions that LibTorch's own profiler would call.
CUptiResult CUPTIAPI cuptiEnableCallback(std::uint32_t, CUpti_SubscriberHandle,
                                         CUpti_CallbackDomain, CUpti_CallbackId) {
  return CUPTI_ERROR_NOT_SUPPORTED;
}
CUptiResult CUPTIAPI cuptiEnableDomain(std::uint32_t, CUpti_SubscriberHandle,
                                       CUpti_CallbackDomain) {
  return CUPTI_ERROR_NOT_SUPPORTED;
}
CUptiResult CUPTIAPI cuptiFinalize() { return CUPTI_SUCCESS; }
CUptiResult CUPTIAPI cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc) {
  return CUPTI_ERROR_NOT_SUPPORTED;
}
CUptiResult CUPTIAPI cuptiActivityEnableCudaEventDeviceTimestamps(std::uint8_t) {
  return CUPTI_ERROR_NOT_SUPPORTED;
}

}  // extern "C"
