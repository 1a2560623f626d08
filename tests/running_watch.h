// `yoke watch` beside a test, its lines read as they come.
//
//   RunningWatch watch(lab.folder, {"--json"});
//   watch.await_samples(4);
//   EXPECT_TRUE(watch.until("finding-begins", "rail-down", "spark-2", 8_s));
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/program.h"
#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/base/socket.h"

namespace yoke::tests {

class RunningWatch {
 public:
  RunningWatch(const std::filesystem::path& folder, const std::vector<std::string>& more,
               const std::map<std::string, std::string>& environment = {})
      : process_({.argv = joined({YOKE_PROGRAM, "watch"}, more), .environment = environment, .folder = folder}) {}

  std::optional<Document> next(Deadline deadline) {
    while (const auto line = process_.read_line(deadline)) {
      if (line->stream == OutputStream::kOut) return parse_json(line->text, "yoke watch");
      err_ += line->text + "\n";
    }
    return std::nullopt;
  }
  // Seconds until an event of this rule comes; nothing within the limit.
  std::optional<double> until(std::string_view event, std::string_view rule, std::string_view node, Seconds limit) {
    const Instant start = real_clock().now();
    const Deadline deadline = Deadline::after(limit);
    while (const auto line = next(deadline)) {
      if (line->find("event")->text != event || line->find("rule")->text != rule) continue;
      if (line->find("node")->text == node) return to_seconds(real_clock().now() - start).value;
    }
    return std::nullopt;
  }
  void await_samples(int count) {
    for (const Deadline deadline = Deadline::after(Seconds{20}); count > 0;) {
      const auto line = next(deadline);
      ASSERT_TRUE(line) << err_;
      if (line->find("event")->text == "sample") --count;
    }
  }
  std::string await_err(std::string_view text) {
    for (const Deadline deadline = Deadline::after(Seconds{20});
         err_.find(text) == std::string::npos && !deadline.expired();) {
      err_ += process_.read_bytes(OutputStream::kErr, 4096, Deadline::after(Seconds{0.1}));
    }
    return err_;
  }
  Endpoint page() {
    const std::string err = await_err("metrics are");
    const std::size_t at = err.find("http://127.0.0.1:");
    if (at == std::string::npos) throw Error(ErrorCode::kUnavailable, "no page: " + err);
    return {"127.0.0.1", std::atoi(err.substr(at + 17).c_str())};
  }
  Process& process() { return process_; }

 private:
  Process process_;
  std::string err_;
};

inline const Document& rail_of(const Document& sample, std::string_view interface) {
  for (const Document& rail : sample.find("rails")->items) {
    if (rail.find("interface")->text == interface) return rail;
  }
  throw Error(ErrorCode::kNotFound, "no such rail");
}

}  // namespace yoke::tests
