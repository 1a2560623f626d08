#include "yoke/cli/check_measure.h"

#include <fmt/format.h>

#include "yoke/base/json.h"
#include "yoke/base/process.h"
#include "yoke/base/progress.h"
#include "yoke/base/text.h"

namespace yoke {
namespace {

using namespace literals;

// What the process itself said went wrong: {"error": {"message", "hint", …}}.
Error error_in(const Outcome& outcome) {
  const auto document = try_to([&] { return parse_json(outcome.out, "yoke link test"); });
  const Document* error = document ? document->find("error") : nullptr;
  const Document* message = error ? error->find("message") : nullptr;
  const Document* hint = error ? error->find("hint") : nullptr;
  return Error(ErrorCode::kUnavailable, message ? message->text : "yoke link test " + outcome.describe(),
               hint ? hint->text : "");
}

Outcome run_link_test(const std::filesystem::path& cluster_file, std::size_t nodes) {
  Process process(
      {.argv = {std::filesystem::read_symlink("/proc/self/exe").native(), "link", "test", "--json", "--quiet",
                "--seconds", fmt::format("{:g}", kCheckWindow.value), "--cluster", cluster_file.native()}});
  Progress progress("measuring the halves", 0);
  const Deadline limit = Deadline::after(Seconds{60.0 + 30.0 * static_cast<double>(nodes)});
  for (std::int64_t tick = 0;; ++tick) {
    if (auto outcome = process.wait(Deadline::after(200_ms))) return *std::move(outcome);
    if (limit.expired()) throw Error(ErrorCode::kTimeout, "measuring the halves took too long");
    progress.update(tick, "each half alone, then together");
  }
}

}  // namespace

Result<Measurement> measure_cluster(const Cluster& cluster, const std::filesystem::path& cluster_file) {
  if (cluster.nodes.size() < 2) return Unexpected(Error(ErrorCode::kUnsupported, "there is one node, and no link"));
  for (const ClusterNode& node : cluster.nodes) {
    if (node.halves.empty()) {
      return Unexpected(Error(ErrorCode::kUnsupported,
                              fmt::format("the cluster file does not tell the halves of {}", node.name),
                              "'yoke link discover' writes them"));
    }
  }
  return try_to([&] {
    const Outcome outcome = run_link_test(cluster_file, cluster.nodes.size());
    const bool answered = outcome.exit_status == kExitOk || outcome.exit_status == kExitFindings;
    if (!answered) throw error_in(outcome);
    return measurement_from_link_test(parse_json(outcome.out, "yoke link test"));
  });
}

}  // namespace yoke
