// Observations of another watch that writes them as the lines of a record: how the watch of a lab, which runs on its
// head node, reaches the screen and the page of this machine.
#pragma once
#include <memory>

#include "yoke/base/process.h"
#include "yoke/watch/record.h"

namespace yoke::watch {

class PipedSource final : public ObservationSource {
 public:
  // Starts it, and waits until it says what it watches. Throws what it says where it fails.
  explicit PipedSource(Command command);
  const WatchPlan& plan() const { return *decoder_.plan(); }
  std::optional<Observation> next(Deadline deadline) override;
  bool at_end() const override { return ended_; }
  double now() const override;

 private:
  [[noreturn]] void fail();

  Process process_;
  RecordDecoder decoder_;
  std::string complaint_;
  bool ended_ = false;
  double began_at_;
  Instant began_;
};

}  // namespace yoke::watch
