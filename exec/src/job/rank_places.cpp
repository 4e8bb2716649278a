#include "pipewright/exec/job/rank_places.hpp"

#include <numeric>

namespace pipewright::exec {

RankPlaces::RankPlaces(int ranks, int spares, int copies)
    : ranks_(ranks), spares_(spares), copies_(copies) {
  take_back();
}

bool RankPlaces::give_up(int rank) {
  const auto place = of_ranks_.begin() + rank;
  const int given_up = *place;
  if (!spare_.empty()) {
    *place = spare_.front();
    spare_.erase(spare_.begin());
  } else if (static_cast<int>(of_ranks_.size()) > copies_) {
    of_ranks_.erase(place);
    for (; of_ranks_.size() % static_cast<std::size_t>(copies_) != 0; of_ranks_.pop_back())
      spare_.insert(spare_.begin(), of_ranks_.back());
  } else {
    return false;
  }
  given_up_.push_back(given_up);
  return true;
}

void RankPlaces::take_back() {
  of_ranks_.resize(static_cast<std::size_t>(ranks_));
  std::iota(of_ranks_.begin(), of_ranks_.end(), 0);
  spare_.resize(static_cast<std::size_t>(spares_));
  std::iota(spare_.begin(), spare_.end(), ranks_);
  given_up_.clear();
}

}  // namespace pipewright::exec
