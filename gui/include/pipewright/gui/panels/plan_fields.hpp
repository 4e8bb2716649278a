#pragma once

// The fields of a plan that a person can turn: what they are called, what they mean, which values a
// slider goes through, and how a value is written and read.

#include <QString>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::gui {

struct PlanField {
  enum class Unit { Count, CountOrAuto, Bandwidth, Time, Bytes, Factor };
  const char* name;   // "pipeline.ranks"
  const char* group;  // its heading
  const char* label;
  const char* help;
  Unit unit;
  double (*value)(const plan::Scenario& scenario);
};
/// Numbers, in the order in which they stand below each other.
const std::vector<PlanField>& plan_fields();
/// Null where there is none of this name.
const PlanField* find_plan_field(const std::string& name);

struct PlanChoice {
  struct Option {
    std::string value;  // "profile"
    QString words;      // "balanced by time"
    QString help;
  };
  const char* name;
  const char* group;
  const char* label;
  const char* help;
  std::vector<Option> options;
  /// Empty: something that is no option, such as boundaries chosen by hand.
  std::string (*value)(const plan::Scenario& scenario);
};
const std::vector<PlanChoice>& plan_choices();

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
/// As far as the field's slider goes in this scenario.
double slider_most(const PlanField& field, const plan::Scenario& scenario);

/// "cluster.rank_speeds=[1,0.5]" for one rank at another speed; all equal to 1 is no list at all.
std::string speed_assignment(const plan::Scenario& scenario, int rank, double speed);
double speed_of(const plan::Scenario& scenario, int rank);

/// What one scenario has otherwise than another, in words: "Ranks 4 → 8".
std::vector<QString> changes_between(const plan::Scenario& before, const plan::Scenario& after);

/// An error about a field without the place in a file that the person did not write.
QString plain_words(const plan::InputError& error);

}  // namespace pipewright::gui
