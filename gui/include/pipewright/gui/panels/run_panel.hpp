#pragma once

// A training that was started from the window: its progress, loss and step time, and an alarm when
// it leaves the prediction.

#include <QCheckBox>
#include <QLabel>
#include <QLayout>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QStackedWidget>
#include <QWidget>
#include <utility>
#include <vector>

#include "pipewright/gui/panels/panel_catalog.hpp"

namespace pipewright::gui {

/// A small line chart over the steps, with the band that it should stay in.
class SmallChart : public QWidget {
 public:
  explicit SmallChart(const QString& title, QWidget* parent = nullptr);
  void set_theme(const Theme& theme);
  /// `last` is the text next to the title.
  void show_points(std::vector<std::pair<double, double>> points, const QString& last,
                   std::optional<std::pair<double, double>> band = {});
  QSize sizeHint() const override { return {260, 120}; }
  std::size_t points() const { return points_.size(); }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  std::pair<double, double> range() const;

  QString title_, last_;
  const Theme* theme_;
  std::vector<std::pair<double, double>> points_;
  std::optional<std::pair<double, double>> band_;
};

class RunPanel : public QWidget {
 public:
  /// Its buttons trigger commands of the host: "run.start", "run.stop", … `host` must outlive the
  /// panel.
  explicit RunPanel(PanelHost& host, QWidget* parent = nullptr);
  void set_theme(const Theme& theme);

 private:
  QLayout* make_state();
  QWidget* make_figures();
  QPushButton* make_button(const char* text, const char* help, const char* command);
  QLayout* make_buttons();
  QWidget* make_words();
  void refresh();
  void show_state();
  void show_steps(const RunWatch& watch);

  PanelHost& host_;
  Workspace& workspace_;
  RunControl& control_;
  const Theme* theme_;
  QLabel* heading_ = nullptr;
  QLabel* says_ = nullptr;
  QLabel* alarm_ = nullptr;
  QLabel* step_ = nullptr;
  QLabel* loss_ = nullptr;
  QLabel* speed_ = nullptr;
  QLabel* left_ = nullptr;
  QPushButton* run_ = nullptr;
  QPushButton* train_ = nullptr;
  QPushButton* stop_ = nullptr;
  QPushButton* resume_ = nullptr;
  QPushButton* open_ = nullptr;
  QCheckBox* follow_ = nullptr;
  SmallChart* losses_ = nullptr;
  SmallChart* times_ = nullptr;
  QPlainTextEdit* words_ = nullptr;
  QWidget* figures_ = nullptr;
};

}  // namespace pipewright::gui
