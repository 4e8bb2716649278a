#include <charconv>
#include <map>
#include <numeric>

#include "commands/commands.hpp"
#include "exit_code.hpp"
#include "options/partition_options.hpp"
#include "pipewright/loop/record/model_file.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/partitioners/constrained_partition.hpp"
#include "pipewright/plan/partitioners/layer_weights.hpp"
#include "pipewright/plan/partitioners/layout.hpp"
#include "print/console.hpp"
#include "print/plan_table.hpp"

namespace pipewright::cli {
namespace {

plan::LayerCosts read_costs(const PartitionOptions& options) {
  return plan::layer_costs_from_json(plan::JsonDocument::read(options.costs));
}

std::vector<double> weights_of(const PartitionOptions& options) {
  if (!options.weights.empty())
    return options.weights;
  const auto pattern = plan::type_pattern(options.method);
  if (!options.costs.empty() && !pattern)
    return options.method == "parameters" ? plan::parameter_weights(read_costs(options))
                                          : plan::profile_weights(read_costs(options));
  if (options.model.empty())
    throw plan::InputError(
        pattern ? "--method type:REGEX needs the types of layers: give --model"
                : "nothing to partition: give --weights, --model, --costs, --layers, --layout or "
                  "--profile");
  if (pattern)
    return plan::type_weights(loop::read_model(options.model), *pattern);
  if (options.method == "profile")
    throw plan::InputError(
        "--method profile needs measured costs: give --costs (pipewright profile makes them), or "
        "use --method parameters");
  return plan::parameter_weights(loop::read_model(options.model));
}

/// Parses "A-B": the layers A to B.
plan::LayerRange range_from(const std::string& text) {
  plan::LayerRange range;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, range.begin);
  if (first.ec == std::errc{} && first.ptr != end && *first.ptr == '-') {
    const auto last = std::from_chars(first.ptr + 1, end, range.end);
    if (last.ec == std::errc{} && last.ptr == end && range.begin <= range.end)
      return {range.begin, range.end + 1};
  }
  throw plan::InputError(
      fmt::format("--together {}: write the first and the last layer, such as 3-5", text));
}

using StageMemory = std::function<plan::Bytes(int stage, plan::LayerRange layers)>;

StageMemory listed_memory(const std::vector<std::int64_t>& bytes, std::size_t layers) {
  if (bytes.size() != layers)
    throw plan::InputError(
        fmt::format("--memory lists {} layers, but there are {}", bytes.size(), layers));
  for (std::size_t layer = 0; layer < layers; ++layer)
    if (bytes[layer] < 0)
      throw plan::InputError(fmt::format("--memory: layer {} needs {} bytes: it must be at least 0",
                                         layer, bytes[layer]));
  return [bytes](int, plan::LayerRange range) {
    return plan::Bytes{
        std::accumulate(bytes.begin() + range.begin, bytes.begin() + range.end, std::int64_t{0})};
  };
}

/// Returns the memory of stages. Under 1F1B stage s of S keeps min(M, S - s) microbatches; with
/// several chunks per rank that is more than the interleaved schedule keeps.
StageMemory measured_memory(const plan::LayerCosts& costs, int stages, int microbatches) {
  auto known = std::make_shared<std::map<std::pair<int, int>, plan::StageCost>>();
  return [=](int stage, plan::LayerRange range) {
    const auto [at, is_new] = known->try_emplace({range.begin, range.end});
    if (is_new) {
      std::vector<int> boundaries{0};
      for (const int border : {range.begin, range.end, static_cast<int>(costs.layers.size())})
        if (border > boundaries.back())
          boundaries.push_back(border);
      at->second = plan::stage_costs(costs, plan::Partition{boundaries})[range.begin > 0];
    }
    return plan::stage_memory(at->second, std::min(microbatches, stages - stage));
  };
}

StageMemory memory_of(const PartitionOptions& options, std::size_t layers) {
  if (!options.memory.empty())
    return listed_memory(options.memory, layers);
  if (options.costs.empty() || options.microbatches < 1)
    throw plan::InputError(
        "--memory-cap needs --memory (the bytes of each layer), or --costs with --microbatches");
  return measured_memory(read_costs(options), options.parts, options.microbatches);
}

plan::PartitionRequest request_of(const PartitionOptions& options, std::vector<double> weights) {
  plan::PartitionRequest request;
  request.weights = std::move(weights);
  request.stages = options.parts;
  request.first = options.first;
  request.last = options.last;
  request.borders = options.borders;
  for (const std::string& text : options.together)
    request.together.push_back(range_from(text));
  if (options.tied_together) {
    if (options.model.empty())
      throw plan::InputError("--tied-together needs to know which layers are tied: give --model");
    const auto tied = plan::tied_ranges(loop::read_model(options.model));
    request.together.insert(request.together.end(), tied.begin(), tied.end());
  }
  if (options.chunks < 1)
    throw plan::InputError(fmt::format("--chunks {}: at least 1 is needed", options.chunks));
  if (options.parts % options.chunks != 0)
    throw plan::InputError(
        fmt::format("{} parts cannot be {} on each rank: use a multiple of {}, or other --chunks",
                    options.parts, options.chunks, options.chunks));
  request.ranks = options.parts / options.chunks;
  if (options.memory_cap) {
    request.memory_cap = plan::Bytes{*options.memory_cap};
    request.memory = memory_of(options, request.weights.size());
  }
  return request;
}

bool is_constrained(const PartitionOptions& options) {
  return options.first || options.last || !options.borders.empty() || !options.together.empty() ||
         options.tied_together || options.memory_cap || options.chunks != 1;
}

std::vector<int> boundaries_of(const PartitionOptions& options,
                               const std::vector<double>& weights) {
  if (!is_constrained(options))
    return plan::boundaries_by(options.method, weights, options.parts);
  const bool uniform = options.method == "uniform";
  return plan::constrained_boundaries(
      request_of(options, uniform ? std::vector<double>(weights.size(), 1.0) : weights));
}

/// Returns the layout of a model if all its layers have letters.
std::optional<std::string> layout_text(const PartitionOptions& options,
                                       const std::vector<int>& boundaries) {
  if (options.model.empty())
    return {};
  const plan::Model model = loop::read_model(options.model);
  if (!plan::find_layout_letters(model))
    return {};
  return to_string(plan::layout_of(model, boundaries));
}

/// Throws if costs, which give the weights, and a model, which gives kinds and ties, have different
/// numbers of layers.
void check_same_layers(const PartitionOptions& options, std::size_t layers) {
  if (options.model.empty())
    return;
  const std::size_t in_model = loop::read_model(options.model).layers.size();
  if (in_model != layers)
    throw plan::InputError(
        fmt::format("the costs are for {} layers, but the model has {}", layers, in_model));
}

int print_balanced(const PartitionOptions& options) {
  const auto weights = weights_of(options);
  check_same_layers(options, weights.size());
  const auto boundaries = boundaries_of(options, weights);
  const auto sums = sums_of(weights, boundaries);
  const auto layout = layout_text(options, boundaries);
  if (options.json) {
    plan::Json answer{{"boundaries", boundaries}, {"sums", sums}};
    if (layout)
      answer["layout"] = *layout;
    fmt::print("{}\n", answer.dump(2));
    return Done;
  }
  fmt::print("{}\n", plan::to_string(boundaries));
  if (layout)
    fmt::print("layout {}\n", *layout);
  for (std::size_t part = 0; part < sums.size(); ++part)
    if (boundaries[part] == boundaries[part + 1])
      fmt::print("part {}: empty\n", part);
    else
      fmt::print("part {}: items {} to {}, weight {:.6g}\n", part, boundaries[part],
                 boundaries[part + 1] - 1, sums[part]);
  return Done;
}

void check_method(const std::string& method) {
  try {
    plan::check_partition_method(method);
  } catch (const plan::InputError& error) {
    throw plan::InputError(fmt::format("--method: {}", error.what()));
  }
}

/// Throws if constraints are given that would be ignored.
void check_unconstrained(const PartitionOptions& options, const char* what) {
  auto others = options;
  if (options.objective == "makespan")
    others.memory_cap.reset();
  if (is_constrained(others))
    throw plan::InputError(
        fmt::format("{} cannot be combined with constraints such as --first or --together", what));
}

int partition(const PartitionOptions& options) {
  if (!options.layout.empty()) {
    check_unconstrained(options, "--layout");
    return print_layout(options);
  }
  if (!options.profile.empty()) {
    check_unconstrained(options, "--profile");
    return print_replicated(options);
  }
  if (options.parts < 1)
    throw plan::InputError("--parts: at least 1 is needed");
  check_method(options.method);
  if (options.layers != 0) {
    check_unconstrained(options, "--layers");
    return print_layer_split(options);
  }
  if (options.objective == "makespan") {
    check_unconstrained(options, "--objective makespan");
    return print_fastest(options);
  }
  return print_balanced(options);
}

// ---- options ------------------------------------------------------------------------------------

std::vector<Option> subject_options(PartitionOptions& options) {
  return {
      {.names = "--method",
       .target = &options.method,
       .help = "The weight of layers: profile, parameters, uniform or type:REGEX",
       .suggestions = {"profile", "parameters", "uniform", "type:"},
       .shows_default = true},
      {.names = "--parts", .target = &options.parts, .help = "Number of parts"},
      {.names = "--weights",
       .target = &options.weights,
       .help = "The weight of each item",
       .separator = ',',
       .excludes = {"--model", "--costs"}},
      {.names = "--model",
       .target = &options.model,
       .help = "A model or scenario file",
       .value = "FILE"},
      {.names = "--costs",
       .target = &options.costs,
       .help = "A file of measured layer costs",
       .value = "FILE"},
      {.names = "--layout",
       .target = &options.layout,
       .help = "Megatron's layout, such as \"Et*3|(tt|)*29,m|L\"",
       .excludes = {"--weights", "--costs", "--profile"}},
      {.names = "--profile",
       .target = &options.profile,
       .help = "A PipeDream profile (CSV) to partition among --machines",
       .value = "FILE",
       .excludes = {"--weights", "--costs", "--model"}},
      {.names = "--layers",
       .target = &options.layers,
       .help = "Partition this many equal layers",
       .excludes = {"--weights", "--costs", "--model", "--layout", "--profile"}},
      {.names = "--input-weight",
       .target = &options.input_weight,
       .help = "Weight of the input in layers",
       .needs = {"--layers"}},
      {.names = "--output-weight",
       .target = &options.output_weight,
       .help = "Weight of the output in layers",
       .needs = {"--layers"}},
      {.names = "--machines",
       .target = &options.machines,
       .help = "Number of machines of each level, innermost first",
       .separator = ',',
       .needs = {"--profile"}},
      {.names = "--bandwidth",
       .target = &options.bandwidth,
       .help = "Bandwidth of each level in bytes per second",
       .separator = ',',
       .needs = {"--profile"}},
      {.names = "--straight",
       .target = &options.straight,
       .help = "Use one machine per stage, without replicas",
       .needs = {"--profile"}},
      {.names = "--count-transfers",
       .target = &options.count_transfers,
       .help = "Balance the time of transfers as well as that of stages",
       .needs = {"--profile"}},
  };
}

std::vector<Option> constraint_options(PartitionOptions& options) {
  return {
      {.names = "--first", .target = &options.first, .help = "Number of layers of the first part"},
      {.names = "--last", .target = &options.last, .help = "Number of layers of the last part"},
      {.names = "--fixed-boundaries",
       .target = &options.borders,
       .help = "End a part before each of these layers",
       .separator = ','},
      {.names = "--together",
       .target = &options.together,
       .help = "Keep layers A-B in one part; may be repeated",
       .separator = ','},
      {.names = "--tied-together",
       .target = &options.tied_together,
       .help = "Keep tied layers in one part"},
      {.names = "--chunks",
       .target = &options.chunks,
       .help = "Number of parts on each rank, placed in a loop",
       .shows_default = true},
      {.names = "--memory-cap",
       .target = &options.memory_cap,
       .help = "Maximum number of bytes per rank",
       .numbers = Numbers::Positive},
      {.names = "--memory",
       .target = &options.memory,
       .help = "The bytes that each layer needs",
       .separator = ','},
  };
}

std::vector<Option> objective_options(PartitionOptions& options) {
  return {
      {.names = "--objective",
       .target = &options.objective,
       .help = "balance: equal weights; makespan: the shortest simulated iteration",
       .choices = {"balance", "makespan"},
       .shows_default = true},
      {.names = "--schedule",
       .target = &options.schedule,
       .help = "The schedule for makespan",
       .suggestions = plan::schedule_names(),
       .shows_default = true},
      {.names = "--microbatches",
       .target = &options.microbatches,
       .help = "Number of microbatches, for makespan and memory"},
      {.names = "--cluster",
       .target = &options.cluster,
       .help = "A cluster file for makespan",
       .value = "FILE"},
      {.names = "--json", .target = &options.json, .help = "Print one JSON document"},
  };
}

Command describe(PartitionOptions& options) {
  std::vector<Option> all;
  for (auto* const part : {subject_options, constraint_options, objective_options})
    for (Option& option : part(options))
      all.push_back(std::move(option));
  return {.name = "partition",
          .summary = "Partition layers into parts such that the heaviest is as light as possible",
          .options = std::move(all),
          .examples =
              "Examples: pipewright partition --parts 2 --weights 3,1,2\n"
              "          pipewright partition --method parameters --parts 2 --model "
              "scenarios/alexnet-cifar10/scenario.json\n"
              "          pipewright partition --objective makespan --parts 4 --microbatches 8 "
              "--costs costs.json\n"
              "          pipewright partition --profile vgg16.csv --machines 4 --bandwidth 1e9"};
}

}  // namespace

Command partition_command() { return make_command(describe, partition); }

}  // namespace pipewright::cli
