#include "pipewright/gui/window/window_settings.hpp"

namespace pipewright::gui {
namespace {

constexpr qsizetype most_recent = 10;

}  // namespace

QStringList with_recent(QStringList recent, const QString& path) {
  recent.removeAll(path);
  recent.prepend(path);
  return recent.mid(0, most_recent);
}

WindowSettings::WindowSettings(const QString& file)
    : settings_(file.isEmpty()
                    ? std::make_unique<QSettings>(QSettings::IniFormat, QSettings::UserScope,
                                                  "pipewright", "pipewright-gui")
                    : std::make_unique<QSettings>(file, QSettings::IniFormat)) {}

std::optional<QByteArray> WindowSettings::bytes(const char* key) const {
  return settings_->contains(key) ? std::optional(settings_->value(key).toByteArray())
                                  : std::nullopt;
}

void WindowSettings::keep(const QByteArray& geometry, const QByteArray& docks) {
  settings_->setValue("window/geometry", geometry);
  settings_->setValue("window/docks", docks);
}

std::optional<bool> WindowSettings::dark() const {
  return settings_->contains("window/dark")
             ? std::optional(settings_->value("window/dark").toBool())
             : std::nullopt;
}

void WindowSettings::keep_dark(bool dark) { settings_->setValue("window/dark", dark); }

QStringList WindowSettings::recent() const { return settings_->value("recent").toStringList(); }

void WindowSettings::keep_recent(const QString& path) {
  settings_->setValue("recent", with_recent(recent(), path));
}

bool WindowSettings::has_seen_tour() const { return settings_->value("tour/seen", false).toBool(); }
void WindowSettings::keep_seen_tour() { settings_->setValue("tour/seen", true); }

}  // namespace pipewright::gui
