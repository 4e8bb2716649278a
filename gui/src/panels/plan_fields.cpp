#include "pipewright/gui/panels/plan_fields.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <QRegularExpression>
#include <QStringList>
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "pipewright/gui/look/words.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/scenario/scenario_schema.hpp"

namespace pipewright::gui {
namespace {

using Unit = PlanField::Unit;

constexpr const char* rank_speeds = "cluster.rank_speeds";

struct Scale {
  const char* name;
  double size;
};

/// Returns the units, largest first.
std::vector<Scale> scales_of(Unit unit) {
  switch (unit) {
    case Unit::Bandwidth:
      return {{"TB/s", 1e12}, {"GB/s", 1e9}, {"MB/s", 1e6}, {"kB/s", 1e3}, {"B/s", 1}};
    case Unit::Bytes:
      return {{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1}};
    case Unit::Time:
      return {{"s", 1}, {"ms", 1e-3}, {"µs", 1e-6}, {"ns", 1e-9}};
    case Unit::Factor:
    case Unit::Ratio:
      return {{"×", 1}};
    case Unit::Count:
    case Unit::CountOrAuto:
    case Unit::Choice:
      break;
  }
  return {};
}

/// Returns the text for the value 0; null: "0".
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
    case Unit::Ratio:
    case Unit::Count:
    case Unit::Choice:
      break;
  }
  return nullptr;
}

