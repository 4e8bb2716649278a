#include "pipewright/gui/panels/plan_fields.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <QRegularExpression>
#include <QStringList>
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "pipewright/plan/generators/schedule_catalogue.hpp"
#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::gui {
namespace {

using Unit = PlanField::Unit;

struct Scale {
  const char* name;
  double size;
};

/// The largest first.
std::vector<Scale> scales_of(Unit unit) {
  switch (unit) {
    case Unit::Bandwidth:
      return {{"TB/s", 1e12}, {"GB/s", 1e9}, {"MB/s", 1e6}, {"kB/s", 1e3}, {"B/s", 1}};
    case Unit::Bytes:
      return {{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1}};
    case Unit::Time:
      return {{"s", 1}, {"ms", 1e-3}, {"µs", 1e-6}, {"ns", 1e-9}};
    case Unit::Factor:
      return {{"×", 1}};
    case Unit::Count:
    case Unit::CountOrAuto:
      break;
  }
  return {};
}

/// What a value of 0 is called; null: 0.
const char* zero_words(Unit unit) {
  switch (unit) {
    case Unit::CountOrAuto:
      return "auto";
    case Unit::Bytes:
      return "no limit";
    case Unit::Time:
      return "0 µs";
    case Unit::Bandwidth:
    case Unit::Factor:
    case Unit::Count:
      break;
  }
  return nullptr;
}

QString four_figures(double value) { return QString::fromStdString(fmt::format("{:.4g}", value)); }

/// 1, 1.25, 1.6, 2, … in each power of ten (Renard's R10).
constexpr std::array<double, 10> renard{1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.3, 8};

std::vector<double> decades(int first, int last) {
  std::vector<double> values;
  for (int decade = first; decade < last; ++decade)
    for (const double step : renard)
      values.push_back(step * std::pow(10.0, decade));
  values.push_back(std::pow(10.0, last));
  return values;
}

/// Each number up to 16, then eight in each doubling.
std::vector<double> counts(double least, double most) {
  std::vector<double> values;
  double step = 1;
  for (double value = least; value <= most; value += step) {
    values.push_back(value);
    if (value >= 16 && std::exp2(std::round(std::log2(value))) == value)
      step = value / 8;
  }
  return values;
}

QString words_of(const plan::Json& json) {
  return json.is_string() ? QString::fromStdString(json.get<std::string>())
                          : QString::fromStdString(json.dump());
}

/// A field's label and value as the panel has them, or else as the file does.
void compare(const plan::Json& before, const plan::Json& after, const std::string& name,
             std::vector<QString>& changes, const plan::Scenario& old_scenario,
             const plan::Scenario& scenario) {
  if (before == after)
    return;
  if (before.is_object() && after.is_object()) {
    for (const auto& [key, value] : after.items())
      compare(before.contains(key) ? before.at(key) : plan::Json(), value,
              name.empty() ? key : name + "." + key, changes, old_scenario, scenario);
    for (const auto& [key, value] : before.items())
      if (!after.contains(key))
        compare(value, plan::Json(), name.empty() ? key : name + "." + key, changes, old_scenario,
                scenario);
    return;
  }
  if (const PlanField* field = find_plan_field(name)) {
    changes.push_back(QString("%1 %2 → %3")
                          .arg(QString::fromUtf8(field->label),
                               value_words(field->unit, field->value(old_scenario)),
                               value_words(field->unit, field->value(scenario))));
    return;
  }
  if (name == "cluster.rank_speeds") {
    for (int rank = 0; rank < scenario.pipeline.ranks; ++rank)
      if (speed_of(old_scenario, rank) != speed_of(scenario, rank))
        changes.push_back(QString("Speed, rank %1 %2 → %3")
                              .arg(rank)
                              .arg(value_words(Unit::Factor, speed_of(old_scenario, rank)),
                                   value_words(Unit::Factor, speed_of(scenario, rank))));
    return;
  }
  QString label = QString::fromStdString(name);
  const PlanChoice* choice = nullptr;
  for (const PlanChoice& candidate : plan_choices())
    if (name == candidate.name) {
      choice = &candidate;
      label = candidate.label;
    }
  const auto side = [&](const plan::Json& json) {
    const QString value = json.is_null() ? QString("none") : words_of(json);
    if (choice != nullptr)
      for (const PlanChoice::Option& option : choice->options)
        if (value.toStdString() == option.value)
          return option.words;
    return value;
  };
  changes.push_back(QString("%1 %2 → %3").arg(label, side(before), side(after)));
}

std::vector<PlanChoice::Option> schedule_options() {
  std::vector<PlanChoice::Option> options;
  for (const plan::ScheduleDescriptor& schedule : plan::schedules()) {
    QStringList help;
    if (!schedule.takes.empty())
      help << "Takes " + QString::fromStdString(schedule.takes) + ".";
    if (!schedule.bubble.words.empty())
      help << "Bubble: " + QString::fromStdString(schedule.bubble.words);
    if (!schedule.activations.words.empty())
      help << "Microbatches kept: " + QString::fromStdString(schedule.activations.words);
    if (schedule.orders_by_times)
      help << "Searches for its order: seconds for large sizes.";
    options.push_back({schedule.name, QString::fromStdString(schedule.name), help.join('\n')});
  }
  return options;
}

std::string partition_of(const plan::Scenario& scenario) {
  const auto* method = std::get_if<std::string>(&scenario.pipeline.partition);
  return method != nullptr ? *method : "";
}

}  // namespace

