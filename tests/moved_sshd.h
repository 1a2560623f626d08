// A node that is reached by another port than the usual one, and the cluster file that says so.
#pragma once
#include <string>

#include "tests/lab_fixture.h"

namespace yoke::tests {

// The usual sshd of node 2 stands still, so a login there waits for nothing. Call by ASSERT_NO_FATAL_FAILURE.
inline void move_ssh_of_node_2(const TestLab& lab) {
  const Outcome moved = lab.exec(
      "2", {"sh", "-c",
            "usual=$(pgrep -o sshd) && /usr/sbin/sshd -f /etc/ssh/yoke_sshd_config -p 2222 && kill -STOP $usual"});
  ASSERT_TRUE(moved.ok()) << moved.err;
  std::string cluster = read_file(lab.folder / "cluster.yaml");
  const std::size_t port = cluster.rfind("port: 22\n");  // of the second and last node
  ASSERT_NE(port, std::string::npos) << cluster;
  cluster.replace(port, 8, "port: 2222");
  write_file_atomically(lab.folder / "cluster.yaml", cluster);
}

}  // namespace yoke::tests
