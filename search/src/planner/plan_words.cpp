#include "pipewright/search/planner/plan_words.hpp"

#include <fmt/format.h>

#include "pipewright/plan/generators/schedule_catalog.hpp"

namespace pipewright::search {
namespace {

/// Returns the layers of the stages: "20", or "19×7 12" if they differ.
std::string layers_words(const plan::Cut& cut, int layers) {
  std::string words;
  const int stages = cut.stages();
  for (int stage = 0; stage < stages;) {
    const int first = stage, own = cut.layers_of(stage, layers);
    while (stage < stages && cut.layers_of(stage, layers) == own)
      ++stage;
    words += fmt::format("{}{}", words.empty() ? "" : " ", own);
    if (stage - first > 1 && stage - first < stages)
      words += fmt::format("×{}", stage - first);
  }
  return words;
}

}  // namespace

std::string cut_words(const plan::Cut& cut, int layers, bool has_experts) {
  std::string words = fmt::format("tp {}, pp {}, dp {}", cut.tensor, cut.pipeline, cut.data);
  if (cut.context > 1)
    words += fmt::format(", cp {}", cut.context);
  if (has_experts)
    words += fmt::format(", ep {}", cut.expert);
  words += fmt::format(", microbatch {}", cut.microbatch);
  if (!cut.schedule.empty())
    words += ", " + cut.schedule;
  else if (cut.chunks > 1)
    words += fmt::format(", {} chunks", cut.chunks);
  if (!cut.stage_layers.empty())
    words += fmt::format(", layers {}", layers_words(cut, layers));
  if (cut.recompute != plan::RecomputeMode::None)
    words += fmt::format(", {} recomputation", to_string(cut.recompute));
  if (cut.zero > 0)
    words += fmt::format(", ZeRO {}", cut.zero);
  if (cut.sequence_parallel)
    words += ", sequence parallel";
  if (cut.overlaps_gradients && cut.zero < 2)  // from ZeRO 2 on they always are
    words += ", overlapped gradient reduction";
  return words;
}

std::string changes_between(const plan::Cut& from, const plan::Cut& to, int layers) {
  std::string words;
  const auto add = [&](const char* name, const auto& before, const auto& after) {
    if (before != after)
      words += fmt::format("{}{} {} instead of {}", words.empty() ? "" : ", ", name, after, before);
  };
  add("tp", from.tensor, to.tensor);
  add("pp", from.pipeline, to.pipeline);
  add("dp", from.data, to.data);
  add("cp", from.context, to.context);
  add("ep", from.expert, to.expert);
  add("schedule", schedule_name(from), schedule_name(to));
  add("chunks", from.chunks, to.chunks);
  add("layers", layers_words(from, layers), layers_words(to, layers));
  add("microbatch", from.microbatch, to.microbatch);
  add("recompute", to_string(from.recompute), to_string(to.recompute));
  add("ZeRO", from.zero, to.zero);
  add("sequence parallel", from.sequence_parallel ? "yes" : "no",
      to.sequence_parallel ? std::string("yes") : std::string("no"));
  return words;
}

}  // namespace pipewright::search
