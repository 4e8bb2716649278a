#pragma once

// What a millisecond less in a stage, layer or link would save, sorted; what the critical path is
// made of; and which actions could take longer for nothing.

#include <QComboBox>
#include <QLabel>
#include <QTimer>
#include <QWidget>
#include <functional>

#include "pipewright/gui/document/places.hpp"
#include "pipewright/gui/document/workspace.hpp"
#include "pipewright/gui/look/theme.hpp"
#include "pipewright/gui/panels/figure_table.hpp"
#include "pipewright/gui/panels/share_bar.hpp"

namespace pipewright::gui {

/// Of all parts, or of one; the key is the place in `savings`.
FigureTable saving_table(const std::vector<loop::Saving>& savings,
                         std::optional<loop::Saving::Part> part);
/// The actions that compute, those with most room first; the key is the event.
FigureTable slack_table(const loop::Answer& answer, const std::vector<double>& slack,
                        std::size_t most);

class SavingsPanel : public QWidget {
 public:
  /// `workspace` must outlive it.
  explicit SavingsPanel(Workspace& workspace, QWidget* parent = nullptr);
  void set_theme(const Theme& theme);

  /// Somebody has chosen a line: these events are meant.
  std::function<void(const Places&)> on_places;

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  void refresh(Workspace::Change change);
  void rebuild();
  void show_savings();

  Workspace& workspace_;
  const Theme* theme_;
  bool stale_ = true;
  QTimer later_;  // so that a hand that drags a border does not wait for it
  QLabel* headline_;
  QWidget* columns_;
  QComboBox* part_;
  FigureTableView* savings_;
  ShareBar* critical_;
  FigureTableView* slack_;
};

}  // namespace pipewright::gui
