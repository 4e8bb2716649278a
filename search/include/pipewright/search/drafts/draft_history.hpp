#pragma once

// Undo and redo of drafts. Each step has a short description.

#include <cstddef>
#include <string>
#include <vector>

#include "pipewright/search/drafts/what_if.hpp"

namespace pipewright::search {

class DraftHistory {
 public:
  explicit DraftHistory(Draft first);

  const Draft& now() const { return steps_[at_].draft; }
  /// Sets a field: "pipeline.ranks from 2 to 4". Throws InputError as `changed` does and then
  /// leaves the history unchanged. Consecutive changes of one field are one step, until `settle`.
  const Draft& set(const std::string& assignment);
  /// Moves a boundary: "boundary 3 from layer 8 to 9". Consecutive moves of one boundary are one
  /// step.
  const Draft& move_boundary(const std::vector<int>& boundaries, int boundary, int layer);
  /// Makes any other change. Consecutive steps with the same nonempty `slider` are one, until
  /// `settle`.
  const Draft& replace(Draft draft, std::string text, const std::string& slider = {});
  /// Ends the step at the end of a drag: the next change starts a new step.
  void settle();

  bool can_undo() const { return at_ > 0; }
  bool can_redo() const { return at_ + 1 < steps_.size(); }
  /// Returns the description of the step that `undo` reverts, or `redo` repeats; empty if there is
  /// none.
  std::string undo_text() const;
  std::string redo_text() const;
  /// Does nothing if there is no step to undo.
  const Draft& undo();
  const Draft& redo();

 private:
  struct Step {
    Draft draft;
    std::string text;    // describes the change that led here
    std::string slider;  // the field or boundary that was moved
    std::string from;    // its value before the step
  };
  const Draft& push(Draft draft, std::string text, std::string slider, std::string from);
  /// Returns the value of a slider before the current step, if that step moved it.
  const std::string* origin(const std::string& slider) const;

  std::vector<Step> steps_;
  std::size_t at_ = 0;
  bool settled_ = true;
};

}  // namespace pipewright::search
