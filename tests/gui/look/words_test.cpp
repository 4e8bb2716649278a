#include "pipewright/gui/look/words.hpp"

#include <cmath>

#include "pipewright/gui/look/theme.hpp"
#include "support/catch.hpp"

namespace words_test {

using namespace pipewright::gui;

TEST_CASE("Times have four digits in a suitable unit", "[gui][look]") {
  CHECK(time_words(0) == "0 ms");
  CHECK(time_words(12.345) == "12.35 s");
  CHECK(time_words(1.23456e-3) == "1.235 ms");
  CHECK(time_words(99.9996e-6) == "100.0 µs");
  CHECK(time_words(0.99996) == "1.000 s");  // not 1000 ms
  CHECK(time_words(3e-12) == "0.003 ns");
  CHECK(time_difference(1.2e-3) == "+1.200 ms");
  CHECK(time_difference(-3e-3) == "-3.000 ms");
}

TEST_CASE("Sizes are in powers of ten, fractions in percent", "[gui][look]") {
  CHECK(byte_words(1.25e9) == "1.250 GB");
  CHECK(byte_words(999) == "999 B");
  CHECK(percent_words(0.1234) == "12.3 %");
}

TEST_CASE("Singular and plural are distinguished, and sentences are capitalized", "[gui][look]") {
  CHECK(counted(1, "rank", "ranks") == "1 rank");
  CHECK(counted(std::size_t{0}, "rank", "ranks") == "0 ranks");
  CHECK(upper_first("rank 3") == "Rank 3");
  CHECK(upper_first("") == "");
}

TEST_CASE("An action is described in words, and other texts are not", "[gui][look]") {
  CHECK(action_words("3B5") == "stage 3: backward of microbatch 5");
  CHECK(action_words("0SEND_F2") == "stage 0: sends the activation of microbatch 2");
  CHECK(action_words("1STEP") == "stage 1: optimizer step");
  CHECK(action_words("aten::mm").isEmpty());
}

TEST_CASE("Every kind of action has a class, and all others share one", "[gui][look]") {
  using Kind = pipewright::plan::InstructionKind;
  CHECK(kind_class(Kind::Forward) != kind_class(Kind::Backward));
  CHECK(kind_class(Kind::InputGradient) != kind_class(Kind::WeightGradient));
  CHECK(kind_class(Kind::ShareLoss) == class_count - 1);
}

TEST_CASE("Text is legible on every background, light and dark", "[gui][look]") {
  const auto luminance = [](const QColor& color) {
    const auto linear = [](double level) {
      return level <= 0.04045 ? level / 12.92 : std::pow((level + 0.055) / 1.055, 2.4);
    };
    return 0.2126 * linear(color.redF()) + 0.7152 * linear(color.greenF()) +
           0.0722 * linear(color.blueF());
  };
  const auto contrast = [&](const QColor& a, const QColor& b) {
    const double high = std::max(luminance(a), luminance(b)),
                 low = std::min(luminance(a), luminance(b));
    return (high + 0.05) / (low + 0.05);
  };
  // WCAG 2.1 requires 4.5.
  for (const Theme* theme : {&light_theme(), &dark_theme()})
    for (const QColor& ground : {theme->window, theme->panel}) {
      CAPTURE(theme->dark, ground.name().toStdString());
      CHECK(contrast(theme->text, ground) > 7);
      CHECK(contrast(theme->soft_text, ground) > 4.5);
      CHECK(contrast(theme->warning, ground) > 4.5);
      CHECK(contrast(theme->accent, ground) > 4.5);
    }
}

}  // namespace words_test