const std::vector<PlanField>& plan_fields() {
  static const std::vector<PlanField> fields{
      {"pipeline.ranks", "Pipeline", "Ranks",
       "Devices in a row. Each holds its share of the layers and hands activations on to the next.",
       Unit::Count, [](const plan::Scenario& s) -> double { return s.pipeline.ranks; }},
      {"pipeline.microbatches", "Pipeline", "Microbatches",
       "Into how many parts a step's batch is cut. More of them fill the pipeline better: its "
       "ramps stay as long while the step grows.",
       Unit::Count, [](const plan::Scenario& s) -> double { return s.pipeline.microbatches; }},
      {"pipeline.chunks", "Pipeline", "Stages per rank",
       "Several smaller stages on each rank (virtual stages, chunks) shorten the ramps and send "
       "more. auto: as few as the schedule can have.",
       Unit::CountOrAuto, [](const plan::Scenario& s) -> double { return s.pipeline.chunks; }},
      {"pipeline.replicas", "Pipeline", "Replicas",
       "Pipelines side by side on other data, which sum their gradients in each step.", Unit::Count,
       [](const plan::Scenario& s) -> double { return s.pipeline.replicas; }},
      {"training.microbatch_size", "Work", "Microbatch size",
       "Samples in one microbatch. Times and activations grow with it.", Unit::Count,
       [](const plan::Scenario& s) -> double { return s.training.microbatch_size; }},
      {"cluster.within_node.bandwidth_per_s", "Cluster", "Bandwidth, node",
       "Of a link between ranks of one node, in bytes per second.", Unit::Bandwidth,
       [](const plan::Scenario& s) { return s.cluster.within_node.bandwidth_per_s; }},
      {"cluster.within_node.latency_s", "Cluster", "Latency, node",
       "Before the first byte arrives, between ranks of one node.", Unit::Time,
       [](const plan::Scenario& s) { return s.cluster.within_node.latency.value; }},
      {"cluster.between_nodes.bandwidth_per_s", "Cluster", "Bandwidth, net",
       "Of a link between nodes, in bytes per second.", Unit::Bandwidth,
       [](const plan::Scenario& s) { return s.cluster.between_nodes.bandwidth_per_s; }},
      {"cluster.between_nodes.latency_s", "Cluster", "Latency, net",
       "Before the first byte arrives, between nodes.", Unit::Time,
       [](const plan::Scenario& s) { return s.cluster.between_nodes.latency.value; }},
      {"cluster.device.memory_bytes", "Cluster", "Device memory",
       "Of each device. A plan that needs more is refused, with the change that would fit.",
       Unit::Bytes,
       [](const plan::Scenario& s) { return static_cast<double>(s.cluster.device.memory.value); }},
  };
  return fields;
}

const PlanField* find_plan_field(const std::string& name) {
  const auto& fields = plan_fields();
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const PlanField& field) { return field.name == name; });
  return found == fields.end() ? nullptr : &*found;
}

