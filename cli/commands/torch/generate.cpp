#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "commands/torch/torch_commands.hpp"
#include "exit_code.hpp"
#include "pipewright/engine/models/model_builder.hpp"
#include "pipewright/engine/token_generator.hpp"
#include "pipewright/exec/checkpoint/list_checkpoints.hpp"
#include "pipewright/loop_torch/workload.hpp"
#include "pipewright/plan/error.hpp"
#include "print/console.hpp"

namespace pipewright::cli {
namespace {

/// Parses numbers separated by commas.
engine::Sequence tokens_of(const std::string& text) {
  engine::Sequence tokens;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::int64_t token = 0;
    const auto [stop, fault] = std::from_chars(text.data() + begin, text.data() + end, token);
    if (fault != std::errc() || stop != text.data() + end || token < 0)
      throw plan::InputError(
          fmt::format("--tokens {}: \"{}\" is not a token; give numbers such as 5,11,2", text,
                      text.substr(begin, end - begin)));
    tokens.push_back(token);
    begin = end + 1;
  }
  return tokens;
}

/// Throws InputError if the scenario has axes besides the stages.
void require_stages_only(const plan::Pipeline& pipeline) {
  std::vector<std::string> others, settings;
  for (const auto& [axis, size] :
       {std::pair("replicas", pipeline.replicas), std::pair("tensor", pipeline.tensor),
        std::pair("context", pipeline.context), std::pair("expert", pipeline.expert)})
    if (size > 1) {
      others.push_back(fmt::format("pipeline.{} {}", axis, size));
      settings.push_back(fmt::format("--set pipeline.{}=1", axis));
    }
  if (!others.empty())
    throw plan::InputError(
        fmt::format("generation uses pipeline.ranks only, and cannot use {}. Add {}",
                    fmt::join(others, ", "), fmt::join(settings, " ")));
}

engine::PipelineModule module_of(const plan::Scenario& scenario) {
  const int seed = scenario.training.seed;
  return {engine::builder_of(scenario.model).layers(scenario.model, {.seed = seed}),
          {.topology = plan::pipe_data_topology(scenario.pipeline.ranks, /*data=*/1),
           .base_seed = seed}};
}

plan::Json as_json(const std::vector<engine::Sequence>& prompts,
                   const std::vector<engine::Sequence>& answers) {
  plan::Json all = plan::Json::array();
  for (std::size_t p = 0; p < prompts.size(); ++p)
    all.push_back({{"prompt", prompts[p]}, {"tokens", answers[p]}});
  return {{"sequences", std::move(all)}};
}

}  // namespace

int generate_tokens(const GenerateOptions& options) {
  std::vector<engine::Sequence> prompts;
  for (const std::string& text : options.tokens)
    prompts.push_back(tokens_of(text));
  const plan::Scenario scenario = read_scenario(options.scenario);
  require_stages_only(scenario.pipeline);
  engine::TokenGenerator generator(module_of(scenario),
                                   {.precision = loop::precision_of(scenario.training.precision)});
  if (!options.checkpoints.empty())
    generator.restore(
        exec::open_newest(options.checkpoints, [](const std::string& line) { say(line); }));
  const auto answers = generator.generate(
      prompts, {.new_tokens = options.new_tokens,
                .choice = {.temperature = options.temperature,
                           .top_k = options.top_k,
                           .seed = options.seed.value_or(scenario.training.seed)},
                .stop = options.stop});
  if (options.scenario.json) {
    fmt::print("{}\n", as_json(prompts, answers).dump(2));
    return Done;
  }
  for (const engine::Sequence& answer : answers)
    fmt::print("{}\n", fmt::join(answer, ","));
  return Done;
}

}  // namespace pipewright::cli
