#include "pipewright/plan/error.hpp"
#include "pipewright/profiler/activity/activity_source.hpp"

namespace pipewright::profiler {

std::unique_ptr<ActivitySource> cupti_source(at::Device /*device*/) {
  throw plan::InputError("this Pipewright was built without the CUPTI headers of LibTorch's wheel");
}

}  // namespace pipewright::profiler
