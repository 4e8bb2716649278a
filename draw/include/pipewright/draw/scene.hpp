#pragma once

// A scene: boxes, lines and text on a page, as a value. Functions make scenes from timelines and
// charts; `to_svg` writes them, and a window can paint them.

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace pipewright::draw {

/// The style of an element. Colors are written as in SVG, "#1f2630". An empty color is not painted,
/// or left to the painter.
struct Look {
  std::string name{};  // class of the element, for users who search for it: "F", "idle", "critical"
  std::string fill{};  // "none" for lines whose enclosed area is not filled
  std::optional<double> fill_opacity{};
  std::string stroke{};
  std::optional<double> stroke_width{};  // in pixels
  std::optional<double> stroke_opacity{};
  bool round_joins = false;
  bool dashed = false;
  friend bool operator==(const Look&, const Look&) = default;
};

struct Box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
  std::string tooltip{};  // description of the box; empty if it is written next to it
  friend bool operator==(const Box&, const Box&) = default;
};

/// Boxes with the same look, painted together.
struct Boxes {
  Look look;
  std::vector<Box> boxes{};
  void add(Box box) { boxes.push_back(std::move(box)); }
  friend bool operator==(const Boxes&, const Boxes&) = default;
};

/// A movement of the pen from its current position.
struct Stroke {
  enum class Kind { Move, Line, Across, UpOrDown, Close };
  Kind kind = Kind::Move;
  double x = 0;  // the new position; after Close it is that of the last Move
  double y = 0;
  friend bool operator==(const Stroke&, const Stroke&) = default;
};

/// Lines with the same look, painted together. If they have a fill, it fills the enclosed shape.
struct Lines {
  Look look;
  std::vector<Stroke> strokes{};

  void move_to(double x, double y) { strokes.push_back({Stroke::Kind::Move, x, y}); }
  void line_to(double x, double y) { strokes.push_back({Stroke::Kind::Line, x, y}); }
  void across_to(double x) { strokes.push_back({Stroke::Kind::Across, x, strokes.back().y}); }
  void up_or_down_to(double y) { strokes.push_back({Stroke::Kind::UpOrDown, strokes.back().x, y}); }
  void close() { strokes.push_back({Stroke::Kind::Close, strokes.back().x, strokes.back().y}); }
  friend bool operator==(const Lines&, const Lines&) = default;
};

enum class Anchor { Start, Middle, End };

struct TextLook {
  double size = 11;
  std::string fill = "#333b45";
  Anchor anchor = Anchor::Start;
  bool bold = false;
  double turn = 0;  // degrees clockwise, around the anchor point
  friend bool operator==(const TextLook&, const TextLook&) = default;
};

struct Words {
  double x = 0;
  double y = 0;  // of the baseline
  std::string text;
  TextLook look{};
  friend bool operator==(const Words&, const Words&) = default;
};

using Element = std::variant<Boxes, Lines, Words>;

/// A page with a white background.
struct Scene {
  std::string title;
  double width = 0;
  double height = 0;
  std::vector<Element> elements{};  // later elements cover earlier ones

  void add(Element element) { elements.push_back(std::move(element)); }
  void words(double x, double y, std::string text, TextLook look) {
    add(Words{x, y, std::move(text), std::move(look)});
  }
  friend bool operator==(const Scene&, const Scene&) = default;
};

}  // namespace pipewright::draw
