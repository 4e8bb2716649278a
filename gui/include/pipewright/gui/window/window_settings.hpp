#pragma once

// The window's persistent settings: geometry, recent documents, appearance.

#include <QSettings>
#include <QStringList>
#include <memory>
#include <optional>

namespace pipewright::gui {

class WindowSettings {
 public:
  /// The settings are stored in `file` or, if that is empty, in the desktop's usual place.
  explicit WindowSettings(const QString& file);

  std::optional<QByteArray> geometry() const { return bytes("window/geometry"); }
  std::optional<QByteArray> docks() const { return bytes("window/docks"); }
  void keep(const QByteArray& geometry, const QByteArray& docks);

  /// Returns nothing to follow the desktop.
  std::optional<bool> dark() const;
  void keep_dark(bool dark);

  /// Returns the most recent one first.
  QStringList recent() const;
  void keep_recent(const QString& path);

  bool has_seen_tour() const;
  void keep_seen_tour();

 private:
  std::optional<QByteArray> bytes(const char* key) const;
  std::unique_ptr<QSettings> settings_;
};

/// Returns the list with `path` moved to its head, limited to the length of a menu.
QStringList with_recent(QStringList recent, const QString& path);

}  // namespace pipewright::gui
