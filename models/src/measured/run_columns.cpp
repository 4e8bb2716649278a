#include "run_columns.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <utility>

#include "pipewright/plan/error.hpp"

namespace pipewright::models {
namespace {

/// Returns the part of a row that has a column's value.
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
plan::Cut& part_of(RunRow& row) {
  return row.run.cut;
}
template <>
plan::TransformerTraining& part_of(RunRow& row) {
  return row.run.training;
}
template <>
plan::TransformerConfig& part_of(RunRow& row) {
  return row.run.training.model;
}
template <>
TrainerOptions& part_of(RunRow& row) {
  return row.run.options;
}
template <>
StageWords& part_of(RunRow& row) {
  return row.stages;
}

using ReadCell = std::function<std::string(RunRow&, const std::string&)>;

/// Parses the whole text as a finite number.
std::optional<double> number_in(const std::string& text) {
  double value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return {};
  return value;
}

/// Reads an integer: "20", or "20.0" as spreadsheets write it.
template <class Part>
ReadCell whole(int Part::*member, double least, double most) {
  return [=](RunRow& row, const std::string& text) -> std::string {
    const auto value = number_in(text);
    if (!value || *value != std::floor(*value) || *value < least || *value > most)
      return fmt::format("a whole number from {:.0f} to {:.0f} is needed here", least, most);
    part_of<Part>(row).*member = static_cast<int>(*value);
    return {};
  };
}

template <class Part>
ReadCell size(int Part::*member) {
  return whole(member, 1, 10'000'000);
}

ReadCell seconds(double unit) {
  return [=](RunRow& row, const std::string& text) -> std::string {
    if (text.empty())
      return {};
    const auto value = number_in(text);
    if (!value || *value <= 0 || *value * unit > 1e6)
      return "the time of an iteration is needed here, more than 0 and less than a million seconds";
    row.run.iteration = plan::Seconds{*value * unit};
    return {};
  };
}

ReadCell throughput(Throughput::Unit unit) {
  return [=](RunRow& row, const std::string& text) -> std::string {
    if (text.empty())
      return {};
    const auto value = number_in(text);
    if (!value || *value <= 0 || *value > 1e15)
      return "a rate is needed here, more than 0";
    if (!row.throughput)
      row.throughput = {unit, *value};
    return {};
  };
}

ReadCell memory(std::optional<plan::Bytes> MeasuredRun::*member, double unit) {
  return [=](RunRow& row, const std::string& text) -> std::string {
    if (text.empty())
      return {};
    const auto value = number_in(text);
    if (!value || *value <= 0 || *value * unit > 1e15)
      return "a size of memory is needed here, more than 0";
    row.run.*member = plan::whole_bytes(*value * unit);
    return {};
  };
}

/// Reads a probability, as of dropout.
ReadCell chance(double TrainerOptions::*member) {
  return [=](RunRow& row, const std::string& text) -> std::string {
    const auto value = number_in(text);
    if (!value || *value < 0 || *value >= 1)
      return "a number from 0 to less than 1 is needed here";
    row.run.options.*member = *value;
    return {};
  };
}

/// Reads "[moe_act mlp]" or "moe_act,mlp".
ReadCell modules(std::vector<std::string> TrainerOptions::*member) {
  return [=](RunRow& row, const std::string& text) -> std::string {
    std::string word;
    for (const char c : text + " ")
      if (std::string_view("[], ").find(c) == std::string_view::npos)
        word += c;
      else if (!word.empty())
        (row.run.options.*member).push_back(std::exchange(word, {}));
    return {};
  };
}

std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c - 'A' + 'a');
  return text;
}

/// Reads one of several words, in any case, each with its meaning.
template <class Part, class Value>
ReadCell word(Value Part::*member, std::vector<std::pair<std::string, Value>> words) {
  return [=](RunRow& row, const std::string& text) -> std::string {
    for (const auto& [name, value] : words)
      if (name == lower_case(text)) {
        part_of<Part>(row).*member = value;
        return {};
      }
    std::vector<std::string> names;
    for (const auto& [name, value] : words)
      names.push_back(name);
    return plan::listed(names) + " is needed here";
  };
}

template <class Part>
ReadCell flag(bool Part::*member) {
  return word<Part, bool>(
      member,
      {{"yes", true}, {"no", false}, {"true", true}, {"false", false}, {"1", true}, {"0", false}});
}
ReadCell flag(std::optional<bool> RunRow::*member) {
  return word<RunRow, std::optional<bool>>(
      member,
      {{"yes", true}, {"no", false}, {"true", true}, {"false", false}, {"1", true}, {"0", false}});
}

template <class Part>
ReadCell text(std::string Part::*member) {
  return [=](RunRow& row, const std::string& text) -> std::string {
    part_of<Part>(row).*member = text;
    return {};
  };
}

/// Leaves the run's value unchanged if the cell is empty.
ReadCell or_default(ReadCell read) {
  return [=](RunRow& row, const std::string& text) {
    return text.empty() || text == "n/a" ? std::string() : read(row, text);
  };
}

