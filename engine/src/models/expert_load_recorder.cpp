#include "pipewright/engine/models/expert_load_recorder.hpp"

#include <utility>

namespace pipewright::engine {
namespace {

thread_local ExpertLoadRecorder* listener = nullptr;

}  // namespace

ExpertLoadRecorder::ExpertLoadRecorder() : outer_(std::exchange(listener, this)) {}
ExpertLoadRecorder::~ExpertLoadRecorder() { listener = outer_; }

void ExpertLoadRecorder::note(const std::vector<std::int64_t>& rows) {
  if (listener == nullptr)
    return;
  listener->rows_.resize(rows.size());
  for (std::size_t expert = 0; expert < rows.size(); ++expert)
    listener->rows_[expert] += rows[expert];
}

}  // namespace pipewright::engine