/// Returns the factor of a unit such as "GB/s". Input may omit "/s", ignore case, or consist of the
/// first letter only.
std::optional<double> size_of(Unit unit, QString name) {
  name.replace(QChar(0x03bc), QChar(0x00b5));  // the two Unicode characters for micro
  if (unit == Unit::Time && name.startsWith('u'))
    name[0] = QChar(0x00b5);
  for (const Scale& scale : scales_of(unit)) {
    const QString whole = QString::fromUtf8(scale.name);
    const auto is = [&](const QString& way) { return name.compare(way, Qt::CaseInsensitive) == 0; };
    const bool has_prefix = whole.contains('B') && whole.size() > 1 && whole[0] != 'B';
    if (is(whole) || is(whole.chopped(whole.endsWith("/s") ? 2 : 0)) ||
        (has_prefix && is(whole.left(1))) ||
        ((unit == Unit::Factor || unit == Unit::Ratio) && is("x")))
      return scale.size;
  }
  return {};
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

/// Returns each number up to 16, then eight per doubling.
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

// ---- from the list of scenario fields

/// Follows a field's reference to a definition.
const plan::Json& resolved(const plan::Json& schema, const plan::Json& field) {
  if (const auto ways = field.find("oneOf"); ways != field.end())
    for (const plan::Json& way : *ways)
      if (way.contains("$ref"))
        return resolved(schema, way);
  if (const auto reference = field.find("$ref"); reference != field.end())
    return schema.at(plan::Json::json_pointer(reference->get<std::string>().substr(1)));
  return field;
}

/// Returns the entry of a field such as "pipeline.ranks" in the scenario's JSON Schema. For
/// "cluster.fabric.levels.0.latency_s" it is the entry shared by all levels.
const plan::Json& schema_of(const std::string& name) {
  static const plan::Json schema = plan::Json::parse(plan::scenario_schema());
  const plan::Json* at = &schema;
  for (const QString& key : QString::fromStdString(name).split('.'))
    at = &resolved(schema, at->contains("items") ? at->at("items")
                                                 : at->at("properties").at(key.toStdString()));
  return *at;
}

std::string text_of(const plan::Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Returns all values of a field that has an enumeration, or a minimum and a maximum.
std::vector<std::string> values_of(const plan::Json& field) {
  std::vector<std::string> values;
  if (const auto words = field.find("enum"); words != field.end()) {
    for (const plan::Json& word : *words)
      values.push_back(text_of(word));
  } else if (field.contains("maximum")) {
    for (int value = field.at("minimum").get<int>(); value <= field.at("maximum").get<int>();
         ++value)
      values.push_back(std::to_string(value));
  } else if (const auto ways = field.find("oneOf"); ways != field.end()) {
    for (const plan::Json& way : *ways)
      if (way.contains("enum"))
        return values_of(way);
  }
  return values;
}

// ---- texts for people

struct OptionWords {
  const char* field;
  const char* value;
  const char* words;
  const char* help;
};
constexpr std::array option_words{
    OptionWords{"pipeline.partition", "profile", "balanced by time",
                "The stages take as equal times as the layers allow."},
    OptionWords{"pipeline.partition", "parameters", "balanced by parameters",
                "The stages have as equal numbers of parameters as the layers allow."},
    OptionWords{"pipeline.partition", "uniform", "equally many layers",
                "The stages have as equal numbers of layers as possible."},
    OptionWords{"training.recompute", "none", "none", "Keeps all activations."},
    OptionWords{"training.recompute", "selective", "selective",
                "Recomputes the attention core: saves much memory for little time."},
    OptionWords{"training.recompute", "full", "full",
                "Keeps only each layer's input and recomputes its forward."},
    OptionWords{"training.zero", "0", "off", "Each replica has the whole optimizer state."},
    OptionWords{"training.zero", "1", "stage 1",
                "Each replica has and steps its shard of the optimizer state."},
    OptionWords{"training.zero", "2", "stage 2",
                "Shards the gradients, too: they are reduced microbatch by microbatch."},
    OptionWords{"training.zero", "3", "stage 3",
                "Shards the parameters, too: they are gathered before each use."},
    OptionWords{"training.precision", "full", "full",
                "All numbers have the type that was measured."},
    OptionWords{"training.precision", "mixed", "mixed",
                "2 bytes a parameter and gradient, with a master copy in fp32."},
    OptionWords{"training.optimizer", "adamw", "AdamW", "Two values for each parameter."},
    OptionWords{"training.optimizer", "sgd", "SGD", "No state."},
    OptionWords{"training.optimizer", "sgd-momentum", "SGD, momentum",
                "One value for each parameter."}};

QString schedule_help(const std::string& name) {
  const plan::ScheduleDescriptor& schedule = plan::find_schedule(name);
  QStringList help;
  if (!schedule.takes.empty())
    help << "Takes " + QString::fromStdString(schedule.takes) + ".";
  if (!schedule.bubble.words.empty())
    help << "Bubble: " + QString::fromStdString(schedule.bubble.words);
  if (!schedule.activations.words.empty())
    help << "Microbatches kept: " + QString::fromStdString(schedule.activations.words);
  if (schedule.orders_by_times)
    help << "Searches for its order: seconds for large sizes.";
  return help.join('\n');
}

/// A value without a text here is shown as in the file.
PlanField::Option option_for(const std::string& field, const std::string& value) {
  for (const OptionWords& words : option_words)
    if (field == words.field && value == words.value)
      return {value, words.words, words.help};
  return {value, QString::fromStdString(value),
          field == "pipeline.schedule" ? schedule_help(value) : QString()};
}

/// Returns a value as the panel shows it, or as the file does if the panel has no such field.
QString shown_value(const PlanField* field, const plan::Json& value) {
  if (value.is_null())
    return "none";
  if (field != nullptr && value.is_number() && field->unit != Unit::Choice)
    return value_words(field->unit, value.get<double>());
  if (field != nullptr)
    for (const PlanField::Option& option : field->options)
      if (option.value == text_of(value))
        return option.words;
  return field != nullptr ? other_choice_words(text_of(value))
                          : QString::fromStdString(text_of(value));
}

void add_speed_changes(const plan::Json& before, const plan::Json& after,
                       std::vector<QString>& changes) {
  const auto speed = [](const plan::Json& speeds, std::size_t rank) {
    return value_words(Unit::Factor, rank < speeds.size() ? speeds[rank].get<double>() : 1);
  };
  for (std::size_t rank = 0; rank < std::max(before.size(), after.size()); ++rank)
    if (speed(before, rank) != speed(after, rank))
      changes.push_back(
          QString("Speed, rank %1 %2 → %3").arg(rank).arg(speed(before, rank), speed(after, rank)));
}

/// Returns "Latency, leaf".
QString long_label(const PlanField& field) {
  return field.of.isEmpty() ? field.label : field.label + ", " + field.of;
}

using Fields = std::vector<PlanField>;

const PlanField* find_field(const Fields& fields, const std::string& name) {
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const PlanField& field) { return field.name == name; });
  return found == fields.end() ? nullptr : &*found;
}

bool are_objects(const plan::Json& list) {
  return list.is_array() && !list.empty() && list.front().is_object();
}

