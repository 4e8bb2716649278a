#pragma once

// A regular expression that people give for names: ECMAScript, any case, found anywhere in one.

#include <regex>
#include <string>

namespace pipewright::plan {

class NamePattern {
 public:
  /// `where`: what it is given for, such as "type", for messages. Throws InputError when it is no
  /// pattern, has more than 200 letters, or a number of more than 3 digits.
  NamePattern(const std::string& where, const std::string& pattern);
  bool is_in(const std::string& name) const;

 private:
  std::regex expression_;
};

}  // namespace pipewright::plan
