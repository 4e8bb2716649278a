#pragma once

// Detects a lost process even if no rank waits for it over a connection that reports the loss:
// NCCL's connections do not, and a rank that waits for its device waits on no connection.

#include <thread>

#include "gloo_mesh.hpp"
#include "pipewright/exec/job/job.hpp"

namespace pipewright::exec {

/// A connection to the next rank of the job, or from the last one to the first, on which nothing is
/// ever sent. When it ends, that rank is suspected to be lost. Every rank makes it at the same
/// point.
class Lifeline {
 public:
  explicit Lifeline(Job& job);
  ~Lifeline();
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;

 private:
  GlooMesh mesh_;
  std::thread thread_;
};

}  // namespace pipewright::exec
