#include "pipewright/models/measured/measured_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "csv_table.hpp"
#include "pipewright/models/measured/megatron_words.hpp"
#include "pipewright/models/transformer/transformer_counts.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/known_transformers.hpp"
#include "pipewright/plan/model/layer_pattern.hpp"
#include "run_columns.hpp"
#include "settings.hpp"

namespace pipewright::models {
namespace {

constexpr int gpt_vocabulary = 50257;

/// The positions of known columns in the file.
class Header {
 public:
  Header(const CsvLine& line, const std::string& name, RunTimes times,
         std::vector<std::string>& faults) {
    for (const CsvCell& cell : line.cells)
      add(cell, line.line, name, faults);
    for (const RunColumn& column : run_columns())
      if (column.needed && !has(column))
        faults.push_back(fmt::format("{}:{}:1: no column \"{}\"{}", name, line.line,
                                     column.names.front(),
                                     plan::did_you_mean(column.names.front(), ignored_)));
    if (times == RunTimes::Needed && !has_time())
      faults.push_back(fmt::format(
          "{}:{}:1: no column \"iter_ms\" or \"iter_s\": the time of each run is needed", name,
          line.line));
  }

  /// Returns the columns by position in the line; null for unknown ones.
  const std::vector<const RunColumn*>& columns() const { return columns_; }
  const std::vector<std::string>& ignored() const { return ignored_; }
  /// Returns the column's position, from 0, or nothing if the file does not have it.
  std::optional<std::size_t> place(const std::string& column) const {
    for (std::size_t at = 0; at < columns_.size(); ++at)
      if (columns_[at] != nullptr && columns_[at]->names.front() == column)
        return at;
    return {};
  }

 private:
  bool has(const RunColumn& column) const {
    return std::find(columns_.begin(), columns_.end(), &column) != columns_.end();
  }
  bool has_time() const {
    return std::any_of(columns_.begin(), columns_.end(), [](const RunColumn* column) {
      return column != nullptr && column->tells_time;
    });
  }

  void add(const CsvCell& cell, int line, const std::string& name,
           std::vector<std::string>& faults) {
    const auto& known = run_columns();
    const auto found = std::find_if(known.begin(), known.end(), [&](const RunColumn& column) {
      return std::find(column.names.begin(), column.names.end(), cell.text) != column.names.end();
    });
    const RunColumn* const column = found == known.end() ? nullptr : &*found;
    if (column != nullptr && has(*column))
      faults.push_back(fmt::format("{}:{}:{}: \"{}\" appears twice", name, line, cell.column,
                                   column->names.front()));
    columns_.push_back(column);
    if (column == nullptr)
      ignored_.push_back(cell.text);
  }

  std::vector<const RunColumn*> columns_;
  std::vector<std::string> ignored_;
};

/// Fills in missing sizes from a known model. A different hidden size means that it is another
/// model of that name.
void fill(RunRow& row, const plan::TransformerConfig& known) {
  using Config = plan::TransformerConfig;
  plan::TransformerConfig& own = row.run.training.model;
  if (own.hidden != 0 && own.hidden != known.hidden)
    return;
  if (row.dense_layers == 0)
    row.dense_layers = known.leading_dense_layers();
  if (row.shared_experts == 0 && known.shared_feed_forward > 0)
    row.shared_experts = known.shared_feed_forward / known.expert_feed_forward;
  for (int Config::*const size :
       {&Config::layers, &Config::hidden, &Config::heads, &Config::kv_heads, &Config::head_channels,
        &Config::feed_forward, &Config::vocabulary, &Config::experts, &Config::experts_per_token,
        &Config::expert_feed_forward, &Config::q_rank, &Config::kv_rank, &Config::rope_channels})
    if (own.*size == 0)
      own.*size = known.*size;
  own.gated = own.gated || known.gated;
  if (!row.run.tells_attention)
    row.run.training.attention = plan::AttentionKind::Fused;
  row.run.tells_attention = true;
}

/// Reads one line of the file as a run.
class RowReader {
 public:
  RowReader(const Header& header, const CsvLine& line, const std::string& name,
            std::vector<std::string>& faults)
      : header_(header), line_(line), name_(name), faults_(faults), before_(faults.size()) {
    training_.attention = plan::AttentionKind::Scores;
    training_.batch = 0;  // not given
  }

