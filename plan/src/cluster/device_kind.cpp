#include "pipewright/plan/cluster/device_kind.hpp"

#include <algorithm>
#include <cctype>

namespace pipewright::plan {
namespace {

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_decimal_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

}  // namespace

std::string device_kind(std::string_view name) {
  for (std::size_t at = 0; at < name.size();) {
    std::size_t digits = at;
    while (digits < name.size() && is_letter(name[digits]))
      ++digits;
    std::size_t end = digits;
    while (end < name.size() && is_decimal_digit(name[end]))
      ++end;
    if (digits > at && end - digits >= 2) {
      std::string kind(name.substr(at, end - at));
      std::ranges::transform(kind, kind.begin(),
                             [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
      return kind;
    }
    at = std::max(end, at + 1);
  }
  return {};
}

}  // namespace pipewright::plan
