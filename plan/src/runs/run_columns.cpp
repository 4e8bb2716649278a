#include "run_columns.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "pipewright/plan/error.hpp"

namespace pipewright::plan {
namespace {

using Read = std::function<std::string(TrainingRun&, const std::string&)>;

/// The whole text as a number; nothing else, and no infinity.
std::optional<double> number_in(const std::string& text) {
  double value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return {};
  return value;
}

/// "20" or "20.0", as spreadsheets write it.
Read whole(int TrainingRun::*member, double least, double most) {
  return [=](TrainingRun& run, const std::string& text) -> std::string {
    const auto value = number_in(text);
    if (!value || *value != std::floor(*value) || *value < least || *value > most)
      return fmt::format("a whole number from {:.0f} to {:.0f} is needed here", least, most);
    run.*member = static_cast<int>(*value);
    return {};
  };
}

Read size(int TrainingRun::*member) { return whole(member, 1, 10'000'000); }

Read seconds(double unit) {
  return [=](TrainingRun& run, const std::string& text) -> std::string {
    if (text.empty())
      return {};
    const auto value = number_in(text);
    if (!value || *value <= 0 || *value * unit > 1e6)
      return "the time of an iteration is needed here, more than 0 and less than a million seconds";
    run.iteration = Seconds{*value * unit};
    return {};
  };
}

Read memory(double unit) {
  return [=](TrainingRun& run, const std::string& text) -> std::string {
    if (text.empty())
      return {};
    const auto value = number_in(text);
    if (!value || *value <= 0 || *value * unit > 1e15)
      return "a size of memory is needed here, more than 0";
    run.peak_memory = whole_bytes(*value * unit);
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
template <class Value>
Read word(Value TrainingRun::*member, std::vector<std::pair<std::string, Value>> words) {
  return [=](TrainingRun& run, const std::string& text) -> std::string {
    for (const auto& [name, value] : words)
      if (name == lower_case(text)) {
        run.*member = value;
        return {};
      }
    std::vector<std::string> names;
    for (const auto& [name, value] : words)
      names.push_back(name);
    return listed(names) + " is needed here";
  };
}

Read flag(bool TrainingRun::*member) {
  return word<bool>(
      member,
      {{"yes", true}, {"no", false}, {"true", true}, {"false", false}, {"1", true}, {"0", false}});
}

Read text(std::string TrainingRun::*member) {
  return [=](TrainingRun& run, const std::string& text) -> std::string {
    run.*member = text;
    return {};
  };
}

/// An empty cell leaves what the run has.
Read or_default(Read read) {
  return [=](TrainingRun& run, const std::string& text) {
    return text.empty() || text == "n/a" ? std::string() : read(run, text);
  };
}

}  // namespace

const std::vector<RunColumn>& run_columns() {
  using R = TrainingRun;
  using Recompute = RunRecompute;
  static const std::vector<RunColumn> columns{
      {{"id"}, false, text(&R::id)},
      {{"model"}, false, text(&R::model)},
      {{"gpus"}, true, size(&R::gpus)},
      {{"tp", "tensor"}, true, size(&R::tensor)},
      {{"dp", "data"}, true, size(&R::data)},
      {{"pp", "pipeline"}, true, size(&R::pipeline)},
      {{"global_batch"}, true, size(&R::global_batch)},
      {{"micro_batch", "microbatch", "mbs"}, true, size(&R::microbatch)},
      {{"layers"}, false, or_default(size(&R::layers))},
      {{"hidden"}, false, or_default(size(&R::hidden))},
      {{"heads"}, false, or_default(size(&R::heads))},
      {{"seq", "sequence"}, true, size(&R::sequence)},
      {{"iter_ms"}, false, seconds(1e-3)},
      {{"iter_s", "iter_time_s"}, false, seconds(1)},
      {{"kv_heads"}, false, or_default(size(&R::kv_heads))},
      {{"head_channels"}, false, or_default(size(&R::head_channels))},
      {{"ffn", "feed_forward"}, false, or_default(size(&R::feed_forward))},
      {{"gated"}, false, or_default(flag(&R::gated))},
      {{"vocab", "vocabulary"}, false, or_default(size(&R::vocabulary))},
      {{"experts"}, false, or_default(whole(&R::experts, 0, 1'000'000))},
      {{"experts_per_token", "top_k"}, false, or_default(size(&R::experts_per_token))},
      {{"shared_experts"}, false, or_default(whole(&R::shared_experts, 0, 1000))},
      {{"dense_layers"}, false, or_default(whole(&R::dense_layers, 0, 1'000'000))},
      {{"q_rank"}, false, or_default(size(&R::q_rank))},
      {{"kv_rank"}, false, or_default(size(&R::kv_rank))},
      {{"rope_channels"}, false, or_default(size(&R::rope_channels))},
      {{"expert_ffn"}, false, or_default(size(&R::expert_feed_forward))},
      {{"chunks", "chunks_v", "interleave_v", "vp"}, false, or_default(size(&R::chunks))},
      {{"cp", "context"}, false, or_default(size(&R::context))},
      {{"ep", "expert"}, false, or_default(size(&R::expert))},
      {{"zero"}, false, or_default(whole(&R::zero, 0, 3))},
      {{"sequence_parallel", "sp"}, false, or_default(flag(&R::sequence_parallel))},
      {{"recompute"},
       false,
       or_default(word<Recompute>(&R::recompute, {{"none", Recompute::None},
                                                  {"selective", Recompute::Selective},
                                                  {"full", Recompute::Full},
                                                  {"no", Recompute::None},
                                                  {"yes", Recompute::Full},
                                                  {"false", Recompute::None},
                                                  {"true", Recompute::Full},
                                                  {"0", Recompute::None},
                                                  {"1", Recompute::Full}}))},
      {{"attention"},
       false,
       or_default(word<AttentionKind>(
           &R::attention, {{"scores", AttentionKind::Scores}, {"fused", AttentionKind::Fused}}))},
      {{"precision"},
       false,
       or_default(word<RunPrecision>(&R::precision, {{"bf16", RunPrecision::Half},
                                                     {"fp16", RunPrecision::Half},
                                                     {"fp8", RunPrecision::Float8}}))},
      {{"peak_memory_gb", "memory_gb"}, false, memory(1e9)},
      {{"peak_memory_gib"}, false, memory(0x1p30)},
      {{"peak_memory_bytes"}, false, memory(1)}};
  return columns;
}

}  // namespace pipewright::plan
