#include "yoke/job/job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "yoke/base/hash.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/limits.h"
#include "yoke/base/line_buffer.h"
#include "yoke/base/progress.h"
#include "yoke/base/text.h"
#include "yoke/job/job_loop.h"

namespace yoke::job {
using namespace literals;
namespace {

// Credit goes back in portions, so that small lines do not cost a message each.
constexpr std::int64_t kCreditPortion = 32 << 10;

std::string name_after(const std::string& program) {
  std::string name = std::filesystem::path(program).filename();
  std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_'; });
  return fmt::format("{}-{}", name.empty() ? "job" : name.substr(0, 24), random_token_hex(2));
}

// Messages to nodes are JSON.
void check_travels(const std::string& text, const std::string& what) {
  if (!find_invalid_utf8(text)) return;
  throw Error(ErrorCode::kUsage, fmt::format("{} is not UTF-8: '{}'", what, printable(text, 60)),
              "other bytes can be given in a file, or made on the node: sh -c 'program \"$(printf ...)\"'");
}

JobSpec checked(JobSpec spec) {
  if (spec.argv.empty()) throw Error(ErrorCode::kUsage, "there is no program to run", "yoke job run -- hostname");
  if (spec.nodes.empty()) throw Error(ErrorCode::kUsage, "a job needs a node");
  for (const std::string& word : spec.argv) check_travels(word, "an argument of the program");
  for (const Variable& variable : spec.environment) check_travels(variable.value, "the value of " + variable.name);
  for (const JobNode& node : spec.nodes) {
    for (const std::string& word : node.argv) check_travels(word, "an argument of the program");
    for (const Variable& variable : node.environment) check_travels(variable.value, "the value of " + variable.name);
    if (node.ranks >= 1) continue;
    throw Error(ErrorCode::kUsage, fmt::format("{} ranks on {} make no job", node.ranks, node.node.name),
                "one rank for each node is the least");
  }
  for (const Variable& variable : spec.environment) {
    if (variable.name.empty() || variable.name.find('=') != std::string::npos ||
        (variable.name + variable.value).find('\0') != std::string::npos) {
      throw Error(ErrorCode::kUsage, fmt::format("'{}' is no name of a variable", printable(variable.name, 40)));
    }
  }
  if (spec.name.empty()) spec.name = name_after(spec.argv.front());
  const bool odd = std::any_of(spec.name.begin(), spec.name.end(), [](char c) {
    return !std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_' && c != '.';
  });
  if (odd || spec.name.starts_with('.') || spec.name.size() > 64) {
    throw Error(ErrorCode::kUsage, fmt::format("'{}' is no name for a job", printable(spec.name, 80)),
                "letters, digits, '-', '_' and '.', at most 64");
  }
  return spec;
}

// Makes lines of the pieces, and gives both to the hooks.
class Shower {
 public:
  explicit Shower(JobLoop& loop) : loop_(loop) {}

  void show(const Delivery& delivery) {
    if (delivery.kind == Delivery::Kind::kEvent) {
      if (loop_.spec().on_event) loop_.spec().on_event(delivery.event);
      return;
    }
    if (delivery.kind == Delivery::Kind::kNodeState) {
      loop_.spec().on_node_state(loop_.node_name(delivery.node), delivery.state);
      return;
    }
    if (delivery.kind == Delivery::Kind::kRankClosed) {
      for (const int stream : {1, 2}) give_lines(delivery.node, delivery.piece.rank, stream, LineBuffer::More::kNone);
      return;
    }
    const OutputPiece& piece = delivery.piece;
    if (loop_.spec().output_form == OutputForm::kFirstRankRaw && piece.rank == 0 && piece.stream == 1) {
      give(delivery.node, piece.rank, piece.stream, piece.bytes, false);
    } else {
      lines_[{piece.rank, piece.stream}].append(piece.bytes);
      give_lines(delivery.node, piece.rank, piece.stream, LineBuffer::More::kMayCome);
    }
    std::int64_t& shown = shown_[delivery.node];
    shown += static_cast<std::int64_t>(piece.bytes.size());
    if (shown >= kCreditPortion) loop_.return_credit(delivery.node, std::exchange(shown, 0));
  }

