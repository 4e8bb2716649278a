#pragma once

// Input format of the JSON readers: a document, followed by lines `--set field=value` as on the
// command line.

#include <string>
#include <string_view>

#include "pipewright/plan/json/json_document.hpp"
#include "promise.hpp"

namespace pipewright::fuzz {

inline plan::JsonDocument document_of(std::string_view text) {
  constexpr std::string_view mark = "\n--set ";
  std::size_t end = text.find(mark);
  auto document = plan::JsonDocument::parse(std::string(text.substr(0, end)), "fuzz");
  while (end != std::string_view::npos) {
    text.remove_prefix(end + mark.size());
    end = text.find(mark);
    std::string assignment(text.substr(0, end));
    if (assignment.ends_with('\n'))
      assignment.pop_back();
    document.set(assignment);
  }
  return document;
}

/// Returns the value of a text, if it is valid, after checking that it reads back as written.
template <class Value>
std::optional<Value> read_back(std::string_view text, Value (*read)(const plan::JsonDocument&)) {
  const auto value = accepted([&] { return read(document_of(text)); });
  if (value) {
    const std::string written = to_json(*value).dump(2);
    demand(read(plan::JsonDocument::parse(written, "again")) == *value, "reads back as written");
  }
  return value;
}

}  // namespace pipewright::fuzz