const std::vector<PlanChoice>& plan_choices() {
  static const std::vector<PlanChoice> choices{
      {"pipeline.schedule", "Pipeline", "Schedule",
       "In which order a rank runs forwards and backwards.", schedule_options(),
       [](const plan::Scenario& s) { return s.pipeline.schedule; }},
      {"pipeline.partition",
       "Pipeline",
       "Partition",
       "How layers are cut into stages. Drag a border in the Partition view to choose it by hand.",
       {{"profile", "balanced by time", "Each stage takes as equal a time as layers allow."},
        {"parameters", "balanced by parameters", "Each stage holds as equally many parameters."},
        {"uniform", "equally many layers", "Each stage has as equally many layers."}},
       partition_of},
      {"training.recompute",
       "Work",
       "Recomputation",
       "What a backward computes again instead of keeping it: less memory, more time.",
       {{"none", "none", "Keeps all activations."},
        {"selective", "selective", "Runs the attention core again: much memory for little time."},
        {"full", "full", "Keeps each layer's input alone and runs its forward again."}},
       [](const plan::Scenario& s) { return plan::to_string(s.training.recompute); }},
      {"training.zero",
       "Work",
       "ZeRO",
       "Whether the optimizer's state is divided among the replicas.",
       {{"0", "off", "Each replica holds all of the optimizer's state."},
        {"1", "stage 1", "Each replica holds and steps its shard of the optimizer's state."}},
       [](const plan::Scenario& s) { return std::to_string(s.training.zero); }},
      {"training.precision",
       "Work",
       "Precision",
       "In what parameters and gradients are kept.",
       {{"full", "full", "All figures in the type that was measured."},
        {"mixed", "mixed", "2 bytes a parameter and gradient, with a master copy in fp32."}},
       [](const plan::Scenario& s) { return plan::to_string(s.training.precision); }},
      {"training.optimizer",
       "Work",
       "Optimizer",
       "It decides how much state stands beside each parameter.",
       {{"adamw", "AdamW", "Two values for each parameter."},
        {"sgd", "SGD", "No state."},
        {"sgd-momentum", "SGD, momentum", "One value for each parameter."}},
       [](const plan::Scenario& s) { return plan::to_string(s.training.optimizer); }},
  };
  return choices;
}

QString value_words(Unit unit, double value) {
  if (value == 0 && zero_words(unit) != nullptr)
    return zero_words(unit);
  for (const Scale& scale : scales_of(unit))
    if (value >= scale.size * 0.99995)
      return four_figures(value / scale.size) + " " + QString::fromUtf8(scale.name);
  const auto scales = scales_of(unit);
  if (scales.empty())
    return QString::number(value, 'f', 0);
  return four_figures(value / scales.back().size) + " " + QString::fromUtf8(scales.back().name);
}

std::optional<double> read_value(Unit unit, const QString& text, const QString& shown) {
  const QString given = text.simplified();
  if (zero_words(unit) != nullptr && given.compare(zero_words(unit), Qt::CaseInsensitive) == 0)
    return 0;
  static const QRegularExpression number(R"(^([0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)\s*(\D*)$)");
  const auto match = number.match(given);
  if (!match.hasMatch())
    return {};
  const double value = match.captured(1).toDouble();
  if (!std::isfinite(value))
    return {};
  const auto scales = scales_of(unit);
  const auto size_of = [&](QString name) -> std::optional<double> {
    name.replace(QChar(0x03bc), QChar(0x00b5));  // both are written for micro
    if (unit == Unit::Time && name.startsWith('u'))
      name[0] = QChar(0x00b5);
    for (const Scale& scale : scales) {
      const QString whole = QString::fromUtf8(scale.name);
      if (name.compare(whole, Qt::CaseInsensitive) == 0 ||
          name.compare(whole.chopped(whole.endsWith("/s") ? 2 : 0), Qt::CaseInsensitive) == 0 ||
          (whole.contains('B') && whole.size() > 1 && whole[0] != 'B' &&
           name.compare(whole.left(1), Qt::CaseInsensitive) == 0) ||
          (unit == Unit::Factor && name.compare("x", Qt::CaseInsensitive) == 0))
        return scale.size;
    }
    return {};
  };
  const QString written = match.captured(2).trimmed();
  if (!written.isEmpty()) {
    const auto size = size_of(written);
    return size ? std::optional(value * *size) : std::nullopt;
  }
  const auto of_shown = number.match(shown.simplified());
  const auto size = of_shown.hasMatch() ? size_of(of_shown.captured(2).trimmed()) : std::nullopt;
  return value * size.value_or(scales.empty() ? 1 : scales.back().size);
}

