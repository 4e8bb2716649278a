#pragma once

// What a millisecond less in a stage, layer or link would save, sorted; what the critical path is
// made of; and which actions could take longer for nothing.

#include <QComboBox>
#include <QLabel>
#include <functional>

#include "pipewright/gui/document/places.hpp"
#include "pipewright/gui/panels/figure_table.hpp"
#include "pipewright/gui/panels/panel.hpp"
#include "pipewright/gui/panels/share_bar.hpp"

namespace pipewright::gui {

/// The savings of all parts, or of one; the key is the place in `savings`.
FigureTable saving_table(const std::vector<loop::Saving>& savings,
                         std::optional<loop::Saving::Part> part);
/// The actions that compute, those with most room first; the key is the event.
FigureTable slack_table(const search::Answer& answer, const std::vector<double>& slack,
                        std::size_t most);

class SavingsPanel : public Panel<> {
 public:
  /// `workspace` must outlive it.
  explicit SavingsPanel(Workspace& workspace, QWidget* parent = nullptr);
  void set_theme(const Theme& theme);

  /// Called when a line is chosen: these events are meant.
  std::function<void(const Places&)> on_places;

 private:
  void rebuild() override;
  void show_savings();

  QLabel* headline_;
  QWidget* columns_;
  QComboBox* part_;
  FigureTableView* savings_;
  ShareBar* critical_;
  FigureTableView* slack_;
};

}  // namespace pipewright::gui
