// A rank's line to the supervisor of its node, for programs of yoke's: how ranks find each other, and learn that
// somebody is gone.
//
//   auto channel = RankChannel::from_environment();            // null: not in a job of yoke's
//   channel->on_abort([&](const Error& why) { comm->abort(why); });
//   Membership group = channel->join(endpoints, Deadline::after(30_s));
//   …                                                          // an operation throws
//   group = channel->rejoin(endpoints, "all-reduce: …", Deadline::after(30_s));
//   comm->rebuild(group, …);
//
// Made once in a process. All calls are safe from any thread; on_abort's function is called from the channel's own
// thread and must not wait for it.
#pragma once
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/job/job_messages.h"
#include "yoke/spec/membership.h"

namespace yoke::job {

struct RailAddress {
  std::string rail;     // "A", "B", in this order
  std::string address;  // of this node on it
  friend bool operator==(const RailAddress&, const RailAddress&) = default;
};

// "A=192.168.100.1,B=192.168.101.1", as YOKE_RAILS has it.
std::string print_rails(const std::vector<RailAddress>& rails);
std::vector<RailAddress> parse_rails(std::string_view text);  // throws Error(kInvalid)

class RankChannel {
 public:
  static std::unique_ptr<RankChannel> from_environment();
  explicit RankChannel(UniqueFd socket, std::vector<RailAddress> rails = {}, std::string address = {});
  RankChannel(const RankChannel&) = delete;
  RankChannel& operator=(const RankChannel&) = delete;
  ~RankChannel();

  const std::vector<RailAddress>& rails() const { return rails_; }  // empty where the cluster file names none
  const std::string& address() const { return address_; }           // of this node, as others reach it

  // Tells where this rank listens, and waits for the list of all. kTimeout at the deadline; where the job ends
  // meanwhile, the Error that ends it.
  spec::Membership join(const std::vector<spec::RailEndpoint>& endpoints, Deadline deadline);
  // The same after an abort or a failed operation: the next epoch's list. `why` is what this rank saw, and counts as
  // evidence where nobody knows better.
  spec::Membership rejoin(const std::vector<spec::RailEndpoint>& endpoints, const std::string& why, Deadline deadline);

  // Called with the first cause when the group is no more: somebody died, stands still or was cut off, or the job ends.
  // What came before this call is reported at once.
  void on_abort(std::function<void(const Error&)> function);
  // Throws what aborted the latest membership, for who makes a group of it and cannot get it in another way yet.
  void throw_if_aborted();

  // As this rank sees it: a rail to a peer, or with an empty `rail` the peer by every way, is lost or back.
  void report_path(int peer, const std::string& rail, PathState state, const std::string& why);
  void report_ready();

 private:
  void listen();
  void take(const Message& message);
  void abort(const Error& why);
  void end(const Error& why);
  void send(const Message& message);
  spec::Membership wait_for_membership(Deadline deadline);

  UniqueFd socket_;
  UniqueFd wake_;  // an eventfd: ends the thread
  std::vector<RailAddress> rails_;
  std::string address_;

  std::mutex send_mutex_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<spec::Membership> membership_;  // the latest
  int joined_epoch_ = 0;
  std::optional<Error> aborted_;  // since the last membership
  std::optional<Error> ended_;    // the job, or the line
  std::function<void(const Error&)> on_abort_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace yoke::job
