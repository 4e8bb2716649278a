#include "pipewright/plan/runs/training_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "csv_table.hpp"
#include "known_models.hpp"
#include "pipewright/plan/error.hpp"
#include "run_columns.hpp"

namespace pipewright::plan {
namespace {

constexpr int gpt_vocabulary = 50257;

/// Which of `columns` stands where in the file.
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
                                     did_you_mean(column.names.front(), ignored_)));
    if (times == RunTimes::Needed && !has_name("iter_ms") && !has_name("iter_s"))
      faults.push_back(fmt::format(
          "{}:{}:1: no column \"iter_ms\" or \"iter_s\": what a run took has to be known", name,
          line.line));
  }

  /// By place in the line; null: nobody knows that column.
  const std::vector<const RunColumn*>& columns() const { return columns_; }
  const std::vector<std::string>& ignored() const { return ignored_; }
  /// Where the column stands, from 0; nothing where it does not.
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
  bool has_name(const std::string& column) const { return place(column).has_value(); }

  void add(const CsvCell& cell, int line, const std::string& name,
           std::vector<std::string>& faults) {
    const auto& known = run_columns();
    const auto found = std::find_if(known.begin(), known.end(), [&](const RunColumn& column) {
      return std::find(column.names.begin(), column.names.end(), cell.text) != column.names.end();
    });
    const RunColumn* const column = found == known.end() ? nullptr : &*found;
    if (column != nullptr && has(*column))
      faults.push_back(fmt::format("{}:{}:{}: \"{}\" is there twice", name, line, cell.column,
                                   column->names.front()));
    columns_.push_back(column);
    if (column == nullptr)
      ignored_.push_back(cell.text);
  }

  std::vector<const RunColumn*> columns_;
  std::vector<std::string> ignored_;
};

/// "4 or 6": the numbers next to `near` that divide `whole`.
std::string divisors_near(int whole, int near) {
  int below = std::min(near, whole), above = near;
  while (below > 1 && whole % below != 0)
    --below;
  while (above < whole && whole % above != 0)
    ++above;
  if (above > whole || whole % above != 0 || above == below)
    return fmt::format("{}", below);
  return fmt::format("{} or {}", below, above);
}

/// One line of the file as a run.
class RowReader {
 public:
  RowReader(const Header& header, const CsvLine& line, const std::string& name,
            std::vector<std::string>& faults)
      : header_(header), line_(line), name_(name), faults_(faults), before_(faults.size()) {}

