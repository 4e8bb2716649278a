#pragma once

// The interface of each trainer's source file in this folder: export and import.

#include <string>
#include <string_view>
#include <vector>

#include "pipewright/models/trainers/trainer_file.hpp"

namespace pipewright::models::trainer {

/// `text` is called only if `unsupported_fields` returns nothing, and returns the file's text.
struct Words {
  std::vector<std::string> (*unsupported_fields)(const plan::Scenario& scenario);
  std::string (*text)(const plan::Scenario& scenario);
  std::vector<std::string> (*assignments)(std::string_view text, const std::string& name,
                                          const CutContext& context);
};
const Words& megatron();
const Words& torchtitan();
const Words& torchtitan_toml();
const Words& deepspeed();

/// Collects the lines of unsupported features.
class UnsupportedFields {
 public:
  void add_if(bool holds, std::string line) {
    if (holds)
      lines_.push_back(std::move(line));
  }
  std::vector<std::string> lines() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
};

/// Adds features that no trainer here supports: microbatches of different lengths, a custom
/// placement of stages, and a custom schedule.
void add_common(UnsupportedFields& unsupported_fields, const plan::Scenario& scenario);

/// Adds features that a trainer whose file supports only 16-bit products lacks.
void add_products(UnsupportedFields& unsupported_fields, const plan::Scenario& scenario);

/// Returns the scenario's partition. Throws InputError if it is not given by boundaries.
const std::vector<int>& borders_of(const plan::Scenario& scenario);

/// Returns, for example, "pipeline.ranks=4".
std::string assignment(const std::string& field, const plan::Json& value);

}  // namespace pipewright::models::trainer
