#pragma once

// The input of Piper (Tarnawski, Narayanan, Phanishayee, NeurIPS 2021): a graph of layers, each
// with variants by tensor parallelism and recomputation, devices, their memory and bandwidth.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace pipewright::planners {

/// One way to run a node on a number of devices.
struct PiperVariant {
  std::string name{};               // "vanilla" or "activation recomp"
  double seconds = 0;               // forward and backward of a sample
  double bytes_per_microbatch = 0;  // held for each microbatch in flight
  double bytes = 0;                 // held in any case
  friend bool operator==(const PiperVariant&, const PiperVariant&) = default;
};

/// A node on `tensor` devices. Its variants differ only in time and memory.
struct PiperSplit {
  int tensor = 1;
  double parameter_bytes = 0;
  std::map<int, double> receive_bytes{};  // added to the edge from a node if it crosses stages
  std::map<int, double> send_bytes{};     // the same for the edge to a node
  std::vector<PiperVariant> variants{};   // one or two
  friend bool operator==(const PiperSplit&, const PiperSplit&) = default;
};

struct PiperNode {
  std::string name{};
  std::vector<PiperSplit> splits{};  // by `tensor`, ascending
  friend bool operator==(const PiperNode&, const PiperNode&) = default;
};

struct PiperEdge {
  int from = 0;  // indices of nodes
  int to = 0;
  double bytes = 0;
  friend bool operator==(const PiperEdge&, const PiperEdge&) = default;
};

struct PiperProblem {
  std::vector<PiperNode> nodes{};
  std::vector<PiperEdge> edges{};
  double memory_bytes = 0;  // of a device
  double bandwidth_per_s = 0;
  int devices = 1;
  int microbatches = 1;
  friend bool operator==(const PiperProblem&, const PiperProblem&) = default;
};

/// Reads Piper's JSON files. Throws InputError, also if variants of a node on the same number of
/// devices differ in parameters or in transfers between stages.
PiperProblem read_piper_problem(const std::filesystem::path& file);

}  // namespace pipewright::planners