  TrainingRun read(RunTimes times) {
    run_.line = line_.line;
    read_cells();
    if (faults_.size() == before_) {
      fill_defaults();
      if (faults_.size() == before_)
        check_sizes();
      if (times == RunTimes::Needed && !run_.iteration)
        fault("iter_ms", "is empty: a run to learn from needs the time of an iteration");
    }
    return run_;
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
      if (const std::string wanted = columns[at]->read(run_, cell.text); !wanted.empty())
        faults_.push_back(fmt::format("{}:{}:{}: {} is \"{}\", {}", name_, line_.line, cell.column,
                                      columns[at]->names.front(), cell.text, wanted));
    }
  }

  void fill_defaults() {
    if (run_.id.empty())
      run_.id = fmt::format("line {}", line_.line);
    if (const KnownModel* const known = find_known_model(run_.model))
      fill(run_, *known);
    if (run_.hidden == 0 || run_.heads == 0 || run_.layers == 0)
      return fault(run_.hidden == 0  ? "hidden"
                   : run_.heads == 0 ? "heads"
                                     : "layers",
                   fmt::format("is not given, and model \"{}\" is not known; {} are", run_.model,
                               fmt::join(known_model_names(), ", ")));
    if (run_.kv_heads == 0)
      run_.kv_heads = run_.heads;
    if (run_.experts > 0 && run_.experts_per_token == 0)
      run_.experts_per_token = 1;
    if (run_.head_channels == 0)
      run_.head_channels = run_.hidden / run_.heads;
    if (run_.feed_forward == 0)
      run_.feed_forward = 4 * run_.hidden;
    if (run_.vocabulary == 0)
      run_.vocabulary = gpt_vocabulary;
    if (run_.expert_feed_forward == 0)
      run_.expert_feed_forward = run_.feed_forward;
  }

  /// A run that could not have been.
  void check_sizes() {
    const double devices = 1.0 * run_.tensor * run_.data * run_.pipeline * run_.context;
    if (devices != run_.gpus)
      fault("gpus",
            fmt::format("is {}, but tp {} × dp {} × pp {}{} are {:.0f} devices", run_.gpus,
                        run_.tensor, run_.data, run_.pipeline,
                        run_.context > 1 ? fmt::format(" × cp {}", run_.context) : "", devices));
    cut_layers();
    divides("heads", run_.heads, "tp", run_.tensor);
    divides("heads", run_.heads, "kv_heads", run_.kv_heads);
    if (run_.hidden % run_.heads != 0 && !header_.place("head_channels"))
      divides("hidden", run_.hidden, "heads", run_.heads);
    divides("seq", run_.sequence, "cp", run_.context);
    divides("devices of dp and cp", run_.data * run_.context, "ep", run_.expert);
    if (run_.experts > 0)
      divides("experts", run_.experts, "ep", run_.expert);
    if (run_.global_batch % run_.data != 0)
      divides("global_batch", run_.global_batch, "dp", run_.data);
    else
      divides("samples of a pipeline", run_.global_batch / run_.data, "micro_batch",
              run_.microbatch);
    if (faults_.size() == before_)
      check_count();
    check_chunks();
  }

  /// Where nothing divides the layers, the embedding and the head may count as one each, as with
  /// Megatron-LM's --account-for-embedding-in-pipeline-split and
  /// --account-for-loss-in-pipeline-split.
  void cut_layers() {
    const int stages = run_.stages(), of_stage = (run_.layers + 2) / stages;
    if (run_.layers % stages != 0 && (run_.layers + 2) % stages == 0 && of_stage > 1) {
      run_.stage_layers.assign(static_cast<std::size_t>(stages), of_stage);
      --run_.stage_layers.front();
      --run_.stage_layers.back();
      return;
    }
    divides("layers", run_.layers, "pp", run_.pipeline);
    if (run_.chunks > 1 && run_.layers % run_.pipeline == 0)
      divides("layers of a rank", run_.layers / run_.pipeline, "chunks", run_.chunks);
  }

  /// The simulator times each pass of each microbatch.
  void check_count() {
    constexpr double most = 200'000;
    const double passes = 1.0 * run_.pipeline * run_.chunks * run_.microbatches();
    if (passes > most)
      fault("global_batch",
            fmt::format("is {}: {} microbatches on {} stages are more than the {:.0f} "
                        "passes that can be timed",
                        run_.global_batch, run_.microbatches(), run_.pipeline * run_.chunks, most));
  }

  void check_chunks() {
    if (run_.chunks == 1 || run_.global_batch % (1L * run_.data * run_.microbatch) != 0)
      return;
    if (run_.pipeline == 1)
      fault("chunks", fmt::format("is {}, but one stage alone has no chunks", run_.chunks));
    else if (run_.microbatches() % run_.pipeline != 0)
      fault("chunks", fmt::format("is {}: interleaved stages need a multiple of pp {} "
                                  "microbatches, not {}",
                                  run_.chunks, run_.pipeline, run_.microbatches()));
  }

  void divides(const char* what, int whole, const char* column, int part) {
    if (whole % part != 0)
      fault(column, fmt::format("is {}, which does not divide {} {}: {} would", part, what, whole,
                                divisors_near(whole, part)));
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
  TrainingRun run_;
};

}  // namespace

double TrainingRun::expert_parameters() const {
  if (experts == 0)
    return 0;
  const double sparse = std::max(0.0, 1 - 1.0 * dense_layers / layers);
  return sparse * (gated ? 3.0 : 2.0) * hidden * expert_feed_forward * experts;
}

double TrainingRun::layer_parameters() const {
  const double h = hidden, d = head_channels, a = heads;
  const double projections = kv_rank > 0 ? h * (q_rank + kv_rank + rope_channels) +
                                               q_rank * a * (d + rope_channels) +
                                               kv_rank * a * 2 * d + a * d * h
                                         : h * d * (2.0 * a + 2.0 * kv_heads);
  const double matrices = gated ? 3 : 2;
  const double dense = experts == 0 ? 1 : std::min(1.0, 1.0 * dense_layers / layers);
  const double shared = 1.0 * shared_experts * expert_feed_forward + experts / matrices;
  const double always = dense * feed_forward + (1 - dense) * shared;
  return projections + matrices * h * always + expert_parameters() + (gated ? 2 * h : 13 * h);
}

double TrainingRun::embedding_parameters() const {
  return (1.0 * vocabulary + (gated ? 0 : sequence)) * hidden;
}

double TrainingRun::head_parameters() const { return 1.0 * vocabulary * hidden; }

RunTable read_runs(std::string_view csv, const std::string& name, RunTimes times) {
  std::vector<std::string> faults;
  const auto lines = csv_lines(csv, name, faults);
  if (lines.empty())
    throw InputError(name + ": is empty: a header and a line for each run are needed");
  const Header header(lines.front(), name, times, faults);
  if (!faults.empty())
    throw InputError(listed_lines(faults));
  RunTable table{.runs = {}, .ignored = header.ignored()};
  for (std::size_t at = 1; at < lines.size(); ++at)
    table.runs.push_back(RowReader(header, lines[at], name, faults).read(times));
  if (table.runs.empty())
    faults.push_back(name + ": has a header and no runs");
  if (!faults.empty())
    throw InputError(listed_lines(faults));
  return table;
}

RunTable read_runs(const std::filesystem::path& file, RunTimes times) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream || std::filesystem::is_directory(file))
    throw InputError(fmt::format("{}: cannot be read: {}", file.string(),
                                 stream ? "it is a folder" : std::strerror(errno)));
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  return read_runs(text, file.string(), times);
}

}  // namespace pipewright::plan
