#pragma once

// CUPTI's numbers for the calls of CUDA's runtime and driver.

#include <cupti.h>

#include <optional>
#include <string>

namespace pipewright::standin {

struct CallId {
  CUpti_CallbackDomain domain = CUPTI_CB_DOMAIN_INVALID;
  CUpti_CallbackId number = 0;
};

/// Returns the newest version of a call such as "cudaMemcpyAsync".
std::optional<CallId> id_of(const std::string& call);
/// Returns a name such as "cudaMemcpyAsync_v3020"; null if there is no such call.
const char* name_of(const CallId& id);

}  // namespace pipewright::standin
