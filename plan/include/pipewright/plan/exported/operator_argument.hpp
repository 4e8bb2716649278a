#pragma once

// Arguments of an operator call in an exported graph.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace pipewright::plan {

/// A tensor of the graph, by its number.
struct TensorArgument {
  int value = 0;
  friend bool operator==(const TensorArgument&, const TensorArgument&) = default;
};
/// A list of tensors; -1: None at this position.
struct TensorsArgument {
  std::vector<int> values;
  friend bool operator==(const TensorsArgument&, const TensorsArgument&) = default;
};
struct DtypeArgument {
  std::string dtype;  // such as "float32"
  friend bool operator==(const DtypeArgument&, const DtypeArgument&) = default;
};
enum class MemoryOrder { Contiguous, ChannelsLast, ChannelsLast3d, Preserve };
/// A device argument. It has no value, because each rank computes everything on its own device.
struct DeviceArgument {
  friend bool operator==(const DeviceArgument&, const DeviceArgument&) = default;
};
/// A layout argument. It has no value, because all tensors are strided.
struct LayoutArgument {
  friend bool operator==(const LayoutArgument&, const LayoutArgument&) = default;
};

/// std::monostate means None.
using ArgumentValue =
    std::variant<std::monostate, bool, std::int64_t, double, std::string, TensorArgument,
                 TensorsArgument, std::vector<std::int64_t>, std::vector<double>, std::vector<bool>,
                 DtypeArgument, MemoryOrder, DeviceArgument, LayoutArgument>;

struct OperatorArgument {
  std::string name;  // in the operator's schema
  ArgumentValue value;
  friend bool operator==(const OperatorArgument&, const OperatorArgument&) = default;
};

}  // namespace pipewright::plan
