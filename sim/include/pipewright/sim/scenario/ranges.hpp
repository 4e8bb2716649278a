#pragma once

// The fields of a scenario that a sweep varies, and the values of each of them.

#include <string>
#include <vector>

namespace pipewright::sim {

/// One field and its values, as written in an assignment.
struct SweptField {
  std::string field;
  std::vector<std::string> values;
};

/// Reads "pipeline.microbatches=4..64x2". Values are separated by commas outside brackets and
/// quotes; a..b counts by 1 between whole numbers, a..b+k by k, a..bxk multiplies by k. A range
/// ends with the last value that is not beyond b. Throws InputError for a range that never ends, is
/// empty, or has more than a hundred thousand values.
SweptField parse_swept_field(const std::string& assignment);

/// Returns the assignments of each combination; the last field varies fastest. Throws InputError if
/// there are more than a million.
std::vector<std::vector<std::string>> combinations(const std::vector<SweptField>& fields);

/// Returns the assignments that one assignment stands for: link.bandwidth and link.latency mean the
/// fields of both links of the cluster, if it has both.
std::vector<std::string> expanded(const std::string& assignment, bool has_link_between_nodes);

}  // namespace pipewright::sim
