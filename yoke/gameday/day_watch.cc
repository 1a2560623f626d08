#include "yoke/gameday/day_watch.h"

#include <signal.h>

#include "yoke/base/log.h"
#include "yoke/base/result.h"
#include "yoke/gameday/orderly_end.h"
#include "yoke/watch/watch_report.h"

namespace yoke::gameday {
namespace {

using namespace literals;

constexpr const char* kRecord = "day.watch";

}  // namespace

DayWatch::~DayWatch() {
  if (process_) end_orderly(*process_);
}

void DayWatch::begin(const Environment& environment) noexcept {
  std::error_code failure;
  if (process_ || !std::filesystem::exists(environment.cluster_file(), failure)) return;
  const auto begun = try_to([&] {
    process_.emplace(Command{.argv = {environment.options().program, "watch", "--quiet", "--record", kRecord,
                                      "--record-limit", "64MiB", "--cluster", environment.cluster_file()},
                             .folder = environment.folder()});
  });
  if (!begun) log(LogLevel::kDebug, "no watch of the day: {}", begun.error().message());
}

std::vector<report::HtmlBlock> DayWatch::end(const Environment& environment) noexcept {
  if (!process_) return {};
  kill(process_->pid(), SIGTERM);
  auto strip = try_to([&] {
    process_->wait(Deadline::after(5_s));
    process_.reset();
    return watch::report_strip(watch::RecordReader(environment.folder() / kRecord));
  });
  if (!strip) log(LogLevel::kDebug, "no strip of the day: {}", strip.error().message());
  return strip ? *std::move(strip) : std::vector<report::HtmlBlock>();
}

}  // namespace yoke::gameday
