#pragma once

// Python expressions as far as they can be read without running Python.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipewright/plan/json/json.hpp"
#include "trainers/python_tokens.hpp"

namespace pipewright::models {

/// A literal, a call with its arguments, a list or tuple, or a dotted name. Opaque: anything else.
struct PythonValue {
  enum class Kind { Opaque, Literal, Call, List, Name };
  Kind kind = Kind::Opaque;
  plan::Json literal{};
  std::string name{};  // of Call: the function or class; "{}": a dictionary
  std::vector<std::pair<std::string, PythonValue>> fields{};  // of Call: arguments with names
  std::vector<PythonValue> items{};  // of List; of Call: arguments without names
  /// The function that sets all further fields, where the file does not say how.
  std::string set_by{};
  std::string place{};  // "plan.py:4:28"

  PythonValue* find(const std::string& field);
  void set(const std::string& field, PythonValue value);
};

/// Returns true if this is a class that holds a configuration, such as `ParallelismConfig` or
/// `Trainer.Config`.
bool is_config(const std::string& callee);

/// Returns the value as JSON, with the arguments of a configuration class as an object; nothing if
/// that takes Python.
std::optional<plan::Json> literal_of(const PythonValue& value);

/// Reads the expression from token `at` up to the end of the line, or to a comma or bracket that it
/// does not open, and moves `at` there. Throws InputError if brackets are nested too deeply.
PythonValue read_value(const PythonLine& line, std::size_t& at, const std::string& file);

}  // namespace pipewright::models
