#pragma once

// Finds the elements of an SVG, so that tests can check their positions.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace pipewright::draw {

/// Returns "" if every opening tag is closed in order and there is no bracket outside a tag.
inline std::string xml_fault(const std::string& text) {
  std::vector<std::string> open;
  std::size_t end = std::string::npos;  // of the last tag
  for (std::size_t begin = text.find('<'); begin != std::string::npos;
       begin = text.find('<', end)) {
    if (end != std::string::npos && text.find('>', end + 1) < begin)
      return "stray > before " + text.substr(begin, 40);
    end = text.find('>', begin);
    const std::string tag = text.substr(begin + 1, end - begin - 1);
    if (end == std::string::npos || tag.find('<') != std::string::npos)
      return "stray < before " + tag.substr(0, 40);
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0)
      return "an attribute without its end: " + tag;
    if (tag.front() == '?' || tag.back() == '/')
      continue;
    if (tag.front() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
      continue;
    }
    if (open.empty() || open.back() != tag.substr(1))
      return "unexpected " + tag;
    open.pop_back();
  }
  return open.empty() ? "" : "never closed: " + open.back();
}

/// Returns every text between `begin` and `end`.
inline std::vector<std::string> all_between(const std::string& text, const std::string& begin,
                                            const std::string& end) {
  std::vector<std::string> found;
  for (std::size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at)) {
    at += begin.size();
    found.push_back(text.substr(at, text.find(end, at) - at));
  }
  return found;
}

/// Returns each path of this class, without its brackets.
inline std::vector<std::string> paths(const std::string& svg, const std::string& name) {
  return all_between(svg, "<path class=\"" + name + "\"", "/>");
}

inline std::string attribute(const std::string& tag, const std::string& name) {
  return all_between(tag, " " + name + "=\"", "\"").at(0);
}

/// Returns how often exactly this text occurs in the figure.
inline int count_text(const std::string& svg, const std::string& text) {
  int count = 0;
  for (const std::string& element : all_between(svg, "<text", "</text>"))
    count += element.substr(element.find('>') + 1) == text ? 1 : 0;
  return count;
}

/// A text of the figure with an approximate box: letters are taken to be as wide as a digit.
struct Text {
  std::string text;
  double left = 0;
  double right = 0;
  double top = 0;
  double bottom = 0;
};

/// Returns the texts that are not rotated.
inline std::vector<Text> level_texts(const std::string& svg) {
  std::vector<Text> texts;
  for (const std::string& element : all_between(svg, "<text", "</text>")) {
    if (element.find(" transform=") != std::string::npos)
      continue;
    const std::string content = element.substr(element.find('>') + 1);
    const double size = std::stod(attribute(element, "font-size"));
    const double x = std::stod(attribute(element, "x"));
    const double y = std::stod(attribute(element, "y"));
    const double width = 0.556 * size * static_cast<double>(content.size());
    const auto anchor = all_between(element, " text-anchor=\"", "\"");
    const double before = anchor.empty() ? 0 : anchor.front() == "end" ? width : width / 2;
    texts.push_back({content, x - before, x - before + width, y - 0.7 * size, y});
  }
  return texts;
}

/// Returns "" if every text is on the page and none overlaps another.
inline std::string text_fault(const std::string& svg) {
  const double width = std::stod(attribute(svg, "width"));
  const double height = std::stod(attribute(svg, "height"));
  const auto texts = level_texts(svg);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const Text& a = texts[i];
    if (a.left < 0 || a.right > width || a.top < 0 || a.bottom > height)
      return a.text + " leaves the page";
    for (std::size_t j = i + 1; j < texts.size(); ++j) {
      const Text& b = texts[j];
      if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
        return a.text + " stands on " + b.text;
    }
  }
  return "";
}

/// Returns the corners of a path, whose boxes and relative steps are resolved.
inline std::vector<std::pair<double, double>> corners(const std::string& path) {
  std::vector<std::pair<double, double>> found;
  const std::string data = attribute(path, "d");
  double x = 0;
  double y = 0;
  for (std::size_t at = 0; at < data.size();) {
    const char command = data[at++];
    const auto number = [&] {
      std::size_t length = 0;
      const double value = std::stod(data.substr(at), &length);
      at += length;
      return value;
    };
    switch (command) {
      case 'M':
      case 'L':
        x = number();
        y = number();
        break;
      case 'H':
        x = number();
        break;
      case 'V':
        y = number();
        break;
      case 'h':
        x += number();
        break;
      case 'v':
        y += number();
        break;
      default:
        continue;  // z: back to the start
    }
    found.emplace_back(x, y);
  }
  return found;
}

}  // namespace pipewright::draw
