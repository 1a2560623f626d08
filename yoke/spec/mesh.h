// How four nodes are joined by a full mesh. Breakout optics split each port into two links, and three of a node's four
// halves lead to the three others. yoke cables it so that both ends of a link are the same half of the same port: the
// three perfect matchings of four nodes, one for each half.
#pragma once

namespace yoke::spec {

inline constexpr int kMeshNodes = 4;
inline constexpr int kMeshHalves = kMeshNodes - 1;  // port 0 A, port 0 B, port 1 A

// The node that a half of a node leads to; nodes and halves count from 0.
constexpr int mesh_peer(int node, int half) { return node ^ (half + 1); }

}  // namespace yoke::spec
