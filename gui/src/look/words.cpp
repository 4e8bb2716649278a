#include "pipewright/gui/look/words.hpp"

#include <fmt/format.h>

#include "pipewright/plan/program/instruction.hpp"
#include "pipewright/plan/quantity_text.hpp"

namespace pipewright::gui {
QString time_words(double seconds) { return QString::fromStdString(plan::time_text(seconds)); }

QString time_difference(double seconds) {
  return QString::fromStdString(plan::time_difference_text(seconds));
}

QString byte_words(double bytes) { return QString::fromStdString(plan::bytes_text(bytes)); }

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
