#pragma once

// An exception in a rank's work says where it happened.

#include <fmt/format.h>

#include <exception>
#include <string>

#include "pipewright/exec/first_line.hpp"
#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/exec/transport/transport.hpp"

namespace pipewright::exec {

/// As failures name it.
inline std::string in_words(const plan::Instruction& i) { return "action " + to_string(i); }

/// Runs `work`; what it throws says which rank of the job was at what in which step: `name()`. What
/// says so already, or is the consequence of another rank's failure, passes as it is.
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
