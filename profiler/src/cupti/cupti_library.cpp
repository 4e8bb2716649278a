#include "cupti/cupti_library.hpp"

#include <fmt/format.h>

#include "pipewright/exec/device/loaded_library.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::profiler {

CuptiLibrary CuptiLibrary::load(const char* file) {
  const exec::LoadedLibrary library("CUPTI", file);
  CuptiLibrary cupti{};
  library.find("cuptiGetVersion", cupti.get_version);
  library.find("cuptiGetTimestamp", cupti.get_timestamp);
  library.find("cuptiGetErrorMessage", cupti.error_message);
  library.find("cuptiGetCallbackName", cupti.call_name);
  library.find("cuptiSubscribe", cupti.subscribe);
  library.find_or_not("cuptiSubscribe_v2", cupti.subscribe_with_names);
  library.find("cuptiUnsubscribe", cupti.unsubscribe);
  library.find("cuptiActivityRegisterCallbacks", cupti.register_callbacks);
  library.find("cuptiActivitySetAttribute", cupti.set_attribute);
  library.find_or_not("cuptiSetThreadIdType", cupti.set_thread_numbers);
  library.find("cuptiActivityEnable", cupti.enable);
  library.find("cuptiActivityDisable", cupti.disable);
  library.find("cuptiActivityEnableRuntimeApi", cupti.enable_runtime_call);
  library.find("cuptiActivityEnableDriverApi", cupti.enable_driver_call);
  library.find("cuptiActivityPushExternalCorrelationId", cupti.push_label);
  library.find("cuptiActivityPopExternalCorrelationId", cupti.pop_label);
  library.find("cuptiActivityFlushAll", cupti.flush);
  library.find("cuptiActivityGetNextRecord", cupti.next_record);
  library.find("cuptiActivityGetNumDroppedRecords", cupti.dropped_records);
  return cupti;
}

const CuptiLibrary& CuptiLibrary::get() {
  // The library comes with LibTorch's CUDA wheel, which has it on its library path.
  static const CuptiLibrary library = load("libcupti.so.13");
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
      return "this CUPTI is not compatible with the driver";
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
