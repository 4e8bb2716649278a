#pragma once

// What an operator of an exported graph is called with.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace pipewright::plan {

/// A tensor of the graph, by its number there.
struct TensorArgument {
  int value = 0;
  friend bool operator==(const TensorArgument&, const TensorArgument&) = default;
};
/// A list of tensors; -1: none in this place.
struct TensorsArgument {
  std::vector<int> values;
  friend bool operator==(const TensorsArgument&, const TensorsArgument&) = default;
};
struct DtypeArgument {
  std::string dtype;  // such as "float32"
  friend bool operator==(const DtypeArgument&, const DtypeArgument&) = default;
};
enum class MemoryOrder { Contiguous, ChannelsLast, ChannelsLast3d, Preserve };
/// Where a tensor is made; all that one rank computes is on the rank's own device.
struct DeviceArgument {
  friend bool operator==(const DeviceArgument&, const DeviceArgument&) = default;
};
/// That a tensor is strided, as all are here.
struct LayoutArgument {
  friend bool operator==(const LayoutArgument&, const LayoutArgument&) = default;
};

/// std::monostate: None.
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
