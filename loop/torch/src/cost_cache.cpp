#include "pipewright/loop_torch/cost_cache.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "pipewright/exec/checkpoint/crc32c.hpp"
#include "pipewright/exec/checkpoint/dtype.hpp"
#include "pipewright/exec/cpu/cpu_branch.hpp"
#include "pipewright/exec/training/optimizer.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/profiler/profile/profile.hpp"

namespace pipewright::loop {
namespace {

namespace fs = std::filesystem;

constexpr const char* format_of_entry = "pipewright/cached-costs/1";

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Returns a checksum of the processor's feature flags.
std::string features_of_cpu() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("flags") || line.starts_with("Features"))
      return fmt::format("{:08x}", exec::crc32c(line.data(), line.size()));
  return "";
}

/// Returns a checksum of the running program, because a program with other layers has other costs.
std::string program() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  return fmt::format("{:08x}", exec::crc32c(bytes.data(), bytes.size()));
}

std::string today() { return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))); }

/// Returns the costs of one layer as a document.
plan::Json document_of(const plan::LayerCost& cost) {
  plan::LayerCosts costs;
  costs.layers = {cost};
  costs.loss.name = "none";
  return to_json(costs);
}

}  // namespace

fs::path cache_folder() {
  if (const std::string home = variable("XDG_CACHE_HOME"); !home.empty())
    return fs::path(home) / "pipewright";
  if (const std::string home = variable("HOME"); !home.empty())
    return fs::path(home) / ".cache" / "pipewright";
  return {};
}

plan::Json facts_of_costs(const plan::Scenario& scenario, const Workload& workload,
                          int busy_cores) {
  const exec::TrainingSetup& setup = workload.setup();
  const plan::ProfileSettings& profile = scenario.profile;
  return {
      {"version", PIPEWRIGHT_VERSION},
      {"program", program()},
      {"software", std::string("LibTorch ") + TORCH_VERSION},
      {"cpu", profiler::cpu_name()},
      {"cpu_features", features_of_cpu()},
      {"cpu_branch", exec::cpu_branch_in_words()},
      {"cores", std::thread::hardware_concurrency()},
      {"busy_cores", busy_cores},
      {"dtype", exec::word_of(setup.precision)},
      {"optimizer", exec::name_of(setup.optimizer)},
      {"fp32_gradients", setup.optimizer.fp32_gradients},
      {"microbatch_size", setup.microbatch_size},
      {"tensor", scenario.pipeline.tensor},
      {"tensor_groups", setup.tensor_groups},
      {"local_transfer", plan::to_string(scenario.pipeline.local_transfer)},
      {"profile", {profile.warm_up, profile.least_repeats, profile.most_repeats, profile.spread}}};
}

CostCache::CostCache(fs::path folder, plan::Json about, Say say)
    : folder_(std::move(folder)), about_(std::move(about)), say_(std::move(say)) {}

plan::Json CostCache::key_of(const std::string& alike) const {
  plan::Json key = about_;
  key["layer"] = alike;
  return key;
}

fs::path CostCache::file_of(const plan::Json& key) const {
  const std::string text = key.dump();
  return folder_ / fmt::format("{:08x}.json", exec::crc32c(text.data(), text.size()));
}

void CostCache::say(const std::string& text) const {
  if (say_)
    say_(text);
}

std::optional<CostCache::Entry> CostCache::find(const std::string& alike) const {
  const plan::Json key = key_of(alike);
  const fs::path file = file_of(key);
  std::error_code error;
  if (alike.empty() || !fs::exists(file, error))
    return {};
  try {
    const plan::JsonDocument document = plan::JsonDocument::read(file);
    const plan::Json& entry = document.root();
    if (entry.at("format") != format_of_entry || entry.at("key") != key)
      throw plan::InputError(file.string() + ": measured for another machine, training or version");
    const auto costs = plan::layer_costs_from_json(
        plan::JsonDocument::parse(entry.at("costs").dump(), file.string()));
    return Entry{costs.layers.at(0), entry.at("measured").get<std::string>()};
  } catch (const std::exception& error_of_file) {
    say(fmt::format("ignoring a cached cost: {}", error_of_file.what()));
    return {};
  }
}

void CostCache::keep(const std::string& alike, const plan::LayerCost& cost) {
  if (alike.empty() || !can_write_)
    return;
  const plan::Json key = key_of(alike);
  try {
    fs::create_directories(folder_);
    plan::write_file(file_of(key), plan::Json{{"format", format_of_entry},
                                              {"measured", today()},
                                              {"key", key},
                                              {"costs", document_of(cost)}}
                                           .dump(1) +
                                       "\n");
  } catch (const std::exception& error) {
    can_write_ = false;
    say(fmt::format("costs are not cached: {}", error.what()));
  }
}

}  // namespace pipewright::loop
