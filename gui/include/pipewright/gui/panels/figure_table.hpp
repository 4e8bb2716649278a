#pragma once

// A table of figures: a value, and the widget that shows one.

#include <QColor>
#include <QString>
#include <QStringList>
#include <QTableWidget>
#include <functional>
#include <vector>

#include "pipewright/gui/look/theme.hpp"

namespace pipewright::gui {

struct FigureCell {
  QString text;
  double number = 0;  // sort key, if the column is numeric
  double bar = 0;     // -1 to 1: length of a bar next to the text, relative to the column's largest
                      // value
  QString help{};     // tooltip with details
};

struct FigureTable {
  struct Column {
    QString title;
    QString help;
    bool is_number = false;
  };
  struct Row {
    std::vector<FigureCell> cells;
    int key = -1;           // passed to `on_chosen`
    bool is_total = false;  // bold, and stays at the bottom
  };
  std::vector<Column> columns;
  std::vector<Row> rows;
};

FigureCell words_cell(const QString& words);
FigureCell time_cell(double seconds);
/// Returns a cell with a signed time. `largest` is the time of a full bar; 0: no bar.
FigureCell difference_cell(double seconds, double largest = 0);
FigureCell bytes_cell(double bytes);

/// Returns the table as tab-separated values, in row order, with the titles first.
QString tsv_of(const FigureTable& table);

class FigureTableView : public QTableWidget {
 public:
  explicit FigureTableView(QWidget* parent = nullptr);
  void show_table(FigureTable table);
  void set_theme(const Theme& theme);
  const FigureTable& table() const { return table_; }
  /// Returns the visible table, as sorted by the user; Ctrl+C copies it.
  QString shown_tsv() const;

  std::function<void(int key)> on_chosen;  // by click or Enter

  /// Returns the width that its columns need.
  QSize sizeHint() const override;

 protected:
  void resizeEvent(QResizeEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  class Delegate;
  void show_row(int row);
  bool ends_in_words() const;
  void measure_columns();
  void fit_columns();
  void choose(int row);

  FigureTable table_;
  std::vector<char> has_negative_;  // by column: its bars extend in both directions
  std::vector<int> needed_;         // pixels, by column
  const Theme* theme_;
};

}  // namespace pipewright::gui
