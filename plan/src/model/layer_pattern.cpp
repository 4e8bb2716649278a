#include "pipewright/plan/model/layer_pattern.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/model/size_ranges.hpp"

namespace pipewright::plan {
namespace {

class PatternReader {
 public:
  explicit PatternReader(std::string_view text) : text_(text) {}

  /// Parses a sum of lists or of products of lists. Returns nothing if the text is something else,
  /// or longer than any model.
  std::optional<std::vector<bool>> sum() {
    std::vector<bool> flags;
    do {
      const auto part = product();
      if (!part || flags.size() + part->size() > most)
        return {};
      flags.insert(flags.end(), part->begin(), part->end());
    } while (take('+'));
    return flags;
  }
  bool at_end() {
    skip_blanks();
    return text_.empty();
  }

 private:
  static constexpr std::size_t most = static_cast<std::size_t>(most_layers);

  std::optional<std::vector<bool>> product() {
    auto once = list();
    while (once && take('*')) {
      const auto times = number();
      if (!times || once->size() * static_cast<std::size_t>(*times) > most)
        return {};
      std::vector<bool> all;
      for (int i = 0; i < *times; ++i)
        all.insert(all.end(), once->begin(), once->end());
      once = std::move(all);
    }
    return once;
  }

  std::optional<std::vector<bool>> list() {
    if (take('(')) {
      if (++depth_ > deepest)
        return {};
      auto inside = sum();
      --depth_;
      return take(')') ? inside : std::nullopt;
    }
    if (!take('['))
      return {};
    std::vector<bool> flags;
    while (!take(']')) {
      const auto flag = number();
      if (!flag || *flag > 1 || flags.size() >= most)
        return {};
      flags.push_back(*flag == 1);
      if (!take(',') && !text_.starts_with(']'))
        return {};
    }
    return flags;
  }

  std::optional<int> number() {
    skip_blanks();
    int value = 0;
    const auto end = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (end.ec != std::errc() || value < 0 || value > static_cast<int>(most))
      return {};
    text_.remove_prefix(static_cast<std::size_t>(end.ptr - text_.data()));
    return value;
  }

  void skip_blanks() {
    while (!text_.empty() && text_.front() == ' ')
      text_.remove_prefix(1);
  }
  bool take(char letter) {
    skip_blanks();
    if (!text_.starts_with(letter))
      return false;
    text_.remove_prefix(1);
    skip_blanks();
    return true;
  }

  static constexpr int deepest = 20;
  std::string_view text_;
  int depth_ = 0;
};

}  // namespace

std::vector<bool> layer_pattern(std::string_view text, int layers) {
  int every = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), every);
  if (end.ec == std::errc() && end.ptr == text.data() + text.size() && every > 0) {
    std::vector<bool> flags;
    for (int layer = 0; layer < layers; ++layer)
      flags.push_back(layer % every == 0);
    return flags;
  }
  PatternReader reader(text);
  const auto flags = reader.sum();
  if (!flags || !reader.at_end())
    throw InputError(fmt::format(
        "\"{}\" is neither a distance of layers nor a list such as ([0]*3+[1]*58)", text));
  if (flags->size() != static_cast<std::size_t>(layers))
    throw InputError(fmt::format("the list has {} layers, the model {}", flags->size(), layers));
  return *flags;
}

}  // namespace pipewright::plan
