#include "checkpoint/names.hpp"

#include <fmt/format.h>

#include <regex>

namespace pipewright::exec {

std::string step_name(std::int64_t step) { return fmt::format("step_{:08}", step); }

std::string unfinished_name(std::int64_t step, const std::string& job) {
  return fmt::format("{}.{}.tmp", step_name(step), job);
}

namespace {

constexpr const char* retired = ".old";

}  // namespace

std::string retired_job(const std::string& job) { return job + retired; }

bool StepFolder::is_retired() const { return job.ends_with(retired); }

std::optional<StepFolder> parse_step_name(const std::string& name) {
  static const std::regex pattern(R"(step_(\d{8,18})(\.(.+)\.tmp)?)");
  std::smatch match;
  if (!std::regex_match(name, match, pattern))
    return {};
  return StepFolder{.step = std::stoll(match[1]), .job = match[3]};
}

std::string file_name(Holds holds, int layer, std::optional<int> part, int before) {
  return fmt::format("{}_{:03}{}{}.safetensors", holds == Holds::Parameters ? "layer" : "optimizer",
                     layer, part ? fmt::format("-part{:03}", *part) : "",
                     before > 0 ? fmt::format("-{}", before) : "");
}

std::string part_name(int part) { return fmt::format("part_{:03}.json", part); }

}  // namespace pipewright::exec
