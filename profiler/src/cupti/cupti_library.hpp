#pragma once

// CUPTI, loaded at run time.

#include <cupti.h>

#include <string>

namespace pipewright::profiler {

/// CUPTI's functions. The library comes with LibTorch's wheel and is loaded at its first use.
struct CuptiLibrary {
  decltype(&cuptiGetVersion) get_version;
  decltype(&cuptiGetTimestamp) get_timestamp;
  decltype(&cuptiGetErrorMessage) error_message;
  decltype(&cuptiGetCallbackName) call_name;
  decltype(&cuptiSubscribe) subscribe;
  decltype(&cuptiSubscribe_v2) subscribe_with_names;  // null if older than CUDA 13
  decltype(&cuptiUnsubscribe) unsubscribe;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks;
  decltype(&cuptiActivitySetAttribute) set_attribute;
  decltype(&cuptiSetThreadIdType) set_thread_numbers;  // null if this CUPTI lacks it
  decltype(&cuptiActivityEnable) enable;
  decltype(&cuptiActivityDisable) disable;
  decltype(&cuptiActivityEnableRuntimeApi) enable_runtime_call;
  decltype(&cuptiActivityEnableDriverApi) enable_driver_call;
  decltype(&cuptiActivityPushExternalCorrelationId) push_label;
  decltype(&cuptiActivityPopExternalCorrelationId) pop_label;
  decltype(&cuptiActivityFlushAll) flush;
  decltype(&cuptiActivityGetNextRecord) next_record;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped_records;

  /// Loads CUPTI at the first call. Throws InputError if it is not installed.
  static const CuptiLibrary& get();
  /// Loads a given library file.
  static CuptiLibrary load(const char* file);
  /// Throws InputError with CUPTI's description of a failure and advice to the user.
  void require(CUptiResult result, const std::string& what) const;
};

/// Returns what a user can do about a failure; empty if nothing is known. `other` is the program
/// that uses CUPTI, if CUPTI has reported it.
std::string advice(CUptiResult result, const std::string& other = "");

}  // namespace pipewright::profiler
