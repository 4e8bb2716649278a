#pragma once

// The panel that breaks a prediction's error down: per rank into compute, transfer, waiting, launch
// and memory, by cause, and by action; the largest causes and actions come first.

#include <QLabel>
#include <functional>

#include "pipewright/gui/document/places.hpp"
#include "pipewright/gui/panels/figure_table.hpp"
#include "pipewright/gui/panels/panel.hpp"

namespace pipewright::gui {

/// Returns a row per rank. Its columns compute, transfer, waiting and launch add up to the column
/// sum, which is the error of the iteration time (measured minus predicted) on every rank. The
/// column memory is the error of the peak.
FigureTable rank_table(const loop::Residuals& residuals);
/// Returns a row per cause, in the order of `residuals.causes`. Its key is the index there.
FigureTable cause_table(const loop::Residuals& residuals);
/// Returns a row per action, whose key is the index in `actions`.
FigureTable action_table(const std::vector<ActionDifference>& actions);

class ResidualPanel : public Panel<> {
 public:
  /// `workspace` must outlive it.
  explicit ResidualPanel(Workspace& workspace, QWidget* parent = nullptr);
  void set_theme(const Theme& theme);

  /// Called when the user chooses a cause or an action, with its events on the timeline.
  std::function<void(const Places&)> on_places;

 private:
  void rebuild() override;

  std::vector<ActionDifference> worst_;
  QLabel* headline_;
  QWidget* tables_;
  QWidget* budget_;
  FigureTableView* ranks_;
  FigureTableView* causes_;
  FigureTableView* actions_;
};

}  // namespace pipewright::gui
