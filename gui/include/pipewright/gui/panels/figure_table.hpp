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
  double number = 0;  // what it is sorted by, where the column is of numbers
  double bar = 0;     // -1 to 1: drawn beside the text, as a part of the column's largest
  QString help{};     // more of it, to whoever points at it
};

struct FigureTable {
  struct Column {
    QString title;
    QString help;
    bool is_number = false;
  };
  struct Row {
    std::vector<FigureCell> cells;
    int key = -1;           // what `on_chosen` is told
    bool is_total = false;  // bold, and stays at the bottom
  };
  std::vector<Column> columns;
  std::vector<Row> rows;
};

FigureCell words_cell(const QString& words);
FigureCell time_cell(double seconds);
/// A time with its sign; `largest` is what a whole bar stands for, 0: no bar.
FigureCell difference_cell(double seconds, double largest = 0);
FigureCell bytes_cell(double bytes);

/// The table as tab-separated values, in the order of the rows, with the titles above.
QString tsv_of(const FigureTable& table);

class FigureTableView : public QTableWidget {
 public:
  explicit FigureTableView(QWidget* parent = nullptr);
  void show_table(FigureTable table);
  void set_theme(const Theme& theme);
  const FigureTable& table() const { return table_; }
  /// What stands in the table now, sorted as it is: Ctrl+C copies it.
  QString shown_tsv() const;

  std::function<void(int key)> on_chosen;  // by click or Enter

  /// As wide as its columns need to be.
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
  std::vector<char> has_negative_;  // by column: its bars go both ways
  std::vector<int> needed_;         // pixels, by column
  const Theme* theme_;
};

}  // namespace pipewright::gui
