#include "cupti/cupti_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "pipewright/plan/error.hpp"

namespace pipewright::profiler {
namespace {

template <class Function>
void find_or_not(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

template <class Function>
void find(void* library, const char* name, Function& function) {
  find_or_not(library, name, function);
  if (function == nullptr)
    throw plan::InputError(fmt::format("CUPTI: {}", dlerror()));
}

CuptiLibrary load_cupti() {
  // LibTorch of a CUDA wheel has brought it along and knows where it lies.
  void* const library = dlopen("libcupti.so.13", RTLD_LAZY);
  if (library == nullptr)
    throw plan::InputError(fmt::format("CUPTI: {}", dlerror()));
  CuptiLibrary cupti{};
  find(library, "cuptiGetVersion", cupti.get_version);
  find(library, "cuptiGetTimestamp", cupti.get_timestamp);
  find(library, "cuptiGetErrorMessage", cupti.error_message);
  find(library, "cuptiSubscribe", cupti.subscribe);
  find_or_not(library, "cuptiSubscribe_v2", cupti.subscribe_with_names);
  find(library, "cuptiUnsubscribe", cupti.unsubscribe);
  find(library, "cuptiActivityRegisterCallbacks", cupti.register_callbacks);
  find(library, "cuptiActivitySetAttribute", cupti.set_attribute);
  find(library, "cuptiActivityEnable", cupti.enable);
  find(library, "cuptiActivityDisable", cupti.disable);
  find(library, "cuptiActivityEnableRuntimeApi", cupti.enable_runtime_call);
  find(library, "cuptiActivityEnableDriverApi", cupti.enable_driver_call);
  find(library, "cuptiActivityPushExternalCorrelationId", cupti.push_label);
  find(library, "cuptiActivityPopExternalCorrelationId", cupti.pop_label);
  find(library, "cuptiActivityFlushAll", cupti.flush);
  find(library, "cuptiActivityGetNextRecord", cupti.next_record);
  find(library, "cuptiActivityGetNumDroppedRecords", cupti.dropped_records);
  return cupti;
}

}  // namespace

const CuptiLibrary& CuptiLibrary::get() {
  static const CuptiLibrary library = load_cupti();
  return library;
}

std::string advice(CUptiResult result, const std::string& other) {
  switch (result) {
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
      return fmt::format(
          "{} watches this process already, and CUPTI takes one at a time: run without it (Nsight "
          "and torch's profiler use CUPTI too)",
          other.empty() ? "another profiler" : other);
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return "this machine's driver lets only administrators watch the GPU "
             "(NVreg_RestrictProfilingToAdminUsers)";
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
      return "this virtual GPU cannot be watched";
    case CUPTI_ERROR_NOT_COMPATIBLE:
      return "this CUPTI does not go with the driver";
    default:
      return "";
  }
}

void CuptiLibrary::require(CUptiResult result, const std::string& what) const {
  if (result == CUPTI_SUCCESS)
    return;
  if (const std::string known = advice(result); !known.empty())
    throw plan::InputError(fmt::format("CUPTI, {}: {}", what, known));
  const char* message = nullptr;
  error_message(result, &message);
  throw plan::InputError(
      fmt::format("CUPTI, {}: {}", what, message == nullptr ? "it failed" : message));
}

}  // namespace pipewright::profiler
