#include "pipewright/gui/window/pictures.hpp"

#include <fmt/format.h>

#include <QFileInfo>
#include <QImage>
#include <QPageSize>
#include <QPdfWriter>

#include "pipewright/draw/svg.hpp"
#include "pipewright/draw/timeline.hpp"
#include "pipewright/gui/window/scene_painter.hpp"
#include "pipewright/loop/predict/prediction.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::gui {
namespace {

constexpr std::uint64_t most_events = 500'000;
constexpr double png_scale = 2;  // suits a screen with twice the pixel density
constexpr double widest_png = 20'000;

void require_drawable(const plan::EventTable& table) {
  if (table.size() > most_events)
    throw plan::InputError(
        fmt::format("{} has {} events, but a figure can have at most {}: save one of its steps",
                    table.name.empty() ? "the timeline" : table.name, table.size(), most_events));
}

/// Returns the title that `run` gives its own figure.
std::string title_of(const plan::Scenario& scenario) {
  return fmt::format("{}: {}, {} ranks, {} microbatches", scenario.name,
                     scenario.pipeline.schedule.label(), scenario.pipeline.ranks,
                     scenario.pipeline.microbatches);
}

draw::Scene plan_picture(const Workspace& workspace) {
  const search::Answer* answer = workspace.answer();
  if (answer == nullptr)
    throw plan::InputError(workspace.refusal().text.empty() ? "there is nothing to draw yet"
                                                            : workspace.refusal().text);
  require_drawable(answer->table);
  const plan::Scenario& scenario = workspace.draft().scenario;
  return draw::timeline_scene({loop::predict(scenario, answer->plan).timeline}, scenario.name);
}

void save_pdf(const draw::Scene& scene, const std::filesystem::path& file) {
  QPdfWriter writer(QString::fromStdString(file.string()));
  writer.setTitle(QString::fromStdString(scene.title));
  writer.setCreator("Pipewright");
  // A unit of SVG is 1/96 inch.
  writer.setPageSize(QPageSize(QSizeF(scene.width, scene.height) * 72 / 96, QPageSize::Point, "",
                               QPageSize::ExactMatch));
  writer.setPageMargins({0, 0, 0, 0});
  writer.setResolution(960);
  QPainter painter;
  if (!painter.begin(&writer))
    throw plan::InputError(fmt::format("{}: cannot be written", file.string()));
  painter.scale(10, 10);
  paint_scene(painter, scene);
}

void save_png(const draw::Scene& scene, const std::filesystem::path& file) {
  const double scale = std::min(png_scale, widest_png / std::max({scene.width, scene.height, 1.0}));
  QImage image((QSizeF(scene.width, scene.height) * scale).toSize(), QImage::Format_RGB32);
  if (image.isNull())
    throw plan::InputError(fmt::format("{}: the picture is too large", file.string()));
  {
    QPainter painter(&image);
    painter.scale(scale, scale);
    paint_scene(painter, scene);
  }
  if (!image.save(QString::fromStdString(file.string()), "PNG"))
    throw plan::InputError(fmt::format("{}: cannot be written", file.string()));
}

}  // namespace

draw::Scene picture_of(const Workspace& workspace) {
  if (workspace.shown() == Workspace::Shown::Plan)
    return plan_picture(workspace);
  const Document& document = workspace.document();
  if (document.run && document.run->measured) {
    require_drawable(*document.measured);
    return draw::timeline_scene({document.run->predicted, *document.run->measured},
                                title_of(document.run->scenario));
  }
  std::vector<plan::Timeline> timelines;
  for (const auto& table : {document.predicted, document.measured})
    if (table) {
      require_drawable(*table);
      timelines.push_back(plan::timeline_of(*table));
    }
  if (timelines.empty())
    throw plan::InputError("there is nothing to draw yet: open a scenario, a run or a timeline");
  return draw::timeline_scene(timelines, document.title);
}

void save_picture(const draw::Scene& scene, const std::filesystem::path& file) {
  const QString kind = QFileInfo(QString::fromStdString(file.string())).suffix().toLower();
  if (kind == "svg")
    plan::write_file(file, draw::to_svg(scene));
  else if (kind == "pdf")
    save_pdf(scene, file);
  else if (kind == "png")
    save_png(scene, file);
  else
    throw plan::InputError(
        fmt::format("{}: pictures are .svg, .pdf or .png", file.filename().string()));
}

}  // namespace pipewright::gui
