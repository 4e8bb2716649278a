#pragma once

// Reads an operator's argument from the JSON of an exported graph: {"as_int": 3}.

#include <functional>
#include <stdexcept>

#include "pipewright/plan/exported/operator_argument.hpp"
#include "pipewright/plan/json/json.hpp"

namespace pipewright::plan {

/// Thrown for an argument of a kind that no supported operator takes. The message gives the reason.
class UnknownArgument : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Reads an argument. `tensor_named` returns the number of the tensor that {"name": …} names.
/// Throws UnknownArgument.
ArgumentValue argument_value(const Json& said,
                             const std::function<int(const Json& named)>& tensor_named);

/// Returns the name of a data type from its number in torch's schema, such as "float32"; empty if
/// it is not supported.
std::string exported_dtype(std::int64_t number);

}  // namespace pipewright::plan