 private:
  void give_lines(int node, int rank, int stream, LineBuffer::More more) {
    const auto found = lines_.find({rank, stream});
    if (found == lines_.end()) return;
    LineBuffer& buffer = found->second;
    while (const auto line = buffer.take_line(LineBuffer::More::kMayCome)) {
      give(node, rank, stream, *line, line->size() < LineBuffer::kMaxLine);
    }
    if (more == LineBuffer::More::kMayCome) return;
    while (const auto line = buffer.take_line(more)) give(node, rank, stream, *line, false);
  }

  void give(int node, int rank, int stream, std::string_view text, bool line_ended) {
    if (!loop_.spec().on_output) return;
    loop_.spec().on_output({.node = loop_.node_name(node),
                            .rank = rank,
                            .stream = stream == 1 ? OutputStream::kOut : OutputStream::kErr,
                            .text = text,
                            .line_ended = line_ended});
  }

  JobLoop& loop_;
  std::map<std::pair<int, int>, LineBuffer> lines_;  // by rank and stream
  std::map<int, std::int64_t> shown_;                // by node: bytes whose credit is not yet returned
};

}  // namespace

std::vector<JobNode> spread_ranks(const std::vector<spec::ClusterNode>& nodes, int ranks) {
  if (ranks > limits::kRanks) {
    throw Error(ErrorCode::kInvalid, fmt::format("a job of {} ranks: at most {} are possible", ranks, limits::kRanks));
  }
  const int count = static_cast<int>(nodes.size());
  std::vector<JobNode> placed;
  for (int i = 0; i < count; ++i) {
    const int here = ranks / count + (i < ranks % count ? 1 : 0);
    if (here != 0) placed.push_back({nodes[static_cast<std::size_t>(i)], here});
  }
  return placed;
}

spec::ClusterNode this_machine() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return {.name = "here", .address = "127.0.0.1"};
  return {.name = name, .address = "127.0.0.1"};
}

void Deliveries::push(Delivery delivery) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(delivery));
  changed_.notify_one();
}

void Deliveries::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_one();
}

std::optional<Delivery> Deliveries::pop(Deadline deadline) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, to_chrono(deadline.remaining()), [&] { return !queue_.empty() || closed_; });
  if (queue_.empty()) return std::nullopt;
  Delivery delivery = std::move(queue_.front());
  queue_.pop_front();
  return delivery;
}

bool Deliveries::at_end() {
  const std::lock_guard lock(mutex_);
  return closed_ && queue_.empty();
}

Job::Job(JobSpec spec) : loop_(std::make_unique<JobLoop>(checked(std::move(spec)))) {}

Job::~Job() = default;

const std::string& Job::name() const { return loop_->spec().name; }

void Job::stop() { loop_->stop(); }

JobOutcome Job::wait() {
  Shower shower(*loop_);
  std::optional<Progress> progress;
  progress.emplace("starting the ranks", 0);
  Deliveries& deliveries = loop_->deliveries();
  while (!deliveries.at_end()) {
    auto delivery = deliveries.pop(Deadline::after(0_s));
    if (!delivery) {
      if (loop_->spec().on_idle) loop_->spec().on_idle();
      if (progress) progress->update(0);
      delivery = deliveries.pop(Deadline::after(200_ms));
    }
    if (!delivery) continue;
    progress.reset();
    shower.show(*delivery);
  }
  if (loop_->spec().on_idle) loop_->spec().on_idle();
  loop_->note_shown();
  if (const auto interrupt = loop_->interrupt()) {
    if (interrupt_signal() == 0) DeferredSignals::redeliver(*interrupt);
    throw_if_interrupted();
  }
  return loop_->outcome();
}

}  // namespace yoke::job
