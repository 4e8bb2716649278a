#pragma once

// What a millisecond less in a stage, layer or link would save, sorted; the composition of the
// critical path; and actions that could take longer without lengthening the iteration.

#include <QComboBox>
#include <QLabel>
#include <functional>

#include "pipewright/gui/document/places.hpp"
#include "pipewright/gui/panels/figure_table.hpp"
#include "pipewright/gui/panels/panel.hpp"
#include "pipewright/gui/panels/share_bar.hpp"

namespace pipewright::gui {

/// Returns the savings of all parts, or of one; the row key is the index in `savings`.
FigureTable saving_table(const std::vector<loop::Saving>& savings,
                         std::optional<loop::Saving::Part> part);
/// Returns the compute actions, those with the most slack first; the row key is the event.
FigureTable slack_table(const search::Answer& answer, const std::vector<double>& slack,
                        std::size_t most);

class SavingsPanel : public Panel<> {
 public:
  /// `workspace` must outlive it.
  explicit SavingsPanel(Workspace& workspace, QWidget* parent = nullptr);
  void set_theme(const Theme& theme);

  /// Called with the events of the line that the user chooses.
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
