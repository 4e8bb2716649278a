#include "pipewright/engine/models/routed_rows.hpp"

#include <utility>

namespace pipewright::engine {
namespace {

thread_local RoutedRows* listener = nullptr;

}  // namespace

RoutedRows::RoutedRows() : outer_(std::exchange(listener, this)) {}
RoutedRows::~RoutedRows() { listener = outer_; }

void RoutedRows::note(const std::vector<std::int64_t>& rows) {
  if (listener == nullptr)
    return;
  listener->rows_.resize(rows.size());
  for (std::size_t expert = 0; expert < rows.size(); ++expert)
    listener->rows_[expert] += rows[expert];
}

}  // namespace pipewright::engine
