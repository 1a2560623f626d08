// This machine as one of the cluster's nodes: the same interface, without ssh.
#pragma once
#include "yoke/remote/remote_shell.h"

namespace yoke::remote {

class LocalShell : public RemoteShell {
 public:
  explicit LocalShell(Host host) : host_(std::move(host)) {}

  const Host& host() const override { return host_; }
  Outcome run(const Command& command) override { return yoke::run(command); }
  std::unique_ptr<RemoteProcess> start(const Command& command) override;

 private:
  Host host_;
};

}  // namespace yoke::remote
