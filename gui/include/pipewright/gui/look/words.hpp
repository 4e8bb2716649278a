#pragma once

// Formats times, sizes and actions for people.

#include <QString>
#include <concepts>
#include <string>

namespace pipewright::gui {

/// "12.34 ms"; four digits, in the unit that suits.
QString time_words(double seconds);
/// "+1.20 ms", "-3 ms".
QString time_difference(double seconds);
/// "1.25 GB", in powers of ten as everywhere in Pipewright.
QString byte_words(double bytes);
/// "12.3 %".
QString percent_words(double part);
/// "1 rank", "4 ranks".
QString counted(std::integral auto count, const char* one, const char* many) {
  return QString("%1 %2").arg(count).arg(count == 1 ? one : many);
}
/// Returns the text with its first letter in upper case.
QString upper_first(QString text);
/// "stage 3: backward of microbatch 5"; empty if it is not an instruction.
QString action_words(const std::string& action);

}  // namespace pipewright::gui