  MeasuredRun read(RunTimes times) {
    row_.run.line = line_.line;
    read_cells();
    if (row_.run.id.empty())
      row_.run.id = fmt::format("line {}", line_.line);
    if (faults_.size() == before_) {
      fill_defaults();
      if (faults_.size() == before_)
        check_sizes();
      if (faults_.size() == before_)
        settle_time(row_);
      if (times == RunTimes::Needed && !row_.run.iteration && !row_.run.utilization)
        fault("iter_ms", "is empty: a run to calibrate from needs the time of an iteration");
    }
    return row_.run;
  }

 private:
  void read_cells() {
    const auto& columns = header_.columns();
    if (line_.cells.size() != columns.size())
      return faults_.push_back(fmt::format("{}:{}:1: {} cells, but the header has {}", name_,
                                           line_.line, line_.cells.size(), columns.size()));
    for (std::size_t at = 0; at < columns.size(); ++at) {
      if (columns[at] == nullptr)
        continue;
      const CsvCell& cell = line_.cells[at];
      if (const std::string wanted = columns[at]->read(row_, cell.text); !wanted.empty())
        faults_.push_back(fmt::format("{}:{}:{}: {} is \"{}\", {}", name_, line_.line, cell.column,
                                      columns[at]->names.front(), cell.text, wanted));
    }
  }

  void fill_defaults() {
    if (const auto known = plan::find_transformer(model_.name))
      fill(row_, *known);
    const TrainerOptions& options = row_.run.options;
    model_.learned_positions = options.position.empty() ? !model_.gated  // as in GPT models
                                                        : options.position == "learned_absolute";
    model_.tied = row_.tied.value_or(model_.tied);
    row_.run.options.bias = row_.bias.value_or(false);
    model_.dropout = options.hidden_dropout > 0;
    training_.replays_launches = options.cuda_graph == "full";
    training_.gathers_float8 = options.fp8_parameters;
    training_.repeats_bits = options.deterministic;
    if (options.attention_backend == "flash" || options.attention_backend == "fused" ||
        options.attention_backend == "auto")
      training_.attention = plan::AttentionKind::Fused;  // "auto" uses a fused kernel if there is
                                                         // one
    row_.run.tells_attention |= !options.attention_backend.empty();
    read_arguments();
    if (model_.hidden == 0 || model_.heads == 0 || model_.layers == 0)
      return fault(model_.hidden == 0  ? "hidden"
                   : model_.heads == 0 ? "heads"
                                       : "layers",
                   fmt::format("is not given, and model \"{}\" is unknown; known models: {}",
                               model_.name, fmt::join(plan::known_transformers(), ", ")));
    const auto set_if_open = [](int& size, int usual) { size = size == 0 ? usual : size; };
    tells_head_channels_ = model_.head_channels > 0;
    set_if_open(model_.kv_heads, model_.heads);
    set_if_open(model_.head_channels, model_.hidden / model_.heads);
    set_if_open(model_.feed_forward, 4 * model_.hidden);
    if (options.padded_vocabulary > 0)
      model_.vocabulary = options.padded_vocabulary;
    // Trainers of runs with a named schedule pad the vocabulary as Megatron-LM does.
    set_if_open(model_.vocabulary,
                row_.schedule.empty()
                    ? gpt_vocabulary
                    : padded_vocabulary(gpt_vocabulary, vocabulary_multiple * cut_.tensor));
    training_.gradient_bytes = has_half_gradients() ? 2 : 4;
    model_.value_channels = model_.head_channels;
    fill_latent();
    if (model_.experts > 0)
      fill_mixture();
  }

  /// Returns true if gradients are accumulated in 16 bits. Megatron-LM does so for fp16, but uses
  /// fp32 for bf16. Zero Bubble's runs, and later ones by the same schedules, used fp16.
  bool has_half_gradients() const {
    const TrainerOptions& options = row_.run.options;
    if (!options.gradient_dtype.empty())
      return is_half(options.gradient_dtype);
    return options.precision == "fp16" || (options.precision.empty() && !row_.schedule.empty());
  }

  /// Reads sizes from the trainer's further arguments.
  void read_arguments() {
    try {
      const Settings arguments(row_.run.options.arguments, ';');
      if (const int group = arguments.whole("microbatch-group-size-per-virtual-pipeline-stage", 0);
          group > 0)
        cut_.group = group;
      set_layers_by_pattern(row_.run);
    } catch (const plan::InputError& error) {
      fault("other_args", fmt::format("cannot be read: {}", error.what()));
    }
  }

