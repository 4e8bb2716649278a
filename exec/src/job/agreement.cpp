#include "pipewright/exec/job/agreement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "keys.hpp"
#include "pipewright/exec/job/job.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "watch.hpp"

namespace pipewright::exec {
namespace {

using FactsOfRanks = std::vector<std::map<std::string, std::string>>;

FactsOfRanks shared(Job& job, const Facts& facts) {
  const auto all = std::make_shared<FactsOfRanks>();
  const auto own = std::map<std::string, std::string>(facts.begin(), facts.end());
  const auto store = job.watch().store("agreement");
  job.watch().run_interruptibly(
      "the comparison of all ranks' settings",
      [all, own, store, rank = job.rank(), size = job.size()] {
        store->set(keys::facts(rank), plan::Json(own).dump());
        for (int other = 0; other < size; ++other)
          all->push_back(plan::Json::parse(store->get_to_str(keys::facts(other))));
      });
  return *all;
}

/// Returns "version: ranks 0, 1 have 1.2; rank 2 has 1.3", or an empty string if all agree.
std::string disagreement(const std::string& name, const FactsOfRanks& all) {
  std::vector<std::pair<std::string, std::vector<int>>> ranks_of;  // by value, in order of rank
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const auto found = all[rank].find(name);
    const std::string value = found == all[rank].end() ? "none" : found->second;
    auto same = std::find_if(ranks_of.begin(), ranks_of.end(),
                             [&](const auto& known) { return known.first == value; });
    if (same == ranks_of.end())
      same = ranks_of.insert(same, {value, {}});
    same->second.push_back(static_cast<int>(rank));
  }
  if (ranks_of.size() == 1)
    return "";
  std::vector<std::string> parts;
  for (const auto& [value, ranks] : ranks_of)
    parts.push_back(
        fmt::format("{} {} {}", ranks_text(ranks), ranks.size() == 1 ? "has" : "have", value));
  return fmt::format("{}: {}", name, fmt::join(parts, "; "));
}

}  // namespace

void require_agreement(Job& job, const Facts& facts) {
  const FactsOfRanks all = shared(job, facts);
  std::map<std::string, std::string> names;
  for (const auto& of_rank : all)
    names.insert(of_rank.begin(), of_rank.end());
  std::vector<std::string> lines;
  for (const auto& [name, value] : names)
    if (std::string line = disagreement(name, all); !line.empty())
      lines.push_back(std::move(line));
  if (!lines.empty())
    throw plan::InputError(
        fmt::format("the ranks of the job do not agree\n{}", plan::listed_lines(lines)));
}

}  // namespace pipewright::exec
