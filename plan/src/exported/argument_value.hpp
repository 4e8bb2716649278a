#pragma once

// An argument of an operator, as the JSON of an exported graph has it: {"as_int": 3}.

#include <functional>
#include <stdexcept>

#include "pipewright/plan/exported/operator_argument.hpp"
#include "pipewright/plan/json/json.hpp"

namespace pipewright::plan {

/// An argument that no operator here is called with; says why.
class UnknownArgument : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// `tensor_named`: the number of the tensor that {"name": …} names. Throws UnknownArgument.
ArgumentValue argument_value(const Json& said,
                             const std::function<int(const Json& named)>& tensor_named);

/// The word of a type by its number in torch's schema: "float32"; empty for one that no tensor here
/// has.
std::string exported_dtype(std::int64_t number);

}  // namespace pipewright::plan
