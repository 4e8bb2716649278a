#pragma once

// CUPTI, loaded at run time.

#include <cupti.h>

#include <string>

namespace pipewright::profiler {

/// CUPTI's functions. Its library comes with LibTorch's wheel and is loaded when it is first asked
/// for.
struct CuptiLibrary {
  decltype(&cuptiGetVersion) get_version;
  decltype(&cuptiGetTimestamp) get_timestamp;
  decltype(&cuptiGetErrorMessage) error_message;
  decltype(&cuptiGetCallbackName) call_name;
  decltype(&cuptiSubscribe) subscribe;
  decltype(&cuptiSubscribe_v2) subscribe_with_names;  // null: older than CUDA 13
  decltype(&cuptiUnsubscribe) unsubscribe;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks;
  decltype(&cuptiActivitySetAttribute) set_attribute;
  decltype(&cuptiSetThreadIdType) set_thread_numbers;  // null: a CUPTI without it
  decltype(&cuptiActivityEnable) enable;
  decltype(&cuptiActivityDisable) disable;
  decltype(&cuptiActivityEnableRuntimeApi) enable_runtime_call;
  decltype(&cuptiActivityEnableDriverApi) enable_driver_call;
  decltype(&cuptiActivityPushExternalCorrelationId) push_label;
  decltype(&cuptiActivityPopExternalCorrelationId) pop_label;
  decltype(&cuptiActivityFlushAll) flush;
  decltype(&cuptiActivityGetNextRecord) next_record;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped_records;

  /// Throws InputError where there is none.
  static const CuptiLibrary& get();
  /// One of one's own.
  static CuptiLibrary load(const char* file);
  /// Throws InputError that says what CUPTI has to say of a failure, and what one may do about it.
  void require(CUptiResult result, const std::string& what) const;
};

/// What a user can do about a refusal; empty: nothing that is known. `other`: who watches, if CUPTI
/// has told.
std::string advice(CUptiResult result, const std::string& other = "");

}  // namespace pipewright::profiler
