#pragma once

// The ranks of a job compare what they were started with, so that none trains something else.

#include <string>
#include <utility>
#include <vector>

#include "pipewright/exec/job/job.hpp"

namespace pipewright::exec {

/// What all ranks must have in common, such as {"version", "1.2"} and {"Program", "9f3a…"}.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// Every rank calls it. Throws InputError on all of them that says which ranks differ in what.
void require_agreement(Job& job, const Facts& facts);

}  // namespace pipewright::exec
