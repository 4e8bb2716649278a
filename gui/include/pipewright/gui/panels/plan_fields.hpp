#pragma once

// The fields of a plan that can be changed in the window. Meaning, valid values and the current
// value come from the list of scenario fields; this file adds labels, text conversion and slider
// positions.

#include <QString>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::gui {

struct PlanField {
  enum class Unit { Count, CountOrAuto, Bandwidth, Time, Bytes, Factor, Ratio, Choice };
  struct Option {
    std::string value;  // "profile"
    QString words;      // "balanced by time"
    QString help;
  };
  std::string name;  // "pipeline.ranks"
  QString group;     // its heading
  QString label;
  Unit unit;
  QString help;                   // meaning and effect
  std::vector<Option> options{};  // of a choice
  QString of{};                   // owner, if several have such a field: "leaf"
};
/// Returns all fields in display order.
const std::vector<PlanField>& plan_fields();
/// Returns the fields of the cluster's link levels and node kinds, if it has any.
std::vector<PlanField> cluster_fields(const plan::Cluster& cluster);
/// Describes the parts of these that cannot be changed: rails and shared links. Empty: there are
/// none.
QString cluster_words(const plan::Cluster& cluster);
/// Returns null if there is no field with this name.
const PlanField* find_plan_field(const std::string& name);

/// Returns true if the field exists in a scenario written as JSON: not all clusters have each
/// level.
bool has_value(const PlanField& field, const plan::Json& scenario);
/// Returns the field's number in the scenario.
double number_of(const PlanField& field, const plan::Json& scenario);
/// Returns the text for a value that is not among a choice's options: for a schedule file, its
/// name.
QString other_choice_words(const std::string& value);
/// Returns the option that the scenario has; empty if its value is not an option, such as
/// boundaries chosen by hand.
std::string option_of(const PlanField& field, const plan::Json& scenario);

/// Returns text such as "100 GB/s", "2 µs", "auto" or "0.8 ×", which `read_value` can parse.
QString value_words(PlanField::Unit unit, double value);
/// Returns nothing if the text is not a valid value. A number without a unit has the unit of
/// `shown`.
std::optional<double> read_value(PlanField::Unit unit, const QString& text, const QString& shown);
/// Returns an assignment such as "pipeline.ranks=4".
std::string assignment_of(const PlanField& field, double value);
/// Returns the slider's values in ascending order; `now` is among them.
std::vector<double> slider_values(PlanField::Unit unit, double now, double most);
/// Returns the index of the nearest value, by ratio.
int slider_place(const std::vector<double>& values, double value);
/// Returns the largest value of the field's slider in this scenario.
double slider_most(const PlanField& field, const plan::Scenario& scenario);

/// Returns an assignment such as "cluster.rank_speeds=[1,0.5]" for a new speed of one rank; an
/// empty list if all speeds are 1.
std::string speed_assignment(const plan::Scenario& scenario, int rank, double speed);
double speed_of(const plan::Scenario& scenario, int rank);

/// Describes the differences between two scenarios, such as "Ranks 4 → 8".
std::vector<QString> changes_between(const plan::Scenario& before, const plan::Scenario& after);

/// Returns an error about a field without its position in the scenario file, which the user did not
/// write.
QString plain_words(const plan::InputError& error);

}  // namespace pipewright::gui
