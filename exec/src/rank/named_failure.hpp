#pragma once

// Adds the place of an exception in a rank's work to its message.

#include <fmt/format.h>

#include <exception>
#include <string>

#include "pipewright/exec/first_line.hpp"
#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/exec/transport/transport.hpp"

namespace pipewright::exec {

/// Returns the instruction's name as failures show it.
inline std::string in_words(const plan::Instruction& i) { return "action " + to_string(i); }

/// Runs `work` and rethrows its exceptions as RankFailure, which names the rank of the job, the
/// work (`name()`) and the step. A RankFailure, and an Aborted that follows from another rank's
/// failure, pass unchanged.
template <class Name, class Work>
void with_named_failure(int rank, int step, const Name& name, const Work& work) {
  try {
    work();
  } catch (const Aborted&) {
    throw;
  } catch (const RankFailure&) {
    throw;
  } catch (const std::exception& error) {
    throw RankFailure(
        fmt::format("rank {}, {}, step {}: {}", rank, name(), step, first_line(error.what())));
  }
}

}  // namespace pipewright::exec
