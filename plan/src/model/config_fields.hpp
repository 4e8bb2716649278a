#pragma once

// Reads the fields of a config.json, to make a TransformerConfig of them.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/size_ranges.hpp"

namespace pipewright::plan {

/// The fields of a file. It records which key each member came from, and which required keys are
/// missing.
class ConfigFields {
 public:
  explicit ConfigFields(JsonObject& root) : root_(root) {}

  /// Returns true if the key is present and not null.
  bool has(const std::string& key) {
    const Json* value = root_.find(key);
    return value != nullptr && !value->is_null();
  }

  bool is_null(const std::string& key) {
    const Json* value = root_.find(key);
    return value != nullptr && value->is_null();
  }
  /// Returns the default of a key: `absent` if the file does not have it, and 0 if it is null.
  template <class Number>
  Number fallback(const std::string& key, Number absent) {
    return root_.find(key) == nullptr ? absent : Number{};
  }

  void size(int& member, const std::string& key, double most = most_channels) {
    from(member, key, {.least = 1, .most = most}, {});
  }
  void size_or(int& member, const std::string& key, int fallback, double most = most_channels) {
    from(member, key, {.least = 1, .most = most}, fallback);
  }
  /// Reads a count, which may be 0.
  void count_or(int& member, const std::string& key, int fallback, double most = most_channels) {
    from(member, key, {.least = 0, .most = most}, fallback);
  }
  int number(const std::string& key, Range range, int fallback) {
    return has(key) ? root_.integer(key, range, fallback) : fallback;
  }
  bool flag(const std::string& key, bool fallback) {
    return has(key) ? root_.flag(key, fallback) : fallback;
  }
  double number(const std::string& key, double fallback) {
    return has(key) ? root_.number(key, at_least(0), fallback) : fallback;
  }
  double positive(const std::string& key, double fallback) {
    return has(key) ? root_.number(key, more_than(0), fallback) : fallback;
  }
  std::string text(const std::string& key, const std::string& fallback) {
    return has(key) ? root_.text(key, fallback) : fallback;
  }
  std::vector<std::string> texts(const std::string& key) {
    return has(key) ? root_.texts(key, std::vector<std::string>{}) : std::vector<std::string>{};
  }
  /// Returns the raw value of a key, or null if it is absent.
  const Json* find(const std::string& key) { return has(key) ? root_.find(key) : nullptr; }
  JsonObject& root() { return root_; }
  /// Returns true if no error has occurred so far.
  bool are_sound() const { return missing_.empty() && root_.diagnostics().empty(); }

  void fault(const int* member, const std::string& message) {
    const auto key = key_of_.find(member);
    root_.error(key == key_of_.end() ? std::string("model_type") : key->second, message);
  }

  /// Notes a field that is counted and predicted but not supported in training.
  void not_trained(const std::string& key, const Json& value) {
    untrained_.push_back(fmt::format("\"{}\": {}", key, value.dump()));
  }
  void not_trained_if(const std::string& key) {
    if (const Json* value = find(key); value != nullptr && *value != Json(false))
      not_trained(key, *value);
  }
  const std::vector<std::string>& untrained() const { return untrained_; }
  /// Notes a dropout unless it is 0. Returns true if it is not 0.
  bool dropout(const std::string& key, double fallback = 0) {
    const double share = number(key, fallback);
    if (share > 0)
      dropouts_.push_back(fmt::format("\"{}\": {}", key, share));
    return share > 0;
  }
  const std::vector<std::string>& dropouts() const { return dropouts_; }

  /// Reports the missing keys. Call it after the last field. If an unknown key resembles a missing
  /// one, the error points to it.
  void tell_missing() {
    std::vector<std::string> others;
    for (const auto& item : root_.diagnostics().document().root().items())
      if (std::find(asked_.begin(), asked_.end(), item.key()) == asked_.end())
        others.push_back(item.key());
    for (const std::string& key : missing_) {
      const std::string* near = nearest_to(key, others);
      if (near != nullptr)
        root_.error(*near, fmt::format("\"{}\" is missing; this is the nearest to it", key));
      else
        root_.diagnostics().add("", fmt::format("\"{}\" is missing", key));
    }
  }

 private:
  void from(int& member, const std::string& key, Range range, std::optional<int> fallback) {
    asked_.push_back(key);
    if (has(key)) {
      key_of_[&member] = key;
      member = root_.integer(key, range, fallback.value_or(1));
    } else {
      member = fallback.value_or(1);
      if (!fallback)
        missing_.push_back(key);
    }
  }

  JsonObject& root_;
  std::map<const int*, std::string> key_of_;
  std::vector<std::string> missing_, asked_;
  std::vector<std::string> untrained_, dropouts_;
};

}  // namespace pipewright::plan
