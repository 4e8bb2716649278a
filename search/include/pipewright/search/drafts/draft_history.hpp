#pragma once

// Undo and redo of drafts, each step with a few words that say what it did.

#include <cstddef>
#include <string>
#include <vector>

#include "pipewright/search/drafts/what_if.hpp"

namespace pipewright::search {

class DraftHistory {
 public:
  explicit DraftHistory(Draft first);

  const Draft& now() const { return steps_[at_].draft; }
  /// Set a field: "pipeline.ranks from 2 to 4". Throws InputError as `changed` does, and then
  /// nothing has happened. Consecutive changes of one field are one step, up to `settle`.
  const Draft& set(const std::string& assignment);
  /// Move a border: "boundary 3 from layer 8 to 9". Consecutive moves of one border are one step.
  const Draft& move_boundary(const std::vector<int>& boundaries, int boundary, int layer);
  /// Any other change. Steps with the same `slider` that is not empty are one, up to `settle`.
  const Draft& replace(Draft draft, std::string text, const std::string& slider = {});
  /// The hand has let go: the next change is a step of its own.
  void settle();

  bool can_undo() const { return at_ > 0; }
  bool can_redo() const { return at_ + 1 < steps_.size(); }
  /// The words of the step that `undo` takes back, or `redo` takes again; empty where there is
  /// none.
  std::string undo_text() const;
  std::string redo_text() const;
  /// Does nothing where there is none.
  const Draft& undo();
  const Draft& redo();

 private:
  struct Step {
    Draft draft;
    std::string text;    // what led here
    std::string slider;  // what was moved
    std::string from;    // its value before the step
  };
  const Draft& push(Draft draft, std::string text, std::string slider, std::string from);
  /// Where a slider stood before the step at hand, if that step moved it.
  const std::string* origin(const std::string& slider) const;

  std::vector<Step> steps_;
  std::size_t at_ = 0;
  bool settled_ = true;
};

}  // namespace pipewright::search
