// The network of a SimGrid XML platform: its hosts, in the order of the file, are the devices.

#include <fmt/format.h>
#include <sys/time.h>

#include <algorithm>
#include <map>
#include <vector>

#include "pipewright/plan/error.hpp"
#include "simgrid/child_process.hpp"
#include "simgrid/flows.hpp"
#include "simgrid/simgrid_networks.hpp"

namespace pipewright::sim {
namespace {

namespace s4u = simgrid::s4u;

/// Limits an operation to two seconds of CPU time. SimGrid 3.32 loops forever, or crashes, if a
/// Dijkstra zone has no route. So the process ends if the operation takes longer or fails while
/// this object exists.
class Attempt {
 public:
  explicit Attempt(const std::string& complaint) {
    set_last_words(complaint);
    set_timer(2);
  }
  ~Attempt() {
    set_timer(0);
    set_last_words("");
  }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

 private:
  static void set_timer(time_t seconds) {
    const itimerval timer{.it_interval = {}, .it_value = {.tv_sec = seconds, .tv_usec = 0}};
    ::setitimer(ITIMER_VIRTUAL, &timer, nullptr);
  }
};

/// Returns the hosts in the order of the file; SimGrid itself knows them only by name.
std::vector<s4u::Host*> load(const s4u::Engine& engine, const std::filesystem::path& file) {
  std::vector<s4u::Host*> hosts;
  s4u::Host::on_creation_cb([&hosts](s4u::Host& host) {  // also called when a host is sealed
    if (std::find(hosts.begin(), hosts.end(), &host) == hosts.end())
      hosts.push_back(&host);
  });
  try {
    engine.load_platform(std::filesystem::absolute(file).string());
    engine.seal_platform();
  } catch (const simgrid::ParseError& error) {  // its message names file and line
    throw plan::InputError(error.what());
  } catch (const std::exception& error) {
    throw plan::InputError(fmt::format("{}: {}", file.string(), error.what()));
  }
  return hosts;
}

class FileNetwork : public Network {
 public:
  FileNetwork(const std::filesystem::path& file, const Traffic& traffic)
      : flows_(traffic.seconds), hosts_(load(flows_.engine(), file)) {
    if (static_cast<int>(hosts_.size()) < traffic.devices)
      throw plan::InputError(
          fmt::format("{}: {} devices are needed, but the platform has {} hosts{}", file.string(),
                      traffic.devices, hosts_.size(), host_names()));
    std::vector<std::string> missing;
    for (const auto& [from, to] : traffic.pairs) {
      const std::string complaint =
          fmt::format("{}: no route from host \"{}\" to host \"{}\"", file.string(),
                      host(from)->get_cname(), host(to)->get_cname());
      const Attempt attempt(complaint);
      if (!find_route(from, to))
        missing.push_back(complaint);
    }
    if (!missing.empty())
      throw plan::InputError(plan::listed_lines(missing));
  }

  double latency(int from, int to) const override { return latencies_.at({from, to}); }
  void send(int from, int to, double bytes, double start,
            std::function<void(double)> done) override {
    flows_.send(host(from), host(to), bytes, start, std::move(done));
  }
  void run() override { flows_.run(); }

 private:
  s4u::Host* host(int device) const { return hosts_[static_cast<std::size_t>(device)]; }

  std::string host_names() const {
    std::string names;
    for (const s4u::Host* host : hosts_)
      names += (names.empty() ? ": " : ", ") + host->get_name();
    return names;
  }

  /// Records the route's latency and returns true if there is a route.
  bool find_route(int from, int to) {
    std::vector<s4u::Link*> links;
    double latency = 0;
    try {
      host(from)->route_to(host(to), links, &latency);
    } catch (const std::exception&) {  // some kinds of zones throw, others return no links
    }
    latencies_[{from, to}] = latency;
    return !links.empty();
  }

  Flows flows_;
  const std::vector<s4u::Host*> hosts_;
  std::map<std::pair<int, int>, double> latencies_;
};

}  // namespace

std::unique_ptr<Network> network_of(const std::filesystem::path& file, const Traffic& traffic) {
  return std::make_unique<FileNetwork>(file, traffic);
}

}  // namespace pipewright::sim
