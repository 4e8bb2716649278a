#include "run_columns.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "pipewright/plan/error.hpp"

namespace pipewright::plan {
namespace {

/// Where a row has a column's value.
template <class Part>
Part& part_of(RunRow& row);
template <>
RunRow& part_of(RunRow& row) {
  return row;
}
template <>
MeasuredRun& part_of(RunRow& row) {
  return row.run;
}
template <>
Cut& part_of(RunRow& row) {
  return row.run.cut;
}
template <>
TransformerTraining& part_of(RunRow& row) {
  return row.run.training;
}
template <>
TransformerConfig& part_of(RunRow& row) {
  return row.run.training.model;
}

using Read = std::function<std::string(RunRow&, const std::string&)>;

/// The whole text as a number; nothing else, and no infinity.
std::optional<double> number_in(const std::string& text) {
  double value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return {};
  return value;
}

/// "20" or "20.0", as spreadsheets write it.
template <class Part>
Read whole(int Part::*member, double least, double most) {
  return [=](RunRow& row, const std::string& text) -> std::string {
    const auto value = number_in(text);
    if (!value || *value != std::floor(*value) || *value < least || *value > most)
      return fmt::format("a whole number from {:.0f} to {:.0f} is needed here", least, most);
    part_of<Part>(row).*member = static_cast<int>(*value);
    return {};
  };
}

template <class Part>
Read size(int Part::*member) {
  return whole(member, 1, 10'000'000);
}

Read seconds(double unit) {
  return [=](RunRow& row, const std::string& text) -> std::string {
    if (text.empty())
      return {};
    const auto value = number_in(text);
    if (!value || *value <= 0 || *value * unit > 1e6)
      return "the time of an iteration is needed here, more than 0 and less than a million seconds";
    row.run.iteration = Seconds{*value * unit};
    return {};
  };
}

Read memory(double unit) {
  return [=](RunRow& row, const std::string& text) -> std::string {
    if (text.empty())
      return {};
    const auto value = number_in(text);
    if (!value || *value <= 0 || *value * unit > 1e15)
      return "a size of memory is needed here, more than 0";
    row.run.peak_memory = whole_bytes(*value * unit);
    return {};
  };
}

std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c - 'A' + 'a');
  return text;
}

/// One of some words, each with what it means, in any case.
template <class Part, class Value>
Read word(Value Part::*member, std::vector<std::pair<std::string, Value>> words) {
  return [=](RunRow& row, const std::string& text) -> std::string {
    for (const auto& [name, value] : words)
      if (name == lower_case(text)) {
        part_of<Part>(row).*member = value;
        return {};
      }
    std::vector<std::string> names;
    for (const auto& [name, value] : words)
      names.push_back(name);
    return listed(names) + " is needed here";
  };
}

template <class Part>
Read flag(bool Part::*member) {
  return word<Part, bool>(
      member,
      {{"yes", true}, {"no", false}, {"true", true}, {"false", false}, {"1", true}, {"0", false}});
}

template <class Part>
Read text(std::string Part::*member) {
  return [=](RunRow& row, const std::string& text) -> std::string {
    part_of<Part>(row).*member = text;
    return {};
  };
}

/// An empty cell leaves what the run has.
Read or_default(Read read) {
  return [=](RunRow& row, const std::string& text) {
    return text.empty() || text == "n/a" ? std::string() : read(row, text);
  };
}

Read recompute() {
  using R = RecomputeMode;
  const Read mode = word<Cut, R>(&Cut::recompute, {{"none", R::None},
                                                   {"selective", R::Selective},
                                                   {"full", R::Full},
                                                   {"no", R::None},
                                                   {"yes", R::Full},
                                                   {"false", R::None},
                                                   {"true", R::Full},
                                                   {"0", R::None},
                                                   {"1", R::Full}});
  return [=](RunRow& row, const std::string& text) {
    row.run.tells_recompute = true;
    return mode(row, text);
  };
}

}  // namespace

const std::vector<RunColumn>& run_columns() {
  using Training = TransformerTraining;
  using Model = TransformerConfig;
  static const std::vector<RunColumn> columns{
      {{"id"}, false, text(&MeasuredRun::id)},
      {{"model"}, false, text(&Model::name)},
      {{"gpus"}, true, size(&RunRow::gpus)},
      {{"tp", "tensor"}, true, size(&Cut::tensor)},
      {{"dp", "data"}, true, size(&Cut::data)},
      {{"pp", "pipeline"}, true, size(&Cut::pipeline)},
      {{"global_batch"}, true, size(&Training::batch)},
      {{"micro_batch", "microbatch", "mbs"}, true, size(&Cut::microbatch)},
      {{"layers"}, false, or_default(size(&Model::layers))},
      {{"hidden"}, false, or_default(size(&Model::hidden))},
      {{"heads"}, false, or_default(size(&Model::heads))},
      {{"seq", "sequence"}, true, size(&Training::sequence)},
      {{"iter_ms"}, false, seconds(1e-3)},
      {{"iter_s", "iter_time_s"}, false, seconds(1)},
      {{"kv_heads"}, false, or_default(size(&Model::kv_heads))},
      {{"head_channels"}, false, or_default(size(&Model::head_channels))},
      {{"ffn", "feed_forward"}, false, or_default(size(&Model::feed_forward))},
      {{"gated"}, false, or_default(flag(&Model::gated))},
      {{"vocab", "vocabulary"}, false, or_default(size(&Model::vocabulary))},
      {{"experts"}, false, or_default(whole(&Model::experts, 0, 1'000'000))},
      {{"experts_per_token", "top_k"}, false, or_default(size(&Model::experts_per_token))},
      {{"shared_experts"}, false, or_default(whole(&RunRow::shared_experts, 0, 1000))},
      {{"dense_layers"}, false, or_default(whole(&RunRow::dense_layers, 0, 1'000'000))},
      {{"q_rank"}, false, or_default(size(&Model::q_rank))},
      {{"kv_rank"}, false, or_default(size(&Model::kv_rank))},
      {{"rope_channels"}, false, or_default(size(&Model::rope_channels))},
      {{"expert_ffn"}, false, or_default(size(&Model::expert_feed_forward))},
      {{"chunks", "chunks_v", "interleave_v", "vp"}, false, or_default(size(&Cut::chunks))},
      {{"cp", "context"}, false, or_default(size(&Cut::context))},
      {{"ep", "expert"}, false, or_default(size(&Cut::expert))},
      {{"zero"}, false, or_default(whole(&Cut::zero, 0, 3))},
      {{"sequence_parallel", "sp"}, false, or_default(flag(&Cut::sequence_parallel))},
      {{"recompute"}, false, or_default(recompute())},
      {{"attention"},
       false,
       or_default(word<Training, AttentionKind>(
           &Training::attention,
           {{"scores", AttentionKind::Scores}, {"fused", AttentionKind::Fused}}))},
      {{"precision"},
       false,
       or_default(word<Training, ProductPrecision>(&Training::precision,
                                                   {{"bf16", ProductPrecision::Half},
                                                    {"fp16", ProductPrecision::Half},
                                                    {"fp8", ProductPrecision::Float8}}))},
      {{"peak_memory_gb", "memory_gb"}, false, memory(1e9)},
      {{"peak_memory_gib"}, false, memory(0x1p30)},
      {{"peak_memory_bytes"}, false, memory(1)}};
  return columns;
}

}  // namespace pipewright::plan
