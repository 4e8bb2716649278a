#include "stage_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/partitioners/layout.hpp"

namespace pipewright::models {
namespace {

/// Returns what Megatron's layout lacks: it rejects one without the embedding or the loss.
const char* missing_end(const plan::Layout& layout) {
  const std::string letters =
      std::accumulate(layout.stages.begin(), layout.stages.end(), std::string());
  if (letters.front() != 'E')
    return "has no E, the embedding, as its first layer";
  return letters.back() == 'L' ? nullptr : "has no L, the loss, as its last layer";
}

std::optional<StageFault> cut_by_layout(const StageWords& words, int layers, plan::Cut& cut) {
  std::vector<int> counts;
  try {
    const plan::Layout layout = plan::parse_layout(words.layout);
    if (const char* const missing = missing_end(layout))
      return StageFault{"pipeline_layout", missing};
    counts = transformer_layers(layout);
  } catch (const plan::InputError& error) {
    return StageFault{"pipeline_layout", std::string("is not a valid layout: ") + error.what()};
  }
  const auto stages = static_cast<int>(counts.size());
  if (stages % cut.pipeline != 0)
    return StageFault{"pipeline_layout", fmt::format("has {} stages, which do not divide among {} "
                                                     "ranks",
                                                     stages, cut.pipeline)};
  if (const int found = std::reduce(counts.begin(), counts.end()); found != layers)
    return StageFault{"pipeline_layout",
                      fmt::format("has {} layers, but layers is {}", found, layers)};
  cut.chunks = stages / cut.pipeline;
  cut.stage_layers = std::move(counts);
  return {};
}

/// Divides the remaining layers evenly among the ranks in between, and each rank's among its
/// chunks.
std::optional<StageFault> cut_by_ends(const StageWords& words, int layers, plan::Cut& cut) {
  const int between = cut.pipeline - (words.first > 0) - (words.last > 0);
  const int left = layers - words.first - words.last;
  const char* const column = words.first > 0 ? "first_stage_layers" : "last_stage_layers";
  if (left < 0 || (between == 0 ? left != 0 : left % between != 0))
    return StageFault{column,
                      fmt::format("leaves {} layers of {} to {} ranks", left, layers, between)};
  for (int stage = 0; stage < cut.stages(); ++stage) {
    const int rank = stage % cut.pipeline;
    const bool is_first = rank == 0 && words.first > 0;
    const bool is_last = rank == cut.pipeline - 1 && words.last > 0;
    const int of_rank = is_first ? words.first : is_last ? words.last : left / between;
    if (of_rank % cut.chunks != 0)
      return StageFault{"chunks", fmt::format("is {}, which does not divide the {} layers of rank "
                                              "{}",
                                              cut.chunks, of_rank, rank)};
    cut.stage_layers.push_back(of_rank / cut.chunks);
  }
  return {};
}

std::optional<StageFault> cut_with_ends_as_layers(const StageWords& words, int layers,
                                                  plan::Cut& cut) {
  const int all = layers + words.embedding_counts + words.loss_counts;
  const int of_stage = all / cut.stages();
  const char* const column =
      words.embedding_counts ? "embedding_counts_as_layer" : "loss_counts_as_layer";
  if (all % cut.stages() != 0)
    return StageFault{column, fmt::format("makes {} layers, which do not divide among {} stages",
                                          all, cut.stages())};
  cut.stage_layers.assign(static_cast<std::size_t>(cut.stages()), of_stage);
  cut.stage_layers.front() -= words.embedding_counts;
  cut.stage_layers.back() -= words.loss_counts;
  return {};
}

}  // namespace

std::optional<StageFault> cut_by_words(const StageWords& words, int layers, plan::Cut& cut) {
  if (!words.layout.empty())
    return cut_by_layout(words, layers, cut);
  if (words.first > 0 || words.last > 0)
    return cut_by_ends(words, layers, cut);
  if (words.embedding_counts || words.loss_counts)
    return cut_with_ends_as_layers(words, layers, cut);
  return {};
}

}  // namespace pipewright::models
