#pragma once

// A line under the timeline that finds actions, or filters ranks.

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

/// Returns the events that match `typed`, in order of time: those with exactly this name if it is
/// an action ("2F5"), otherwise all whose name contains it, ignoring case.
std::vector<std::uint64_t> found_events(const plan::EventTable& table, const std::string& typed);
/// Returns the next or previous found event; wraps around at the ends.
std::optional<std::uint64_t> neighbor(const plan::EventTable& table,
                                      const std::vector<std::uint64_t>& found,
                                      std::optional<std::uint64_t> now, bool forward);

class FindBar : public QWidget {
 public:
  /// `timeline` must outlive it.
  explicit FindBar(TimelineView& timeline, QWidget* parent = nullptr);

  void find();
  void filter();
  /// Goes to the next or previous found event.
  void step(bool forward);
  /// Opens the bar and finds the text at once.
  void find(const QString& typed);
  /// Drops the found events, because another table is shown.
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
