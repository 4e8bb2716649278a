#include "pipewright/engine/describe_module.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

namespace pipewright::engine {

std::string to_string(const PipelineModule& module) {
  const auto counts = parameter_counts(module.layers());
  std::string text;
  for (const auto& stage : module.stages()) {
    const std::int64_t trained = std::accumulate(counts.begin() + stage.first_layer,
                                                 counts.begin() + stage.end_layer, std::int64_t{0});
    text +=
        fmt::format("stage {}: layers {} to {}, {} parameters: {}\n", stage.index,
                    stage.first_layer, stage.end_layer - 1, trained, fmt::join(stage.layers, ", "));
  }
  return text;
}

}  // namespace pipewright::engine
