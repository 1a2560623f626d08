#include "yoke/plan/cabling.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "yoke/spec/mesh.h"

namespace yoke::plan {
namespace {

constexpr int kNodesListed = 8;
constexpr int kSubnetFirst = 100;

// Names as DGX OS gives them; other systems may differ, and 'yoke probe' shows them.
constexpr std::array<std::array<std::string_view, 2>, 2> kSparkInterfaces = {
    {{"enp1s0f0np0", "enP2p1s0f0np0"}, {"enp1s0f1np1", "enP2p1s0f1np1"}}};

std::string node_name(int node) { return fmt::format("node-{}", node + 1); }

std::string rail_name(int rail) { return std::string(1, static_cast<char>('A' + rail % 26)); }

Cable spark_cable(int from, int from_port, std::string to, int to_port, int cable) {
  Cable laid{.from = node_name(from), .from_port = from_port, .to = std::move(to), .to_port = to_port, .rails = {}};
  for (int rail = 0; rail < 2; ++rail) {
    const auto r = static_cast<std::size_t>(rail);
    laid.rails.push_back({.rail = rail_name(rail),
                          .from_interface = std::string(kSparkInterfaces[static_cast<std::size_t>(from_port)][r]),
                          .to_interface = laid.to.starts_with("node")
                                              ? std::string(kSparkInterfaces[static_cast<std::size_t>(to_port)][r])
                                              : "",
                          .subnet = fmt::format("192.168.{}.0/24", kSubnetFirst + 2 * cable + rail)});
  }
  return laid;
}

// Each port is two links of 100 Gb/s by breakout optics.
void cable_mesh(Cabling& cabling) {
  cabling.shape = "full mesh of four: each pair with a link of 100 Gb/s, ports split by breakout optics";
  for (int node = 0; node < spec::kMeshNodes; ++node) {
    for (int half = 0; half < spec::kMeshHalves; ++half) {
      const int peer = spec::mesh_peer(node, half);
      if (peer < node) continue;
      const int port = half / 2, rail = half % 2;
      const std::string interface(kSparkInterfaces[static_cast<std::size_t>(port)][static_cast<std::size_t>(rail)]);
      Cable cable{.from = node_name(node), .from_port = port, .to = node_name(peer), .to_port = port, .rails = {}};
      cable.rails.push_back(
          {.rail = rail_name(rail),
           .from_interface = interface,
           .to_interface = interface,
           .subnet = fmt::format("192.168.{}.0/24", kSubnetFirst + static_cast<int>(cabling.cables.size()))});
      cabling.cables.push_back(std::move(cable));
    }
  }
  cabling.cables_in_all = static_cast<int>(cabling.cables.size());
  cabling.notes.emplace_back(
      "Against a switch it gains one hop less and needs no switch. It costs eight breakout optics, two nodes alone "
      "have 100 Gb/s between them instead of 200, and when all four exchange each node sends at most 150 Gb/s instead "
      "of 200: two of its three links share one of the NIC's two PCIe links.");
  cabling.notes.emplace_back(
      "Against a ring of four no traffic takes two hops and no node forwards; neighbours have 100 Gb/s instead of 200. "
      "Nobody has published a measurement of a mesh: its rates are derived.");
  cabling.notes.emplace_back(
      "NCCL from 2.30.7 on routes it by NCCL_IB_SUBNET_AWARE_ROUTING=1, which 'yoke link setup' writes with the "
      "addresses and routes.");
}

void cable_sparks(const Machines& machines, Cabling& cabling) {
  const int nodes = machines.nodes;
  const auto& cables = machines.facts->cables;
  if (machines.topology == spec::Topology::kMesh) return cable_mesh(cabling);
  cabling.approved.assign(cables.begin(), cables.end());
  if (machines.topology == spec::Topology::kSwitch) {
    cabling.shape = "every node to a switch";
    cabling.cables_in_all = nodes;
    for (int node = 0; node < std::min(nodes, kNodesListed); ++node) {
      cabling.cables.push_back(spark_cable(node, 0, "switch", node, 0));
    }
    cabling.notes.emplace_back("The switch needs one 200G port for each node, jumbo frames (9216) and no bonding.");
    return;
  }
  if (nodes == 2) {
    cabling.shape = "one cable, port 0 to port 0";
    cabling.cables_in_all = 1;
    cabling.cables.push_back(spark_cable(0, 0, node_name(1), 0, 0));
    cabling.notes.emplace_back(
        "A second cable between the same two nodes adds nothing: the NIC carries about 200 Gb/s "
        "however it is cabled.");
    return;
  }
  cabling.shape = nodes == 3 ? "ring of three cables, which is a full mesh" : fmt::format("ring of {} cables", nodes);
  cabling.cables_in_all = nodes;
  for (int node = 0; node < std::min(nodes, kNodesListed); ++node) {
    cabling.cables.push_back(spark_cable(node, 0, node_name((node + 1) % nodes), 1, node));
  }
  if (nodes == 3) {
    cabling.notes.emplace_back("NCCL from 2.30.7 on routes a ring of three: NCCL_IB_SUBNET_AWARE_ROUTING=1.");
  } else {
    cabling.notes.emplace_back(
        "Diagonals have no cable: their traffic takes two hops, and NCCL needs NCCL_ALGO=Ring. "
        "A switch removes the second hop; so does a full mesh by breakout optics (--topology mesh).");
  }
}

void cable_servers(const Machines& machines, Cabling& cabling) {
  cabling.topology = spec::Topology::kSwitch;
  const int rails = std::max(machines.rails, 1);
  cabling.shape = rails > 1 ? fmt::format("{} rails: NIC k of every node to leaf switch k", rails)
                            : std::string("every node to a switch");
  cabling.cables_in_all = rails * machines.nodes;
  // Those of the first node; the others are cabled in the same way.
  for (int rail = 0; rail < rails; ++rail) {
    Cable cable{
        .from = node_name(0), .from_port = rail, .to = fmt::format("leaf-{}", rail + 1), .to_port = 0, .rails = {}};
    cable.rails.push_back({.rail = rail_name(rail),
                           .from_interface = fmt::format("NIC {} (mlx5_{})", rail, rail),
                           .to_interface = "",
                           .subnet = fmt::format("192.168.{}.0/24", kSubnetFirst + rail)});
    cabling.cables.push_back(std::move(cable));
  }
  cabling.notes.emplace_back(
      "Interface names differ by firmware: 'yoke probe' shows them. No list of approved cables is known for these "
      "machines: take those of the switch's maker.");
  if (rails > 1) {
    cabling.notes.emplace_back(
        "GPU k talks to GPU k of other servers over rail k; traffic between rails goes over "
        "NVLink first (NCCL's PXN).");
  }
}

void svg_text(std::string& out, double x, double y, std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  out += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n", x, y, escaped);
}

void svg_line(std::string& out, const std::pair<double, double>& from, const std::pair<double, double>& to) {
  out += fmt::format(
      "<line x1=\"{:.0f}\" y1=\"{:.0f}\" x2=\"{:.0f}\" y2=\"{:.0f}\" stroke=\"#2a6\" stroke-width=\"4\"/>\n",
      from.first, from.second, to.first, to.second);
}

}  // namespace

Cabling plan_cabling(const Machines& machines) {
  Cabling cabling{.topology = machines.topology};
  if (machines.nodes == 1) {
    cabling.shape = "nothing to cable: one machine";
  } else if (machines.exchange == Exchange::kTcp) {
    cabling.topology = spec::Topology::kSwitch;
    cabling.shape = "the network that is there, by TCP: no RoCE below 20 Gb/s";
  } else if (machines.kind == HardwareClass::kGb10) {
    cable_sparks(machines, cabling);
  } else {
    cable_servers(machines, cabling);
  }
  return cabling;
}

std::string draw_text(const Cabling& cabling, const Machines& machines) {
  if (cabling.cables.empty()) return "";
  std::string out;
  for (const Cable& cable : cabling.cables) {
    out += fmt::format("  {:<8} port {} ══ {} port {}\n", cable.from, cable.from_port, cable.to, cable.to_port);
    for (const CableRail& rail : cable.rails) {
      const std::string ends =
          rail.from_interface.empty()
              ? ""
              : fmt::format("  {} - {}", rail.from_interface, rail.to_interface.empty() ? "switch" : rail.to_interface);
      out += fmt::format("             rail {}  {}{}\n", rail.rail, rail.subnet, ends);
    }
  }
  const int left = cabling.cables_in_all - static_cast<int>(cabling.cables.size());
  if (left > 0) out += fmt::format("  and {} more in the same way, for {} nodes\n", left, machines.nodes);
  return out;
}

std::string draw_svg(const Cabling& cabling, const Machines& machines) {
  const int shown = std::min(machines.nodes, kNodesListed);
  const double middle = 260;
  const double radius = shown == 1 ? 0 : 170;
  const bool has_hub = cabling.topology == spec::Topology::kSwitch && machines.nodes > 1;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 520 540\" font-family=\"sans-serif\" font-size=\"13\" "
      "text-anchor=\"middle\">\n<title>{} of {} nodes</title>\n",
      cabling.shape, machines.nodes);
  const auto place = [&](int node) {
    const double angle = 2 * 3.14159265358979 * node / shown - 3.14159265358979;
    return std::pair{middle + radius * std::cos(angle), middle + radius * std::sin(angle)};
  };
  std::map<std::string, std::pair<double, double>> places;
  for (int node = 0; node < shown; ++node) {
    places[node_name(node)] = place(node);
    if (has_hub) svg_line(out, place(node), {middle, middle});
  }
  // In a mesh nearer to the first end: the middles of the diagonals meet.
  const double text_at = cabling.topology == spec::Topology::kMesh ? 0.35 : 0.5;
  for (const Cable& cable : cabling.cables) {
    if (has_hub || !places.contains(cable.from) || !places.contains(cable.to)) continue;
    const auto [x, y] = places.at(cable.from);
    const auto [to_x, to_y] = places.at(cable.to);
    svg_line(out, {x, y}, {to_x, to_y});
    const double text_x = x + (to_x - x) * text_at, text_y = y + (to_y - y) * text_at;
    svg_text(out, text_x, text_y - 8, fmt::format("port {} - port {}", cable.from_port, cable.to_port));
    if (!cable.rails.empty()) svg_text(out, text_x, text_y + 18, cable.rails.front().subnet);
  }
  if (has_hub) {
    out += fmt::format("<rect x=\"{0:.0f}\" y=\"{0:.0f}\" width=\"90\" height=\"40\" fill=\"#eee\" stroke=\"#444\"/>\n",
                       middle - 20);
    svg_text(out, middle + 25, middle + 5, "switch");
  }
  for (int node = 0; node < shown; ++node) {
    const auto [x, y] = place(node);
    out += fmt::format(
        "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"90\" height=\"44\" rx=\"6\" fill=\"#fff\" "
        "stroke=\"#444\"/>\n",
        x - 45, y - 22);
    svg_text(out, x, y + 5, node_name(node));
  }
  svg_text(out, middle, 525, cabling.shape);
  return out + "</svg>\n";
}

}  // namespace yoke::plan
