#pragma once

// The headline: iteration time, bubble, peak memory and throughput of the shown timeline, with the
// difference from its reference.

#include <QLabel>
#include <QLayout>
#include <QPushButton>
#include <QTimer>
#include <QToolButton>
#include <QWidget>
#include <vector>

#include "pipewright/gui/document/workspace.hpp"
#include "pipewright/gui/look/theme.hpp"
#include "pipewright/gui/panels/headline.hpp"

namespace pipewright::gui {

class FiguresBar : public QWidget {
 public:
  /// `workspace` must outlive it.
  explicit FiguresBar(Workspace& workspace, QWidget* parent = nullptr);
  void set_theme(const Theme& theme);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  bool event(QEvent* event) override;

 private:
  struct Block {
    QWidget* box = nullptr;
    QLabel* caption = nullptr;
    QLabel* value = nullptr;
    QLabel* beside = nullptr;
    QLabel* note = nullptr;
  };
  QLayout* make_names();
  Block make_block(int place);
  QToolButton* make_side(const char* name, const char* text, const char* help,
                         Workspace::Shown shown);
  QLayout* make_buttons();
  QWidget* make_alert();
  void refresh(Workspace::Change change);
  void show_headline();
  void show_figure(const Block& block, const Headline::Figure& figure);
  void fit();
  void show_alert(const Headline& headline);
  void look_for_remedy();
  void apply_remedy();

  Workspace& workspace_;
  const Theme* theme_;
  QLabel* title_ = nullptr;
  QLabel* subtitle_ = nullptr;
  QString subtitle_text_, subtitle_help_;  // the full text, and the assumptions
  std::vector<Block> blocks_;
  std::size_t figures_ = 0;  // number of figures to show
  QToolButton* run_ = nullptr;
  QToolButton* plan_ = nullptr;
  QPushButton* keep_ = nullptr;
  QWidget* alert_ = nullptr;
  QLabel* alert_text_ = nullptr;
  QPushButton* alert_button_ = nullptr;
  QTimer remedy_timer_;
  enum class Search { None, Begun, Over };
  Search search_ = Search::None;
  std::optional<sim::Remedy> remedy_;
};

}  // namespace pipewright::gui
