#include "pipewright/plan/cluster/device_kind.hpp"

#include "support/catch.hpp"

namespace device_kind_test {

using pipewright::plan::device_kind;

TEST_CASE("The kind of a GPU is found in any form of its name", "[plan][cluster]") {
  CHECK(device_kind("A100-80GB (presumably)") == "A100");
  CHECK(device_kind("NVIDIA H100-SXM5-80GB") == "H100");
  CHECK(device_kind("NVIDIA Blackwell GPU (GB200)") == "GB200");
  CHECK(device_kind("B200-SXM-180GB") == "B200");
  CHECK(device_kind("rtx4090") == "RTX4090");
  CHECK(device_kind("dgx_h100") == "H100");
  CHECK(device_kind("a device of 80 GB").empty());
  CHECK(device_kind("").empty());
}

}  // namespace device_kind_test
