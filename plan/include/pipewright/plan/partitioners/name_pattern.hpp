#pragma once

// A user's regular expression for names: ECMAScript, case-insensitive, matching anywhere in a name.

#include <regex>
#include <string>

namespace pipewright::plan {

class NamePattern {
 public:
  /// `where` is the use of the pattern, such as "type", for messages. Throws InputError if the
  /// pattern is invalid, has more than 200 characters, or contains a number of more than 3 digits.
  NamePattern(const std::string& where, const std::string& pattern);
  bool is_in(const std::string& name) const;

 private:
  std::regex expression_;
};

}  // namespace pipewright::plan
