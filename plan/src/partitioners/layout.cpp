#include "pipewright/plan/partitioners/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>

#include "pipewright/plan/error.hpp"

namespace pipewright::plan {
namespace {

constexpr std::size_t most_letters = 100'000;
constexpr int deepest_groups = 100;  // nesting depth of groups

/// Expands repeats into letters and stage ends, by recursive descent over groups.
class LayoutParser {
 public:
  explicit LayoutParser(const std::string& text) : text_(text) {}

  std::string run() {
    std::string letters = sequence(0);
    if (at_ < text_.size())
      fail("this ) closes no group");
    return letters;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw InputError(fmt::format("layout \"{}\", column {}: {}", text_, at_ + 1, message));
  }

  bool at(char letter) const { return at_ < text_.size() && text_[at_] == letter; }

  std::string sequence(int depth) {
    std::string letters;
    while (at_ < text_.size() && !at(')')) {
      if (at(',') || at(' ')) {
        ++at_;
        continue;
      }
      const std::string part = item(depth);
      const std::size_t times = repeats();
      if (part.size() * times + letters.size() > most_letters)
        fail(fmt::format("more than {} letters", most_letters));
      for (std::size_t i = 0; i < times; ++i)
        letters += part;
    }
    return letters;
  }

  std::string item(int depth) {
    if (at('(')) {
      if (depth == deepest_groups)
        fail("too many groups inside each other");
      const std::size_t opened = at_++;
      std::string part = sequence(depth + 1);
      if (!at(')')) {
        at_ = opened;
        fail("this ( is never closed");
      }
      ++at_;
      return part;
    }
    if (at('*'))
      fail("there is nothing before this * to repeat");
    if (std::string("EtmL|").find(text_[at_]) == std::string::npos)
      fail(fmt::format("'{}' is not known here (possible: E, t, m, L, |, groups and repeats)",
                       text_[at_]));
    return std::string(1, text_[at_++]);
  }

  std::size_t repeats() {
    if (!at('*'))
      return 1;
    ++at_;
    std::size_t times = 0;
    const std::size_t digits = at_;
    for (; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])); ++at_)
      times = std::min(most_letters + 1, 10 * times + static_cast<std::size_t>(text_[at_] - '0'));
    if (at_ == digits || times == 0)
      fail("a number of at least 1 is needed after *");
    if (at('*'))
      fail("there is nothing before this * to repeat");
    return times;
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

void check_order(const std::string& text, const Layout& layout) {
  const std::string letters =
      std::accumulate(layout.stages.begin(), layout.stages.end(), std::string());
  const auto refuse = [&](const std::string& message) {
    throw InputError(fmt::format("layout \"{}\": {}", text, message));
  };
  if (letters.empty())
    refuse("there is no layer in it: write a letter for each, such as Et|tL");
  if (letters.find('E', 1) != std::string::npos)
    refuse("E, the embedding, is possible as the first layer only");
  if (letters.find('L') < letters.size() - 1)
    refuse("L, the loss, is possible as the last layer only");
}

std::optional<char> letter_of(const std::string& kind) {
  if (kind == "embedding")
    return 'E';
  if (kind == "transformer-block" || kind == "mixture-block")
    return 't';
  if (kind == "norm-and-head")
    return 'L';
  return {};
}

/// Returns "Et*3" for "Ettt".
std::string compact(const std::string& letters) {
  std::string text;
  for (std::size_t begin = 0; begin < letters.size();) {
    const std::size_t end =
        std::min(letters.find_first_not_of(letters[begin], begin), letters.size());
    text += end - begin < 3 ? letters.substr(begin, end - begin)
                            : fmt::format("{}*{}", letters[begin], end - begin);
    begin = end;
  }
  return text;
}

}  // namespace

Layout parse_layout(const std::string& text) {
  Layout layout{{""}};
  for (const char letter : LayoutParser(text).run())
    if (letter == '|')
      layout.stages.emplace_back();
    else
      layout.stages.back() += letter;
  check_order(text, layout);
  return layout;
}

std::string to_string(const Layout& layout) {
  std::string text;
  const std::size_t last = layout.stages.size() - 1;  // no | follows the last stage
  for (std::size_t stage = 0; stage < last;) {
    std::size_t end = stage;
    while (end < last && layout.stages[end] == layout.stages[stage])
      ++end;
    const std::string letters = compact(layout.stages[stage]);
    if (end - stage == 1)
      text += letters + "|";
    else
      text += fmt::format("({}|)*{},", letters, end - stage);
    stage = end;
  }
  return text + compact(layout.stages[last]);
}

std::vector<int> transformer_layers(const Layout& layout) {
  std::vector<int> layers;
  for (const std::string& stage : layout.stages)
    layers.push_back(static_cast<int>(std::ranges::count(stage, 't')));
  return layers;
}

std::vector<int> layout_boundaries(const Layout& layout) {
  std::vector<int> boundaries{0};
  for (const std::string& stage : layout.stages)
    boundaries.push_back(boundaries.back() + static_cast<int>(stage.size()));
  return boundaries;
}

std::optional<std::string> find_layout_letters(const Model& model) {
  std::string letters;
  for (const Layer& layer : model.layers)
    if (const auto letter = letter_of(layer.kind))
      letters += *letter;
    else
      return {};
  return letters;
}

std::string layout_letters(const Model& model) {
  for (const Layer& layer : model.layers)
    if (!letter_of(layer.kind))
      throw InputError(fmt::format(
          "layer \"{}\" is of kind {}, for which layouts have no letter (E: embedding, t: "
          "transformer-block, L: norm-and-head)",
          layer.name, layer.kind));
  return *find_layout_letters(model);
}

Layout layout_of(const Model& model, const std::vector<int>& boundaries) {
  const std::string letters = layout_letters(model);
  Layout layout;
  for (std::size_t stage = 1; stage < boundaries.size(); ++stage)
    layout.stages.push_back(
        letters.substr(static_cast<std::size_t>(boundaries[stage - 1]),
                       static_cast<std::size_t>(boundaries[stage] - boundaries[stage - 1])));
  return layout;
}

std::vector<int> layout_boundaries(const Layout& layout, const Model& model) {
  const std::string wanted = layout_letters(model);
  const std::string given =
      std::accumulate(layout.stages.begin(), layout.stages.end(), std::string());
  if (given != wanted)
    throw InputError(fmt::format("the layout has the layers {}, but the model has {}",
                                 compact(given), compact(wanted)));
  return layout_boundaries(layout);
}

}  // namespace pipewright::plan