/// Adds the change of a field, or of all fields within an object or within a list of unchanged
/// length.
void add_changes(const Fields& fields, const plan::Json& before, const plan::Json& after,
                 const std::string& name, std::vector<QString>& changes) {
  if (before == after)
    return;
  const auto below = [&](const std::string& key) { return name.empty() ? key : name + "." + key; };
  if (are_objects(before) && are_objects(after) && before.size() == after.size()) {
    for (std::size_t at = 0; at < after.size(); ++at)
      add_changes(fields, before[at], after[at], below(std::to_string(at)), changes);
    return;
  }
  if (before.is_object() && after.is_object()) {
    for (const auto& [key, value] : after.items())
      add_changes(fields, before.contains(key) ? before.at(key) : plan::Json(), value, below(key),
                  changes);
    for (const auto& [key, value] : before.items())
      if (!after.contains(key))
        add_changes(fields, value, plan::Json(), below(key), changes);
    return;
  }
  const PlanField* const field = find_field(fields, name);
  if (name == rank_speeds) {
    add_speed_changes(before, after, changes);
    return;
  }
  changes.push_back(QString("%1 %2 → %3")
                        .arg(field != nullptr ? long_label(*field) : QString::fromStdString(name),
                             shown_value(field, before), shown_value(field, after)));
}

std::vector<PlanField> named_fields() {
  return {
      {"pipeline.schedule", "Pipeline", "Schedule", Unit::Choice, ""},
      {"pipeline.ranks", "Pipeline", "Ranks", Unit::Count,
       "Each rank sends its activations to the next one."},
      {"pipeline.microbatches", "Pipeline", "Microbatches", Unit::Count,
       "More microbatches fill the pipeline better: warm-up and cool-down stay as long while the "
       "step grows."},
      {"pipeline.chunks", "Pipeline", "Stages per rank", Unit::CountOrAuto,
       "Several smaller stages on each rank shorten warm-up and cool-down, and send more."},
      {"pipeline.replicas", "Pipeline", "Replicas", Unit::Count,
       "Each data-parallel replica trains on its own samples."},
      {"pipeline.partition", "Pipeline", "Partition", Unit::Choice,
       "Drag a boundary in the Partition view to choose the boundaries by hand."},
      {"training.recompute", "Work", "Recomputation", Unit::Choice,
       "It takes less memory and more time."},
      {"training.zero", "Work", "ZeRO", Unit::Choice, ""},
      {"training.precision", "Work", "Precision", Unit::Choice, ""},
      {"training.optimizer", "Work", "Optimizer", Unit::Choice, ""},
      {"training.microbatch_size", "Work", "Microbatch size", Unit::Count,
       "Times and activations grow with it."},
      {"cluster.within_node.bandwidth_per_s", "Cluster", "Bandwidth, node", Unit::Bandwidth,
       "Between ranks of one node."},
      {"cluster.within_node.latency_s", "Cluster", "Latency, node", Unit::Time,
       "Between ranks of one node."},
      {"cluster.between_nodes.bandwidth_per_s", "Cluster", "Bandwidth, net", Unit::Bandwidth,
       "Between nodes."},
      {"cluster.between_nodes.latency_s", "Cluster", "Latency, net", Unit::Time, "Between nodes."},
      {"cluster.device.memory_bytes", "Cluster", "Device memory", Unit::Bytes,
       "A plan that needs more is rejected, with a change that makes it fit."},
      {rank_speeds, "Speed of a rank", "Speed of the rank", Unit::Factor,
       "A straggler at 0.8 × delays all others."},
  };
}

void add_level_fields(const plan::Cluster& cluster, std::size_t level,
                      std::vector<PlanField>& fields) {
  const plan::LinkLevel& own = cluster.fabric->levels[level];
  const auto name = QString::fromStdString(own.name);
  const std::string path = fmt::format("cluster.fabric.levels.{}.", level);
  const QString group =
      QString("Level %1: joins groups of %2").arg(name, counted(own.group_nodes, "node", "nodes"));
  const auto add = [&](const char* key, const char* label, Unit unit) {
    fields.push_back({path + key, group, label, unit, {}, {}, name});
  };
  add("bandwidth_per_s", "Bandwidth", Unit::Bandwidth);
  add("latency_s", "Latency", Unit::Time);
  add("oversubscription", "Oversubscription", Unit::Ratio);
}