  /// Reads the options of latent attention. A table may give ranks even if it says that attention
  /// is not latent.
  void fill_latent() {
    if (row_.latent == "no")
      model_.q_rank = model_.kv_rank = model_.rope_channels = 0;
    else if (row_.latent == "yes" && model_.kv_rank == 0)
      return fault("kv_rank", "is not given, but latent_attention is yes");
    if (!model_.is_latent())
      return;
    if (row_.qk_channels > 0)
      model_.head_channels = model_.value_channels = row_.qk_channels;
    if (row_.v_channels > 0)
      model_.value_channels = row_.v_channels;
  }

  void fill_mixture() {
    constexpr double most_channels = 1e9;
    if (model_.experts_per_token == 0)
      model_.experts_per_token = 1;
    if (model_.expert_feed_forward == 0)
      model_.expert_feed_forward = model_.feed_forward;
    const double shared = row_.shared_expert_ffn > 0
                              ? row_.shared_expert_ffn
                              : 1.0 * row_.shared_experts * model_.expert_feed_forward;
    if (shared > most_channels)
      return fault(
          "shared_experts",
          fmt::format("is {}, of {} channels each: at most {:.0f} channels in total are possible",
                      row_.shared_experts, model_.expert_feed_forward, most_channels));
    model_.shared_feed_forward = static_cast<int>(shared);
    if (row_.moe_layer_freq.empty())
      return model_.set_mixture_behind(row_.dense_layers);
    try {
      model_.sparse = plan::layer_pattern(row_.moe_layer_freq, model_.layers);
    } catch (const plan::InputError& error) {
      fault("moe_layer_freq", fmt::format("is not a valid layer pattern: {}", error.what()));
    }
  }

  /// Finds the faults of a run that is not possible.
  void check_sizes() {
    for (const StageFault& wrong : settle_schedule(row_))
      fault(wrong.column, wrong.message);
    if (faults_.size() != before_)
      return;
    for (const StageFault& wrong : settle_sizes(row_, tells_head_channels_))
      fault(wrong.column, wrong.message);
  }

  void fault(const std::string& column, const std::string& message) {
    const auto at = header_.place(column);
    faults_.push_back(fmt::format("{}:{}:{}: {} {}", name_, line_.line,
                                  at ? line_.cells[*at].column : 1, column, message));
  }

  const Header& header_;
  const CsvLine& line_;
  const std::string& name_;
  std::vector<std::string>& faults_;
  const std::size_t before_;
  bool tells_head_channels_ = false;  // they may differ from hidden / heads
  RunRow row_;
  plan::TransformerTraining& training_ = row_.run.training;
  plan::TransformerConfig& model_ = training_.model;
  plan::Cut& cut_ = row_.run.cut;
};

}  // namespace

void set_times_by_peak(std::vector<MeasuredRun>& runs, double peak) {
  for (MeasuredRun& run : runs)
    if (run.utilization && !run.iteration && peak > 0)
      run.iteration = plan::Seconds{training_flops(run.training) /
                                    (*run.utilization * peak * run.cut.devices())};
}

RunTable read_runs(std::string_view csv, const std::string& name, RunTimes times) {
  std::vector<std::string> faults;
  const auto lines = csv_lines(csv, name, faults);
  if (lines.empty())
    throw plan::InputError(name + ": is empty: a header and a line for each run are needed");
  const Header header(lines.front(), name, times, faults);
  if (!faults.empty())
    throw plan::InputError(plan::listed_lines(faults));
  RunTable table{.runs = {}, .ignored = header.ignored(), .refused = {}};
  for (std::size_t at = 1; at < lines.size(); ++at) {
    std::vector<std::string> of_row;
    MeasuredRun run = RowReader(header, lines[at], name, of_row).read(times);
    if (of_row.empty())
      table.runs.push_back(std::move(run));
    else if (times == RunTimes::Optional)
      table.refused.push_back({run.id, run.line, std::move(of_row)});
    else
      faults.insert(faults.end(), of_row.begin(), of_row.end());
  }
  if (lines.size() == 1)
    faults.push_back(name + ": has a header and no runs");
  if (!faults.empty())
    throw plan::InputError(plan::listed_lines(faults));
  return table;
}

RunTable read_runs(const std::filesystem::path& file, RunTimes times) {
  return read_runs(plan::read_file(file), file.string(), times);
}

}  // namespace pipewright::models
