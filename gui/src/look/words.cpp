#include "pipewright/gui/look/words.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "pipewright/plan/program/instruction.hpp"

namespace pipewright::gui {
namespace {

struct Unit {
  double size;
  const char* name;
};

template <std::size_t n>
QString in_unit(double value, const std::array<Unit, n>& units) {
  const Unit* unit = &units.back();
  for (const Unit& candidate : units)
    if (std::abs(value) >= candidate.size * 0.9995) {
      unit = &candidate;
      break;
    }
  const double shown = value / unit->size;
  // The digits are those of the rounded value: 99.996 is "100.0".
  const double rounded = std::abs(shown) * 1.00005;
  const int whole = shown == 0 ? 1 : static_cast<int>(std::floor(std::log10(rounded))) + 1;
  return QString::fromStdString(
      fmt::format("{:.{}f} {}", shown, std::clamp(4 - whole, 0, 3), unit->name));
}

const char* meaning_of(plan::InstructionKind kind) {
  using Kind = plan::InstructionKind;
  switch (kind) {
    case Kind::Load:
      return "loads";
    case Kind::Forward:
      return "forward of";
    case Kind::Backward:
      return "backward of";
    case Kind::InputGradient:
      return "input gradient of";
    case Kind::WeightGradient:
      return "weight gradient of";
    case Kind::Recompute:
      return "computes again";
    case Kind::SendActivation:
      return "sends the activation of";
    case Kind::ReceiveActivation:
      return "receives the activation of";
    case Kind::SendGradient:
      return "sends the gradient of";
    case Kind::ReceiveGradient:
      return "receives the gradient of";
    case Kind::ScatterMicrobatch:
      return "sums the gradients over its copies, a shard for each, of";
    case Kind::ReduceTied:
      return "sums the gradients of shared weights";
    case Kind::ReduceGradients:
      return "sums gradients over its copies";
    case Kind::ScatterGradients:
      return "sums gradients, a shard for each copy";
    case Kind::NormGradients:
      return "finds the norm of all gradients";
    case Kind::OptimizerStep:
      return "optimizer step";
    case Kind::GatherParameters:
      return "gathers the parameters of its copies";
    case Kind::ShareLoss:
      return "shares the loss";
    case Kind::Unshard:
      return "gathers its sharded parameters";
    case Kind::Reshard:
      return "lets its gathered parameters go";
  }
  return "";
}

}  // namespace

QString time_words(double seconds) {
  static constexpr std::array<Unit, 4> units{{{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}}};
  return seconds == 0 ? QString("0 ms") : in_unit(seconds, units);
}

QString time_difference(double seconds) {
  return (seconds >= 0 ? QString("+") : QString()) + time_words(seconds);
}

QString byte_words(double bytes) {
  static constexpr std::array<Unit, 5> units{
      {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}}};
  return in_unit(bytes, units);
}

QString percent_words(double part) {
  return QString::fromStdString(fmt::format("{:.1f} %", 100 * part));
}

QString upper_first(QString text) {
  if (!text.isEmpty())
    text[0] = text[0].toUpper();
  return text;
}

QString action_words(const std::string& action) {
  const auto instruction = plan::parse_instruction(action);
  if (!instruction)
    return {};
  QString words =
      QString("stage %1: %2").arg(instruction->stage).arg(meaning_of(instruction->kind));
  if (instruction->microbatch >= 0)
    words += QString(" microbatch %1").arg(instruction->microbatch);
  return words;
}

}  // namespace pipewright::gui
