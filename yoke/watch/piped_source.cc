#include "yoke/watch/piped_source.h"

#include <time.h>

#include "yoke/base/result.h"
#include "yoke/base/text.h"

namespace yoke::watch {
namespace {

using namespace literals;

constexpr Seconds kHeaderLimit{30};

}  // namespace

PipedSource::PipedSource(Command command) : process_(std::move(command)), began_(real_clock().now()) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  began_at_ = static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
  for (const Deadline deadline = Deadline::after(kHeaderLimit); !decoder_.plan();) {
    const auto line = process_.read_line(deadline);
    if (!line) fail();
    if (line->stream == OutputStream::kErr) {
      complaint_ += line->text + "\n";
    } else {
      decoder_.take(line->text);
    }
  }
}

void PipedSource::fail() {
  const auto outcome = process_.wait(Deadline::after(1_s));
  throw Error(ErrorCode::kUnavailable,
              outcome ? "the watch of the lab " + outcome->describe() : "the watch of the lab says nothing",
              std::string(trim(complaint_)));
}

std::optional<Observation> PipedSource::next(Deadline deadline) {
  while (true) {
    const auto read = try_to([&] { return process_.read_line(deadline); });
    if (!read && read.error().code() == ErrorCode::kInterrupted) return std::nullopt;
    const std::optional<Process::Line> line = value_or_throw(Result<std::optional<Process::Line>>(read));
    if (!line) {
      if (process_.at_end()) {
        ended_ = true;
        fail();
      }
      return std::nullopt;
    }
    if (line->stream == OutputStream::kErr) {
      complaint_ = line->text;
    } else if (auto observation = decoder_.take(line->text)) {
      return observation;
    }
  }
}

double PipedSource::now() const { return began_at_ + to_seconds(real_clock().now() - began_).value; }

}  // namespace yoke::watch
