// Looks become attributes and not a style sheet, because several programs that typeset papers
// ignore style sheets.

#include "pipewright/draw/svg.hpp"

#include <fmt/format.h>

#include <string_view>

#include "pixels.hpp"

namespace pipewright::draw {
namespace {

/// Escapes text for use between tags or in an attribute. A control character becomes a space.
std::string escaped_xml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out;
}

std::string attributes(const Look& look) {
  std::string all;
  const auto add = [&](std::string_view name, std::string_view value) {
    all += fmt::format(" {}=\"{}\"", name, value);
  };
  if (!look.name.empty())
    add("class", look.name);
  if (!look.fill.empty())
    add("fill", look.fill);
  if (look.fill_opacity)
    add("fill-opacity", fmt::format("{:.2g}", *look.fill_opacity));
  if (!look.stroke.empty())
    add("stroke", look.stroke);
  if (look.stroke_width)
    add("stroke-width", pixels(*look.stroke_width));
  if (look.stroke_opacity)
    add("stroke-opacity", fmt::format("{:.2g}", *look.stroke_opacity));
  if (look.round_joins)
    add("stroke-linejoin", "round");
  if (look.dashed)
    add("stroke-dasharray", "6 3");
  return all;
}

std::string path_data(const Boxes& boxes) {
  std::string data;
  for (const Box& box : boxes.boxes)
    data += "M" + pixels(box.x) + " " + pixels(box.y) + "h" + pixels(box.width) + "v" +
            pixels(box.height) + "h" + pixels(-box.width) + "z";
  return data;
}

std::string path_data(const Lines& lines) {
  std::string data;
  for (const Stroke& stroke : lines.strokes)
    switch (stroke.kind) {
      case Stroke::Kind::Move:
        data += "M" + pixels(stroke.x) + " " + pixels(stroke.y);
        break;
      case Stroke::Kind::Line:
        data += "L" + pixels(stroke.x) + " " + pixels(stroke.y);
        break;
      case Stroke::Kind::Across:
        data += "H" + pixels(stroke.x);
        break;
      case Stroke::Kind::UpOrDown:
        data += "V" + pixels(stroke.y);
        break;
      case Stroke::Kind::Close:
        data += "z";
        break;
    }
  return data;
}

const char* anchored(Anchor anchor) {
  switch (anchor) {
    case Anchor::Start:
      return "";
    case Anchor::Middle:
      return " text-anchor=\"middle\"";
    case Anchor::End:
      return " text-anchor=\"end\"";
  }
  return "";
}

std::string turned(double x, double y, double degrees) {
  if (degrees == 0)
    return "";
  return fmt::format(" transform=\"rotate({} {} {})\"", pixels(degrees), pixels(x), pixels(y));
}

struct ElementWriter {
  std::string operator()(const Boxes& boxes) const { return path(boxes); }
  std::string operator()(const Lines& lines) const { return path(lines); }
  std::string operator()(const Words& words) const {
    const TextLook& look = words.look;
    return fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\"{}{}{}>{}</text>\n",
                       pixels(words.x), pixels(words.y), pixels(look.size), look.fill,
                       anchored(look.anchor), look.bold ? " font-weight=\"bold\"" : "",
                       turned(words.x, words.y, look.turn), escaped_xml(words.text));
  }

  template <class Shape>
  static std::string path(const Shape& shape) {
    const std::string data = path_data(shape);
    return data.empty() ? "" : fmt::format("<path{} d=\"{}\"/>\n", attributes(shape.look), data);
  }
};

}  // namespace

std::string to_svg(const Scene& scene) {
  std::string body;
  for (const Element& element : scene.elements)
    body += std::visit(ElementWriter{}, element);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" font-family=\"Helvetica, Arial, sans-serif\">\n"
      "<title>{2}</title>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n"
      "{3}</svg>\n",
      pixels(scene.width), pixels(scene.height), escaped_xml(scene.title), body);
}

}  // namespace pipewright::draw
