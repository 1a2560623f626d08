// What the messages of a job hold, as plain data with JSON both ways: one struct per type that has a payload. Reading
// throws Error(kInvalid) naming the key.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/base/units.h"
#include "yoke/job/message.h"
#include "yoke/job/node_state.h"
#include "yoke/spec/membership.h"

namespace yoke::job {

inline constexpr int kJobProtocol = 1;

struct Hello {
  int protocol = kJobProtocol;
  std::string version = {}, commit = {};
  int cores = 0;  // that programs of the node may use
  friend bool operator==(const Hello&, const Hello&) = default;
};
Hello own_hello();

struct Variable {
  std::string name, value;
  friend bool operator==(const Variable&, const Variable&) = default;
};

struct RankStart {
  int rank = 0;
  std::vector<Variable> environment = {};
  int restarts = 0;  // of the rank, counted by its supervisor; not told
  friend bool operator==(const RankStart&, const RankStart&) = default;
};

struct StartRanks {
  std::string node = {};
  std::vector<std::string> argv = {};
  bool own_program = false;  // argv[0] is only a name: the supervisor's own program is run
  std::optional<std::string> folder = {};
  bool folder_required = true;  // else the ranks run where they are, where there is no such folder
  Seconds grace{1};             // between SIGTERM and SIGKILL
  bool reports_state = false;   // of the node (node_state.h), with these interfaces
  std::vector<std::string> interfaces = {};
  std::vector<RankStart> ranks = {};
  friend bool operator==(const StartRanks&, const StartRanks&) = default;
};

struct RankStarted {
  int rank = 0;
  int pid = 0;
  friend bool operator==(const RankStarted&, const RankStarted&) = default;
};

struct RankEnded {
  int rank = 0;
  int exit_status = 0;             // 128 + n where signal n ended it
  std::optional<int> signal = {};  // what ended it, if a signal
  bool out_of_memory = false;      // the kernel's count of processes that it killed for memory grew
  bool ended_by_us = false;        // as we asked it to
  friend bool operator==(const RankEnded&, const RankEnded&) = default;
};

// kClosed, kStopped, kReady: which rank.
struct RankNote {
  int rank = 0;
  friend bool operator==(const RankNote&, const RankNote&) = default;
};

struct RankList {
  std::vector<int> ranks = {};
  friend bool operator==(const RankList&, const RankList&) = default;
};

struct Credit {
  std::int64_t bytes = 0;
  friend bool operator==(const Credit&, const Credit&) = default;
};

// A rank asks to be in the next membership.
struct Join {
  int rank = 0;  // set by the supervisor, which knows whose line it is
  std::vector<spec::RailEndpoint> endpoints = {};
  std::string why = {};  // of a rank that was in a membership before: what ended that
  friend bool operator==(const Join&, const Join&) = default;
};

enum class PathState { kLost, kBack };
constexpr auto enum_names(PathState) {
  return std::array{std::pair{"lost", PathState::kLost}, std::pair{"back", PathState::kBack}};
}

struct PathReport {
  int rank = 0;   // who says so; set by the supervisor
  int epoch = 0;  // of the group that it is about
  int peer = 0;
  std::string rail = {};  // empty: the peer, by whatever way
  PathState state = PathState::kLost;
  std::string why = {};
  friend bool operator==(const PathReport&, const PathReport&) = default;
};

// kAbort, kFailed, and kStop where there is a reason.
Message error_message(MessageType type, const Error& error);
Error read_error(const Message& message);

template <class Payload>
Message to_message(MessageType type, const Payload& payload);
template <class Payload>
Payload read_payload(const Message& message);

Message membership_message(const spec::Membership& membership);
spec::Membership read_membership(const Message& message);

}  // namespace yoke::job
