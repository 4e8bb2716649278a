#pragma once

// The numbers that CUPTI has for the calls of CUDA's runtime and driver.

#include <cupti.h>

#include <optional>
#include <string>

namespace pipewright::standin {

struct CallId {
  CUpti_CallbackDomain domain = CUPTI_CB_DOMAIN_INVALID;
  CUpti_CallbackId number = 0;
};

/// Of "cudaMemcpyAsync": its newest version.
std::optional<CallId> id_of(const std::string& call);
/// "cudaMemcpyAsync_v3020"; null: no such call.
const char* name_of(const CallId& id);

}  // namespace pipewright::standin
