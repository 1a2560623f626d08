// A real Prometheus beside a test, which scrapes a page of `yoke watch` once a second and evaluates the alert rules.
//
//   if (!find_program("prometheus")) GTEST_SKIP() << "prometheus is not installed";
//   RunningPrometheus prometheus(scratch.path(), watch.page());
//   EXPECT_TRUE(prometheus.answers("yoke_node_up == 1", "spark-2"));
#pragma once
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/program.h"
#include "yoke/base/clock.h"
#include "yoke/base/files.h"
#include "yoke/base/result.h"
#include "yoke/base/socket.h"
#include "yoke/http/plain_client.h"

namespace yoke::tests {

class RunningPrometheus {
 public:
  RunningPrometheus(const std::filesystem::path& folder, const Endpoint& page)
      : server_(free_endpoint()), process_(command(folder, page, server_)) {}

  // Whether this text comes in the answer to a query within half a minute.
  bool answers(const std::string& query, std::string_view wanted) {
    for (const Deadline deadline = Deadline::after({30}); !deadline.expired();) {
      const auto asked = try_to([&] {
        return http::ask(server_, {.path = "/api/v1/query?query=" + encoded(query)}, Deadline::after({1})).body;
      });
      answer_ = asked.value_or("");
      if (answer_.find(wanted) != std::string::npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    return false;
  }
  const std::string& answer() const { return answer_; }

 private:
  static Endpoint free_endpoint() {
    Socket socket = listen_tcp({"127.0.0.1", 0});
    return socket.local();
  }
  static Command command(const std::filesystem::path& folder, const Endpoint& page, const Endpoint& server) {
    const std::filesystem::path rules = kSourceFolder / "share/prometheus/yoke-alerts.yml";
    write_file_atomically(
        folder / "prometheus.yml",
        fmt::format("global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\nrule_files: [{}]\nscrape_configs:\n"
                    "  - job_name: yoke\n    static_configs: [{{ targets: ['{}'] }}]\n",
                    rules.native(), to_string(page)));
    return {.argv = {"prometheus", "--config.file", folder / "prometheus.yml", "--storage.tsdb.path",
                     folder / "prometheus-data", "--web.listen-address", to_string(server)},
            .folder = folder};
  }
  static std::string encoded(std::string_view text) {
    std::string out;
    for (const char c : text) {
      const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
      out += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return out;
  }

  Endpoint server_;
  Process process_;
  std::string answer_;
};

}  // namespace yoke::tests