std::string assignment_of(const PlanField& field, double value) {
  const bool whole =
      field.unit == Unit::Count || field.unit == Unit::CountOrAuto || field.unit == Unit::Bytes;
  return whole && std::abs(value) < 9e18
             ? fmt::format("{}={}", field.name, static_cast<std::int64_t>(std::llround(value)))
             : fmt::format("{}={}", field.name, value);
}

std::vector<double> slider_values(Unit unit, double now, double most) {
  std::vector<double> values;
  switch (unit) {
    case Unit::Count:
      values = counts(1, most);
      break;
    case Unit::CountOrAuto:
      values = counts(0, most);
      break;
    case Unit::Bandwidth:
      values = decades(6, 13);
      break;
    case Unit::Time:
      values = decades(-8, -1);
      values.insert(values.begin(), 0);
      break;
    case Unit::Bytes:
      values = decades(6, 12);
      values.insert(values.begin(), 0);
      break;
    case Unit::Factor:
      for (int step = 2; step <= 40; ++step)
        values.push_back(step / 20.0);
      break;
  }
  const bool known = std::any_of(values.begin(), values.end(), [&](double value) {
    return std::abs(value - now) <= 1e-9 * std::abs(now);
  });
  if (!known)
    values.insert(std::upper_bound(values.begin(), values.end(), now), now);
  return values;
}

int slider_place(const std::vector<double>& values, double value) {
  const auto after = std::lower_bound(values.begin(), values.end(), value);
  if (after == values.end())
    return static_cast<int>(values.size()) - 1;
  if (after == values.begin())
    return 0;
  const double below = *(after - 1);
  const bool nearer_below =
      below > 0 ? value / below < *after / value : value - below < *after - value;
  return static_cast<int>(after - values.begin()) - (nearer_below ? 1 : 0);
}

double slider_most(const PlanField& field, const plan::Scenario& scenario) {
  const std::string name = field.name;
  const auto layers = static_cast<double>(plan::model_of(scenario).layers.size());
  if (name == "pipeline.ranks")
    return layers;
  if (name == "pipeline.chunks")
    return std::clamp(std::floor(layers / scenario.pipeline.ranks), 2.0, 32.0);
  return name == "pipeline.microbatches" ? 512 : 64;
}

double speed_of(const plan::Scenario& scenario, int rank) {
  const auto& speeds = scenario.cluster.rank_speeds;
  return static_cast<std::size_t>(rank) < speeds.size() ? speeds[static_cast<std::size_t>(rank)]
                                                        : 1;
}

std::string speed_assignment(const plan::Scenario& scenario, int rank, double speed) {
  std::vector<double> speeds = scenario.cluster.rank_speeds;
  speeds.resize(static_cast<std::size_t>(scenario.pipeline.ranks), 1);
  speeds.at(static_cast<std::size_t>(rank)) = speed;
  if (std::all_of(speeds.begin(), speeds.end(), [](double each) { return each == 1; }))
    speeds.clear();
  return fmt::format("cluster.rank_speeds=[{}]", fmt::join(speeds, ","));
}

std::vector<QString> changes_between(const plan::Scenario& before, const plan::Scenario& after) {
  std::vector<QString> changes;
  compare(to_json(before), to_json(after), "", changes, before, after);
  return changes;
}

QString plain_words(const plan::InputError& error) {
  static const QRegularExpression place(R"(^.*?(?:^|\s)/[A-Za-z0-9_/]+: )");
  QStringList lines;
  for (QString line : QString::fromUtf8(error.what()).split('\n', Qt::SkipEmptyParts))
    lines << line.remove(place).trimmed();
  lines.removeDuplicates();
  QString words = lines.join("; ");
  if (!words.isEmpty())
    words[0] = words[0].toUpper();
  return words;
}

}  // namespace pipewright::gui