/// Adds the fields of a node kind, whose nodes begin at `first`.
void add_kind_fields(const plan::NodeKind& kind, std::size_t at, int first,
                     std::vector<PlanField>& fields) {
  const auto name = QString::fromStdString(kind.device.name);
  const std::string path = fmt::format("cluster.mixture.kinds.{}.", at);
  const QString nodes = kind.nodes == 1
                            ? QString("Node %1").arg(first)
                            : QString("Nodes %1 to %2").arg(first).arg(first + kind.nodes - 1);
  const auto add = [&](const char* key, const char* label, Unit unit) {
    fields.push_back({path + key, nodes + ": " + name, label, unit, {}, {}, name});
  };
  add("speed", "Speed", Unit::Ratio);
  add("device.memory_bytes", "Device memory", Unit::Bytes);
}

void add_meaning(PlanField& field) {
  const plan::Json& schema = schema_of(field.name);
  const auto meaning = QString::fromStdString(schema.at("description").get<std::string>());
  field.help = (meaning + " " + field.help).trimmed();
  if (field.unit == Unit::Choice)
    for (const std::string& value : values_of(schema))
      field.options.push_back(option_for(field.name, value));
}

}  // namespace

const std::vector<PlanField>& plan_fields() {
  static const std::vector<PlanField> fields = [] {
    std::vector<PlanField> all = named_fields();
    for (PlanField& field : all)
      add_meaning(field);
    return all;
  }();
  return fields;
}

std::vector<PlanField> cluster_fields(const plan::Cluster& cluster) {
  std::vector<PlanField> fields;
  for (std::size_t level = 0; cluster.fabric && level < cluster.fabric->levels.size(); ++level)
    add_level_fields(cluster, level, fields);
  int first = 0;
  for (std::size_t at = 0; cluster.mixture && at < cluster.mixture->kinds.size(); ++at) {
    const plan::NodeKind& kind = cluster.mixture->kinds[at];
    add_kind_fields(kind, at, first, fields);
    first += kind.nodes;
  }
  for (PlanField& field : fields)
    add_meaning(field);
  return fields;
}

QString cluster_words(const plan::Cluster& cluster) {
  QStringList words;
  if (!cluster.fabric)
    return {};
  if (cluster.fabric->rails)
    words
        << "By rails: links between nodes connect only devices with the same index in their nodes.";
  for (const plan::LinkLevel& level : cluster.fabric->levels)
    if (level.link.shared)
      words << QString("The link out of a group of the level %1 is shared by its transfers.")
                   .arg(QString::fromStdString(level.name));
  return words.join('\n');
}

const PlanField* find_plan_field(const std::string& name) {
  return find_field(plan_fields(), name);
}

QString other_choice_words(const std::string& value) {
  return QString::fromStdString(value).section('/', -1);
}

namespace {

plan::Json::json_pointer place_of(const PlanField& field) {
  const QString path = "/" + QString::fromStdString(field.name).replace('.', '/');
  return plan::Json::json_pointer(path.toStdString());
}

const plan::Json& value_in(const plan::Json& scenario, const PlanField& field) {
  return scenario.at(place_of(field));
}

}  // namespace

bool has_value(const PlanField& field, const plan::Json& scenario) {
  return scenario.contains(place_of(field));
}

double number_of(const PlanField& field, const plan::Json& scenario) {
  return value_in(scenario, field).get<double>();
}

std::string option_of(const PlanField& field, const plan::Json& scenario) {
  const plan::Json& value = value_in(scenario, field);
  return value.is_array() ? std::string() : text_of(value);
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
  const QString written = match.captured(2).trimmed();
  if (!written.isEmpty()) {
    const auto size = size_of(unit, written);
    return size ? std::optional(value * *size) : std::nullopt;
  }
  const auto scales = scales_of(unit);
  const auto of_shown = number.match(shown.simplified());
  const auto size =
      of_shown.hasMatch() ? size_of(unit, of_shown.captured(2).trimmed()) : std::nullopt;
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
    case Unit::Ratio:
      for (int step = 2; step <= 20; ++step)
        values.push_back(step / 20.0);
      for (const double more : counts(1, 32))
        if (more > 1)
          values.push_back(more);
      break;
    case Unit::Choice:
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
  Fields fields = plan_fields();
  for (PlanField& field : cluster_fields(after.cluster))
    fields.push_back(std::move(field));
  add_changes(fields, to_json(before), to_json(after), "", changes);
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
