#pragma once

// What the window remembers: where it stood, what was open, how it looked.

#include <QSettings>
#include <QStringList>
#include <memory>
#include <optional>

namespace pipewright::gui {

class Remembered {
 public:
  /// It is kept in `file`, or, where that is empty, where the desktop keeps such things.
  explicit Remembered(const QString& file);

  std::optional<QByteArray> geometry() const { return bytes("window/geometry"); }
  std::optional<QByteArray> docks() const { return bytes("window/docks"); }
  void keep(const QByteArray& geometry, const QByteArray& docks);

  /// Nothing: as the desktop has it.
  std::optional<bool> dark() const;
  void keep_dark(bool dark);

  /// The last one first.
  QStringList recent() const;
  void keep_recent(const QString& path);

  bool has_seen_tour() const;
  void keep_seen_tour();

 private:
  std::optional<QByteArray> bytes(const char* key) const;
  std::unique_ptr<QSettings> settings_;
};

/// The list with `path` at its head, once, and no longer than a menu can be.
QStringList with_recent(QStringList recent, const QString& path);

}  // namespace pipewright::gui
