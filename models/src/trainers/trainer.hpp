#pragma once

// What each trainer's source in this folder gives: the way there and back.

#include <string>
#include <string_view>
#include <vector>

#include "pipewright/models/trainers/trainer_file.hpp"

namespace pipewright::models::trainer {

/// With no fault, `text` is the file's; called only then.
struct Words {
  std::vector<std::string> (*untold)(const plan::Scenario& scenario);
  std::string (*text)(const plan::Scenario& scenario);
  std::vector<std::string> (*assignments)(std::string_view text, const std::string& name,
                                          int replicas);
};
const Words& megatron();
const Words& torchtitan();
const Words& deepspeed();

/// The lines of what cannot be told.
class Untold {
 public:
  void add_if(bool holds, std::string line) {
    if (holds)
      lines_.push_back(std::move(line));
  }
  std::vector<std::string> lines() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
};

/// What no trainer here can be told: microbatches of lengths of their own, ranks that are counted
/// otherwise, a pipeline of one's own communicators.
void add_common(Untold& untold, const plan::Scenario& scenario);

/// What a trainer cannot be told whose file here has products in 16 bits alone.
void add_products(Untold& untold, const plan::Scenario& scenario);

/// The scenario's partition. Throws InputError where it is not named by borders.
const std::vector<int>& borders_of(const plan::Scenario& scenario);

/// "pipeline.ranks=4".
std::string assignment(const std::string& field, const plan::Json& value);

}  // namespace pipewright::models::trainer
