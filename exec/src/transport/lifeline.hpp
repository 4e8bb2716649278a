#pragma once

// Notices that a rank's process is gone where nobody waits for it over a connection that says so:
// NCCL's does not, and a rank that waits for its device has none.

#include <thread>

#include "gloo_mesh.hpp"
#include "pipewright/exec/job/job.hpp"

namespace pipewright::exec {

/// A connection to the next rank of the job, or from the last one to the first, over which nothing
/// ever comes; its end makes that rank suspect. Every rank makes it at the same point.
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
