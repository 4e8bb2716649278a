#pragma once

// A line under the timeline: finds actions, or leaves only some ranks.

#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QWidget>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/gui/timeline/timeline_view.hpp"

namespace pipewright::gui {

/// The events that `typed` means, in order of time: an action ("2F5") of exactly this name, or else
/// each whose name has it somewhere, case aside.
std::vector<std::uint64_t> found_events(const plan::EventTable& table, const std::string& typed);
/// The event after (or before) an instant among those that were found; behind the last comes the
/// first.
std::optional<std::uint64_t> neighbour(const plan::EventTable& table,
                                       const std::vector<std::uint64_t>& found,
                                       std::optional<std::uint64_t> now, bool forward);

class FindBar : public QWidget {
 public:
  /// `timeline` must outlive it.
  explicit FindBar(TimelineView& timeline, QWidget* parent = nullptr);

  void find();
  void filter();
  /// Goes to the next that was found, or to the one before.
  void step(bool forward);
  /// Shows and finds at once.
  void find(const QString& typed);
  /// Another table is shown: what was found was another's.
  void forget();

  QLineEdit& line() { return *line_; }

 protected:
  void keyPressEvent(QKeyEvent* event) override;

 private:
  enum class For { Actions, Ranks };
  void open(For what);
  void changed();
  void show_count(std::optional<std::uint64_t> now);

  TimelineView& timeline_;
  For for_ = For::Actions;
  QLabel* name_;
  QLineEdit* line_;
  QLabel* count_;
  QPushButton* before_;
  QPushButton* after_;
  std::vector<std::uint64_t> found_;
};

}  // namespace pipewright::gui
