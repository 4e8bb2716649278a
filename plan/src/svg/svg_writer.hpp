#pragma once

// Puts the elements of an SVG together. Looks are attributes rather than a style sheet, because
// several programs that papers are written with ignore style sheets.

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace pipewright::plan::drawing {

/// Text as it may stand between tags or in an attribute; a control character becomes a space.
inline std::string escaped_xml(std::string_view text) {
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

/// A coordinate to a hundredth of a pixel, as short as it can be written.
inline std::string pixels(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.')
    text.pop_back();
  return text == "-0" ? "0" : text;
}

/// The `d` attribute of a path.
class PathData {
 public:
  void move_to(double x, double y) { text_ += "M" + pixels(x) + " " + pixels(y); }
  void line_to(double x, double y) { text_ += "L" + pixels(x) + " " + pixels(y); }
  void across_to(double x) { text_ += "H" + pixels(x); }
  void up_or_down_to(double y) { text_ += "V" + pixels(y); }
  void close() { text_ += "z"; }
  void box(double x, double y, double width, double height) {
    move_to(x, y);
    text_ += "h" + pixels(width) + "v" + pixels(height) + "h" + pixels(-width) + "z";
  }
  bool empty() const { return text_.empty(); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

enum class Anchor { Start, Middle, End };

struct TextLook {
  double size = 11;
  const char* fill = "#333b45";
  Anchor anchor = Anchor::Start;
  bool bold = false;
  double turn = 0;  // degrees clockwise, around the point where the text is anchored
};

class SvgWriter {
 public:
  /// `attributes` stand in the tag as they are: `fill="none"`.
  void path(const PathData& data, std::string_view attributes) {
    if (data.empty())
      return;
    body_ += fmt::format("<path {} d=\"{}\"/>\n", attributes, data.text());
  }

  /// `y` is where the letters stand, not their top.
  void text(double x, double y, std::string_view content, const TextLook& look) {
    body_ += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\"{}{}{}>{}</text>\n",
                         pixels(x), pixels(y), pixels(look.size), look.fill, anchor(look.anchor),
                         look.bold ? " font-weight=\"bold\"" : "", turned(x, y, look.turn),
                         escaped_xml(content));
  }

  /// The whole file.
  std::string document(double width, double height, std::string_view title) const {
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
        "viewBox=\"0 0 {0} {1}\" font-family=\"Helvetica, Arial, sans-serif\">\n"
        "<title>{2}</title>\n"
        "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n"
        "{3}</svg>\n",
        pixels(width), pixels(height), escaped_xml(title), body_);
  }

 private:
  static const char* anchor(Anchor anchor) {
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

  static std::string turned(double x, double y, double degrees) {
    if (degrees == 0)
      return "";
    return fmt::format(" transform=\"rotate({} {} {})\"", pixels(degrees), pixels(x), pixels(y));
  }

  std::string body_;
};

}  // namespace pipewright::plan::drawing
