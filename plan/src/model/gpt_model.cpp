#include "pipewright/plan/model/gpt_model.hpp"

#include <fmt/format.h>

#include "pipewright/plan/model/declare_model.hpp"
#include "pipewright/plan/model/model.hpp"
#include "planned_layer.hpp"

namespace pipewright::plan {

template <MaybeConst<GptShape> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  constexpr Range blocks_range{.least = 1, .most = 10'000};
  visit("blocks", s.blocks, within(blocks_range),
        "Transformer blocks. The model has two more layers, embedding and head.");
  visit("hidden", s.hidden, within(size_range), "Width; a multiple of heads.");
  visit("heads", s.heads, within(size_range), "Heads of the attention.");
  visit("sequence", s.sequence, within(size_range), "Tokens of one sample.");
  visit("vocabulary", s.vocabulary, FieldRule{.range = size_range, .schema = R"({"const": 256})"},
        "Number of byte values.");
}

namespace {

constexpr int byte_values = 256;

Sample text_window(const GptShape& shape) {
  const SampleTensor tokens{.shape = {shape.sequence}, .is_index = true};
  return {.units = shape.sequence, .input = tokens, .target = tokens};
}

/// Returns what a layer saves. Selective recomputation drops only the log-sum-exp, because the
/// scores are never stored.
LayerEstimate estimate_of_gpt(const GptShape& shape, const Layer& layer) {
  const double tokens = shape.sequence;
  if (layer.kind == "norm-and-head")
    return {.kept = kept_by_head(tokens, shape.hidden)};
  if (!layer.checkpointable)
    return {};
  return {.kept = kept_by_block(tokens, shape.hidden, shape.heads),
          .attention_kept = shape.heads * tokens,
          .attention_flops = 4 * tokens * tokens * shape.hidden};
}

void check_gpt(const GptShape& shape, JsonObject& object) {
  check_heads(shape.heads, shape.hidden, object);
  if (shape.vocabulary != byte_values)
    object.error("vocabulary", fmt::format("a text is read byte by byte, so the vocabulary must "
                                           "be {}, not {}",
                                           byte_values, shape.vocabulary));
}

}  // namespace

Model gpt_model(const GptShape& shape) {
  const std::int64_t h = shape.hidden;
  const std::int64_t tables = (std::int64_t{shape.vocabulary} + shape.sequence) * h;
  Model model{.name = "gpt", .layers = {}};
  // Looking up two rows and adding them is no matrix product, so no FLOPs are counted.
  model.layers.push_back(
      planned_layer("embedding", "embedding", tables, 0, {shape.sequence, shape.hidden}));
  for (int index = 0; index < shape.blocks; ++index)
    model.layers.push_back(
        planned_block(fmt::format("block{}", index), shape.sequence, shape.hidden));
  const double head_flops = 2.0 * shape.sequence * shape.hidden * shape.vocabulary;
  model.layers.push_back(planned_layer("head", "norm-and-head",
                                       norm_parameters(h) + linear_parameters(h, shape.vocabulary),
                                       head_flops, {shape.sequence, shape.vocabulary}));
  return model;
}

std::vector<std::string> faults_of_gpt_cut(const GptShape& shape, int parts) {
  const auto possible = [&](int size) {
    return shape.heads % size == 0 && shape.vocabulary >= size;
  };
  if (possible(parts))
    return {};
  return {fmt::format(
      "{} heads and a vocabulary of {} cannot be divided into {} parts: heads must "
      "divide evenly, and no part of the vocabulary be empty; {} would do",
      shape.heads, shape.vocabulary, parts, nearest_sizes(parts, shape.heads, possible))};
}

template <>
const ModelDescriptor& descriptor_of<GptShape>() {
  static const ModelDescriptor gpt =
      declare_model<GptShape>({.meaning = "A GPT of pre-norm blocks over the bytes of a text.",
                               .data = text_data,
                               .unit = "tokens",
                               .layers = gpt_model,
                               .sample = text_window,
                               .estimate = estimate_of_gpt,
                               .check = check_gpt,
                               .faults_of_cut = faults_of_gpt_cut});
  return gpt;
}

}  // namespace pipewright::plan