/// Reads "bf16", or the precision of products with that of the rest: "fp8-hybrid+bf16".
ReadCell precision() {
  return [](RunRow& row, const std::string& text) -> std::string {
    const std::string word = lower_case(text);
    const auto products = products_of(word);
    if (!products)
      return "bf16, fp16, fp32, fp8 or nvfp4 is needed here, or one of these and what the rest is "
             "in, such as fp8-hybrid+bf16";
    row.run.training.precision = *products;
    row.run.options.precision = word;
    return {};
  };
}

/// Reads "yes" or "no".
ReadCell latent() {
  return [](RunRow& row, const std::string& text) -> std::string {
    row.latent = lower_case(text);
    return row.latent == "yes" || row.latent == "no" ? "" : "yes or no is needed here";
  };
}

ReadCell recompute() {
  using R = plan::RecomputeMode;
  const ReadCell mode = word<plan::Cut, R>(&plan::Cut::recompute, {{"none", R::None},
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

ReadCell attention() {
  const ReadCell kind = word<plan::TransformerTraining, plan::AttentionKind>(
      &plan::TransformerTraining::attention,
      {{"scores", plan::AttentionKind::Scores}, {"fused", plan::AttentionKind::Fused}});
  return [=](RunRow& row, const std::string& text) {
    row.run.tells_attention = true;
    return kind(row, text);
  };
}

}  // namespace

const std::vector<RunColumn>& run_columns() {
  using Training = plan::TransformerTraining;
  using Model = plan::TransformerConfig;
  using Options = TrainerOptions;
  using Rate = Throughput::Unit;
  static const std::vector<RunColumn> columns{
      {{"id"}, false, text(&MeasuredRun::id)},
      {{"model"}, false, text(&Model::name)},
      {{"gpus"}, true, size(&RunRow::gpus)},
      {{"tp", "tensor"}, false, or_default(size(&plan::Cut::tensor))},
      {{"dp", "data"}, false, or_default(size(&RunRow::data))},
      {{"pp", "pipeline", "p", "pipeline_stages"}, true, size(&plan::Cut::pipeline)},
      {{"global_batch"}, false, or_default(size(&Training::batch))},
      {{"micro_batch", "microbatch", "mbs", "b"}, true, size(&plan::Cut::microbatch)},
      {{"microbatches", "m"}, false, or_default(whole(&RunRow::microbatches, 0, 10'000'000))},
      {{"schedule"}, false, text(&RunRow::schedule)},
      {{"layers"}, false, or_default(size(&Model::layers))},
      {{"hidden"}, false, or_default(size(&Model::hidden))},
      {{"heads"}, false, or_default(size(&Model::heads))},
      {{"seq", "sequence"}, true, size(&Training::sequence)},
      {{"iter_ms", "ms_per_iter", "step_ms"}, false, seconds(1e-3), true},
      {{"iter_s", "iter_time_s", "iter_s_derived", "step_s"}, false, seconds(1), true},
      {{"samples_per_s", "sequences_per_s"}, false, throughput(Rate::Samples), true},
      {{"samples_per_gpu_per_s", "samples_per_s_per_gpu"},
       false,
       throughput(Rate::SamplesOfDevice),
       true},
      {{"tokens_per_s"}, false, throughput(Rate::Tokens), true},
      {{"tokens_per_s_per_gpu", "tokens_per_gpu_per_s"},
       false,
       throughput(Rate::TokensOfDevice),
       true},
      {{"tflops_per_gpu"}, false, throughput(Rate::TeraflopsOfDevice), true},
      {{"mfu_pct", "mfu_percent"}, false, throughput(Rate::Utilization), true},
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
      {{"chunks", "chunks_v", "interleave_v", "v_interleaved", "vp"},
       false,
       or_default(size(&plan::Cut::chunks))},
      {{"cp", "context"}, false, or_default(size(&plan::Cut::context))},
      {{"ep", "expert"}, false, or_default(size(&plan::Cut::expert))},
      {{"zero"}, false, or_default(whole(&plan::Cut::zero, 0, 3))},
      {{"sequence_parallel", "sp"}, false, or_default(flag(&plan::Cut::sequence_parallel))},
      {{"recompute"}, false, or_default(recompute())},
      {{"attention"}, false, or_default(attention())},
      {{"precision"}, false, or_default(precision())},
      {{"peak_memory_gb", "memory_gb"}, false, memory(&MeasuredRun::peak_memory, 1e9)},
      {{"peak_memory_gib", "memory_gib"}, false, memory(&MeasuredRun::peak_memory, 0x1p30)},
      {{"reserved_memory_gib"}, false, memory(&MeasuredRun::reserved_memory, 0x1p30)},
      {{"reserved_memory_bytes"}, false, memory(&MeasuredRun::reserved_memory, 1)},
      {{"peak_memory_bytes", "mem_max_allocated_bytes"},
       false,
       memory(&MeasuredRun::peak_memory, 1)},
      {{"allocated_bytes", "mem_allocated_bytes"},
       false,
       memory(&MeasuredRun::allocated_memory, 1)},
      {{"memory_rank", "mem_rank"}, false, text(&Options::memory_rank)},
      {{"family"}, false, text(&Options::family)},
      {{"version_date", "golden_date"}, false, text(&Options::date)},
      {{"platform"}, false, text(&Options::platform)},
      {{"gpu"}, false, text(&Options::device)},
      {{"nodes"}, false, or_default(size(&Options::nodes))},
      {{"run"}, false, or_default(size(&Options::repeat))},
      {{"test_type"}, false, text(&Options::test_type)},
      {{"etp", "expert_tensor"}, false, or_default(size(&plan::Cut::expert_tensor))},
      {{"vocab_padded"}, false, or_default(size(&Options::padded_vocabulary))},
      {{"tied"}, false, or_default(flag(&RunRow::tied))},
      {{"position"}, false, text(&Options::position)},
      {{"norm"},
       false,
       or_default(word<Model, plan::NormKind>(&Model::norm, {{"layernorm", plan::NormKind::Layer},
                                                             {"rmsnorm", plan::NormKind::Root}}))},
      {{"bias"}, false, or_default(flag(&RunRow::bias))},
      {{"attention_dropout"}, false, or_default(chance(&Options::attention_dropout))},
      {{"hidden_dropout"}, false, or_default(chance(&Options::hidden_dropout))},
      {{"layers_per_virtual_stage"}, false, or_default(size(&RunRow::layers_per_virtual_stage))},
      {{"virtual_stages_per_rank"}, false, or_default(size(&plan::Cut::chunks))},
      {{"pipeline_layout"}, false, text(&StageWords::layout)},
      {{"first_stage_layers"}, false, or_default(size(&StageWords::first))},
      {{"last_stage_layers"}, false, or_default(size(&StageWords::last))},
      {{"embedding_counts_as_layer"}, false, or_default(flag(&StageWords::embedding_counts))},
      {{"loss_counts_as_layer"}, false, or_default(flag(&StageWords::loss_counts))},
      {{"overlap_grad_reduce"}, false, or_default(flag(&plan::Cut::overlaps_gradients))},
      {{"overlap_param_gather"}, false, or_default(flag(&plan::Cut::overlaps_parameters))},
      {{"overlap_param_gather_with_step"},
       false,
       or_default(flag(&Options::overlaps_gather_with_step))},
      {{"overlap_p2p"}, false, or_default(flag(&RunRow::overlaps_transfers))},
      {{"tp_comm_overlap"}, false, or_default(flag(&plan::Cut::overlaps_sums))},
      {{"dp_order_last"}, false, or_default(flag(&plan::Cut::copies_last))},
      {{"microbatch_group"}, false, or_default(size(&plan::Cut::group))},
      {{"defer_embedding_wgrad"}, false, or_default(flag(&Options::late_embedding_gradient))},
      {{"fp8_recipe"}, false, text(&Options::fp8_recipe)},
      {{"fp8_param_gather"}, false, or_default(flag(&Options::fp8_parameters))},
      {{"fp8_attention"}, false, text(&Options::fp8_attention)},
      {{"gradient_dtype"}, false, text(&Options::gradient_dtype)},
      {{"optimizer"}, false, text(&Options::optimizer)},
      {{"recompute_method"}, false, text(&Options::recompute_method)},
      {{"recompute_layers"}, false, or_default(size(&Options::recompute_layers))},
      {{"recompute_modules"}, false, modules(&Options::recompute_modules)},
      {{"attention_backend"}, false, text(&Options::attention_backend)},
      {{"transformer_impl"}, false, text(&Options::implementation)},
      {{"gradient_accumulation_fusion"},
       false,
       or_default(flag(&Options::fused_gradient_accumulation))},
      {{"fp32_residual"}, false, or_default(flag(&Options::fp32_residual))},
      {{"cross_entropy_fusion"}, false, text(&Options::cross_entropy_fusion)},
      {{"shared_expert_ffn"}, false, or_default(size(&RunRow::shared_expert_ffn))},
      {{"moe_layer_freq"}, false, text(&RunRow::moe_layer_freq)},
      {{"grouped_gemm"}, false, or_default(flag(&Options::grouped_products))},
      {{"dispatcher"}, false, text(&Options::dispatcher)},
      {{"latent_attention"}, false, or_default(latent())},
      {{"qk_channels"}, false, or_default(size(&RunRow::qk_channels))},
      {{"v_channels"}, false, or_default(size(&RunRow::v_channels))},
      {{"mtp_layers"}, false, or_default(whole(&Model::predictions, 0, 100))},
      {{"cuda_graph"}, false, text(&Options::cuda_graph)},
      {{"deterministic"}, false, or_default(flag(&Options::deterministic))},
      {{"other_args"}, false, text(&Options::arguments)},
      {{"env"}, false, text(&Options::environment)}};
  return columns;
}

}  // namespace pipewright::models
