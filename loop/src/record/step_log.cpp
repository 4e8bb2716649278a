#include "pipewright/loop/record/step_log.hpp"

#include <cmath>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/timeline/trace.hpp"

namespace pipewright::loop {
namespace {

constexpr std::string_view per_second = "_per_s";
constexpr auto between_timelines = std::chrono::seconds(1);

/// The optional figures of a step, with their keys.
constexpr std::pair<const char*, std::optional<double> StepLine::*> step_figures[]{
    {"learning_rate", &StepLine::learning_rate},
    {"gradient_norm", &StepLine::gradient_norm},
    {"evaluation_loss", &StepLine::evaluation_loss},
    {"mfu", &StepLine::mfu},
    {"bubble", &StepLine::bubble},
    {"peak_bytes", &StepLine::peak_bytes}};

std::map<std::string, double> waiting_of(const plan::Json& json) {
  std::map<std::string, double> waiting;
  const auto found = json.find("waiting_s");
  if (found != json.end() && found->is_object())
    for (const auto& [cause, seconds] : found->items())
      if (seconds.is_number())
        waiting[cause] = seconds.get<double>();
  return waiting;
}

}  // namespace

std::string to_line(const StepLine& step) {
  plan::Json json{{"step", step.step}, {"steps", step.steps}};
  json["loss"] = step.loss;  // JSON null if the loss is not finite
  json["seconds"] = step.seconds;
  json[step.unit + std::string(per_second)] = step.units_per_s;
  for (const auto& [key, member] : step_figures)
    if (step.*member)
      json[key] = *(step.*member);
  if (step.evaluation_loss && step.unit == "tokens")
    json["perplexity"] = std::exp(*step.evaluation_loss);
  if (!step.waiting.empty())
    json["waiting_s"] = step.waiting;
  if (!step.slow.empty())
    json["slow"] = step.slow;
  return json.dump();
}

std::optional<StepLine> parse_step_line(std::string_view line) {
  const plan::Json json = plan::Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return {};
  const auto number = [&](const char* key) -> std::optional<double> {
    const auto found = json.find(key);
    if (found == json.end())
      return {};
    if (found->is_null())
      return std::nan("");
    return found->is_number() ? std::optional<double>(found->get<double>()) : std::nullopt;
  };
  const auto whole = [&](const char* key) -> std::optional<int> {
    const auto found = number(key);
    if (!found || !(*found >= 0 && *found < 2e9))
      return {};
    return static_cast<int>(*found);
  };
  const auto step = whole("step"), steps = whole("steps");
  const auto loss = number("loss"), seconds = number("seconds");
  if (!step || !steps || !loss || !seconds)
    return {};
  StepLine read{*step, *steps, *loss, *seconds, 0, {}};
  for (const auto& [key, member] : step_figures)
    read.*member = number(key);
  read.waiting = waiting_of(json);
  if (const auto slow = json.find("slow"); slow != json.end() && slow->is_string())
    read.slow = slow->get<std::string>();
  for (const auto& [key, value] : json.items())
    if (key.ends_with(per_second) && value.is_number()) {
      read.unit = key.substr(0, key.size() - per_second.size());
      read.units_per_s = value.get<double>();
    }
  return read;
}

StepLog::StepLog(std::filesystem::path folder)
    : folder_(std::move(folder)), lines_(folder_ / "steps.jsonl", std::ios::app) {}

void StepLog::add(const StepLine& step) {
  // Writes the line in one piece, so that a concurrent reader sees whole lines.
  lines_ << to_line(step) + "\n" << std::flush;
}

void StepLog::show(const std::function<plan::Timeline()>& timeline) {
  const auto now = std::chrono::steady_clock::now();
  if (shown_ && now - *shown_ < between_timelines)
    return;
  shown_ = now;
  const std::string trace = plan::to_trace(timeline());
  try {
    plan::write_file(folder_ / "last_step.trace.json", trace);
  } catch (const std::runtime_error&) {
    // A full disk must not end the training; the file only shows progress.
  }
}

void StepLog::end() {
  std::error_code failure;
  std::filesystem::remove(folder_ / "last_step.trace.json", failure);
}

std::vector<StepLine> StepReader::next() {
  std::vector<StepLine> steps;
  std::ifstream stream(file_, std::ios::binary);
  if (!stream)
    return steps;
  stream.seekg(0, std::ios::end);
  const auto size = static_cast<std::uintmax_t>(stream.tellg());
  if (size < read_)
    read_ = 0;  // The file was rewritten from its beginning.
  std::string text(size - read_, '\0');
  stream.seekg(static_cast<std::streamoff>(read_));
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    if (auto step = parse_step_line(std::string_view(text).substr(begin, end - begin)))
      steps.push_back(std::move(*step));
  read_ += begin;
  return steps;
}

}  // namespace pipewright::loop
