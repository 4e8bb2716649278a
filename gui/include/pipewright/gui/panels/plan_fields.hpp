#pragma once

// The fields of a plan that a person can turn. What a field means, which values it can have and
// what it holds come from the list of a scenario's fields; here stands what it is called, and how
// its value is written, read and gone through by a slider.

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
  QString help;                   // what it means, and what it does
  std::vector<Option> options{};  // of a choice
  QString of{};                   // whose it is, where several have such a field: "leaf"
};
/// All fields, in the order in which they stand below each other.
const std::vector<PlanField>& plan_fields();
/// Those of the cluster's levels of links and of its kinds of nodes, if it has some.
std::vector<PlanField> cluster_fields(const plan::Cluster& cluster);
/// What of these is not to be turned: rails, and links that are shared. Empty: nothing.
QString cluster_words(const plan::Cluster& cluster);
/// Null where there is none of this name.
const PlanField* find_plan_field(const std::string& name);

/// Whether a scenario that is written as JSON has the field: not all clusters have each level.
bool has_value(const PlanField& field, const plan::Json& scenario);
/// The field's number there.
double number_of(const PlanField& field, const plan::Json& scenario);
/// What a person reads of a value that is none of a choice's options: of a schedule's file its
/// name.
QString other_choice_words(const std::string& value);
/// The value of a choice there; empty: none of its options, such as boundaries chosen by hand.
std::string option_of(const PlanField& field, const plan::Json& scenario);

/// "100 GB/s", "2 µs", "auto", "0.8 ×": what `read_value` reads again.
QString value_words(PlanField::Unit unit, double value);
/// Nothing for what is no such value. A number alone is in the unit that `shown` has.
std::optional<double> read_value(PlanField::Unit unit, const QString& text, const QString& shown);
/// "pipeline.ranks=4".
std::string assignment_of(const PlanField& field, double value);
/// Where a slider can stand, rising; `now` is among them.
std::vector<double> slider_values(PlanField::Unit unit, double now, double most);
/// The place of the value that is nearest, as a slider counts: by ratio.
int slider_place(const std::vector<double>& values, double value);
/// How far the field's slider goes in this scenario.
double slider_most(const PlanField& field, const plan::Scenario& scenario);

/// "cluster.rank_speeds=[1,0.5]" for one rank at another speed; all equal to 1 is no list at all.
std::string speed_assignment(const plan::Scenario& scenario, int rank, double speed);
double speed_of(const plan::Scenario& scenario, int rank);

/// What one scenario has otherwise than another, in words: "Ranks 4 → 8".
std::vector<QString> changes_between(const plan::Scenario& before, const plan::Scenario& after);

/// An error about a field without the place in a file that the person did not write.
QString plain_words(const plan::InputError& error);

}  // namespace pipewright::gui
