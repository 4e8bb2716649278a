// Tables of recorded steps: they read back as written, and factors sampled from them for a job are
// finite numbers, for any subset of observed workers.

#include <cmath>
#include <string>
#include <string_view>

#include "pipewright/models/measured/recorded_steps.hpp"
#include "pipewright/sim/jitter/jitter.hpp"
#include "promise.hpp"
#include "reader.hpp"

namespace steps_fuzz {

using namespace pipewright;
using pipewright::fuzz::accepted;
using pipewright::fuzz::demand;

void try_factors(const sim::Jitter& jitter) {
  for (const int ranks : {1, 2, 5})
    for (int rank = 0; rank < ranks; ++rank)
      for (const char* const action : {"0F0", "3B7", "1SEND_F1", "0STEP"}) {
        const double* const factors = jitter.factors({.replica = 3, .rank = rank, .ranks = ranks},
                                                     plan::parse_instruction(action).value());
        for (int step = 0; factors != nullptr && step < jitter.steps(); ++step)
          demand(std::isfinite(factors[step]) && factors[step] >= 0, "a factor is a number");
      }
}

void try_text(std::string_view text) {
  const auto record = accepted([&] { return models::read_recorded_steps(text, "fuzz.csv"); });
  if (!record)
    return;
  demand(models::read_recorded_steps(models::to_csv(*record), "again.csv") == *record,
         "reads back as written");
  pipewright::fuzz::may_be_refused([&] { try_factors(sim::Jitter(*record)); });
}

const pipewright::fuzz::Reader reader("steps", try_text);

}  // namespace steps_fuzz
