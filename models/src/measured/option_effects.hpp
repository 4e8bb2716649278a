#pragma once

// How Megatron-LM's options affect a run's sizes, time and memory, beyond those that the readers
// use. Names are without dashes, as in a table of runs.

#include <string>

namespace pipewright::models {

enum class OptionEffect {
  Unknown,   // no version that is known here has the option
  None,      // no effect on sizes, time or memory
  Run,       // affects time or memory of a run, which is not modeled
  Computed,  // changes what layers compute, but not their sizes
  Read,      // read elsewhere, if the options that it depends on are given
  Refused    // the sizes of layers are unknown with it
};

OptionEffect effect_of(const std::string& option);

/// Returns why sizes are unknown with this option, or nothing if it is not refused. `value` has at
/// least the option's first word.
std::string refusal_of(const std::string& option, const std::string& value);

/// Returns the first refusal among "name=value; name": "--option: reason"; empty: none.
std::string refusal_in(const std::string& arguments);

}  // namespace pipewright::models
