#include "pipewright/plan/partition/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "pipewright/plan/error.hpp"

namespace pipewright::plan {
namespace {

/// Far above any real pipeline, and small enough that a typing error does not exhaust memory.
constexpr int largest_number = 99'999;

/// Parses "0:[0,1,4], 1:[2,3]".
class PlacementText {
 public:
  explicit PlacementText(std::string_view text) : text_(text) {}

  std::vector<int> run() {
    while (true) {
      const int rank = number("a rank");
      expect(':');
      expect('[');
      for (char next = ','; next == ',';) {
        place(number("a stage"), rank);
        next = peek() == ',' ? ',' : ']';
        expect(next);
      }
      if (peek() == '\0' && at_ == text_.size())
        break;
      expect(',');
    }
    for (std::size_t stage = 0; stage < rank_of_stage_.size(); ++stage)
      if (rank_of_stage_[stage] < 0)
        throw InputError(
            fmt::format("placement \"{}\": stage {} is on no rank, but stage {} is on rank {}",
                        text_, stage, rank_of_stage_.size() - 1, rank_of_stage_.back()));
    return std::move(rank_of_stage_);
  }

 private:
  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ')
      ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  [[noreturn]] void fail(std::string_view wanted) const {
    throw InputError(
        fmt::format("placement \"{}\", character {}: {} is needed here; write the stages of each "
                    "rank, such as 0:[0,1,4],1:[2,3]",
                    text_, at_ + 1, wanted));
  }

  void expect(char wanted) {
    if (peek() != wanted)
      fail(fmt::format("'{}'", wanted));
    ++at_;
  }

  int number(std::string_view what) {
    peek();
    int value = -1;
    const char* const begin = text_.data() + at_;
    const auto [end, bad] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (bad != std::errc() || value < 0 || value > largest_number)
      fail(fmt::format("{} from 0 to {}", what, largest_number));
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  void place(int stage, int rank) {
    const auto at = static_cast<std::size_t>(stage);
    if (rank_of_stage_.size() <= at)
      rank_of_stage_.resize(at + 1, -1);
    if (rank_of_stage_[at] >= 0)
      throw InputError(
          fmt::format("placement \"{}\": stage {} occurs twice, on rank {} and rank {}", text_,
                      stage, rank_of_stage_[at], rank));
    rank_of_stage_[at] = rank;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<int> rank_of_stage_;
};

}  // namespace

bool Placement::holds(int rank, int stage) const {
  return std::any_of(routes.begin(), routes.end(), [&](const std::vector<int>& route) {
    return route[static_cast<std::size_t>(stage)] == rank;
  });
}

std::vector<int> Placement::stages_on(int rank) const {
  std::vector<int> stages;
  for (int stage = 0; stage < stage_count(); ++stage)
    if (holds(rank, stage))
      stages.push_back(stage);
  return stages;
}

std::vector<int> Placement::ranks_of(int stage) const {
  std::vector<int> ranks;
  for (const auto& route : routes)
    ranks.push_back(route[static_cast<std::size_t>(stage)]);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

Placement one_route(std::vector<int> rank_of_stage) {
  return {.routes = {std::move(rank_of_stage)}, .route_of_microbatch = {}};
}

std::vector<int> loop_placement(int ranks, int stages) {
  std::vector<int> rank_of_stage(static_cast<std::size_t>(stages));
  for (int stage = 0; stage < stages; ++stage)
    rank_of_stage[static_cast<std::size_t>(stage)] = stage % ranks;
  return rank_of_stage;
}

std::vector<int> v_placement(int ranks, int stages) {
  if (stages % ranks != 0)
    throw InputError(
        fmt::format("{} stages cannot be folded over {} ranks: a V placement needs a multiple of "
                    "{}, such as {}",
                    stages, ranks, ranks, (stages / ranks + 1) * ranks));
  std::vector<int> rank_of_stage;
  for (int stage = 0; stage < stages; ++stage) {
    const bool down = stage / ranks % 2 == 0;
    rank_of_stage.push_back(down ? stage % ranks : ranks - 1 - stage % ranks);
  }
  return rank_of_stage;
}

std::vector<int> parse_placement(std::string_view text) { return PlacementText(text).run(); }

std::vector<std::vector<int>> stages_of_rank(const std::vector<int>& rank_of_stage, int ranks) {
  std::vector<std::vector<int>> stages(static_cast<std::size_t>(ranks));
  for (std::size_t stage = 0; stage < rank_of_stage.size(); ++stage)
    stages[static_cast<std::size_t>(rank_of_stage[stage])].push_back(static_cast<int>(stage));
  return stages;
}

}  // namespace pipewright::plan
