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
  // The number of digits follows from the rounded value: 99.996 becomes "100.0".
  const double rounded = std::abs(shown) * 1.00005;
  const int whole = shown == 0 ? 1 : static_cast<int>(std::floor(std::log10(rounded))) + 1;
  return QString::fromStdString(
      fmt::format("{:.{}f} {}", shown, std::clamp(4 - whole, 0, 3), unit->name));
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
  const std::string_view meaning = traits_of(instruction->kind).meaning;
  QString words = QString("stage %1: %2")
                      .arg(instruction->stage)
                      .arg(QString::fromUtf8(meaning.data(), static_cast<int>(meaning.size())));
  if (instruction->microbatch >= 0)
    words += QString(" microbatch %1").arg(instruction->microbatch);
  return words;
}

}  // namespace pipewright::gui
