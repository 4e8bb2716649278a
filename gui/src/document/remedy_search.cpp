#include "pipewright/gui/document/remedy_search.hpp"

#include <utility>

namespace pipewright::gui {
namespace {

std::optional<sim::Remedy> remedy_of(const loop::Draft& draft, const std::stop_token& stop) {
  try {
    return loop::WhatIf().remedy(draft, stop);
  } catch (const std::bad_alloc&) {
    return {};  // what takes this much memory to plan is none
  }
}

}  // namespace

void RemedySearch::start(loop::Draft draft, Found found) {
  stop();
  // One after the other: it is the new thread that waits for the old one.
  thread_ = std::jthread([this, before = std::move(thread_), draft = std::move(draft),
                          found = std::move(found)](const std::stop_token& stop) mutable {
    if (before.joinable())
      before.join();
    const std::optional<sim::Remedy> remedy = remedy_of(draft, stop);
    QMetaObject::invokeMethod(
        &here_,
        [stop, remedy, found = std::move(found)] {
          if (!stop.stop_requested())
            found(remedy);
        },
        Qt::QueuedConnection);
  });
}

}  // namespace pipewright::gui
