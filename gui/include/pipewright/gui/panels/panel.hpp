#pragma once

// Base class of panels that show the workspace. A panel is rebuilt when the workspace changes, but
// only while it is visible; otherwise as soon as it is shown.

#include <QTimer>
#include <QWidget>
#include <algorithm>
#include <initializer_list>
#include <vector>

#include "pipewright/gui/document/workspace.hpp"
#include "pipewright/gui/look/theme.hpp"

namespace pipewright::gui {

template <class Widget = QWidget>
class Panel : public Widget {
 public:
  /// `workspace` must outlive it. Rebuilds after these changes, `after_ms` milliseconds after the
  /// last one.
  Panel(Workspace& workspace, std::initializer_list<Workspace::Change> shown, QWidget* parent,
        int after_ms = 0)
      : Widget(parent), workspace_(workspace), theme_(&light_theme()) {
    later_.setSingleShot(true);
    later_.setInterval(after_ms);
    QObject::connect(&later_, &QTimer::timeout, this, [this] {
      if (stale_ && this->isVisible())
        renew();
    });
    workspace.observe([this, of = std::vector(shown)](Workspace::Change change) {
      if (std::find(of.begin(), of.end(), change) == of.end())
        return;
      if (later_.interval() == 0 || !this->isVisible())
        outdate();
      else {
        stale_ = true;
        later_.start();
      }
    });
  }

 protected:
  void showEvent(QShowEvent* event) override {
    Widget::showEvent(event);
    if (stale_)
      renew();
  }

  /// Shows the current state.
  virtual void rebuild() = 0;
  /// Rebuilds at once, visible or not.
  void renew() {
    stale_ = false;
    rebuild();
  }
  /// Rebuilds at once if visible.
  void outdate() {
    stale_ = true;
    if (this->isVisible())
      renew();
  }

  Workspace& workspace_;
  const Theme* theme_;

 private:
  bool stale_ = true;
  QTimer later_;
};

}  // namespace pipewright::gui
