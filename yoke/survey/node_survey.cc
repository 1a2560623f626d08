#include "yoke/survey/node_survey.h"

#include <algorithm>
#include <future>

#include "yoke/base/files.h"
#include "yoke/base/process.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/probe/probe.h"
#include "yoke/probe/sources.h"
#include "yoke/survey/canary.h"
#include "yoke/survey/packet_filter.h"
#include "yoke/survey/trials.h"

namespace yoke::survey {
namespace {

using namespace literals;

// As the C library resolves it, but with a deadline, which it does not have itself.
void resolve(spec::NameLookup& trial) {
  const auto outcome = try_to([&] { return run({.argv = {"getent", "ahostsv4", trial.name}, .timeout = 2_s}); });
  if (!outcome || !outcome->ok()) return;
  for (const std::string& line : split(outcome->out, '\n')) {
    const auto address = parse_ipv4(line.substr(0, line.find(' ')));
    const auto known = [&](Ipv4 a) {
      return std::find(trial.addresses.begin(), trial.addresses.end(), a) != trial.addresses.end();
    };
    if (address && !known(*address)) trial.addresses.push_back(*address);
  }
}

}  // namespace

spec::SurveyedNode survey_this_node(const spec::SurveyedNode& questions) {
  spec::SurveyedNode node = questions;
  std::vector<std::future<void>> trials;
  for (spec::PathProbe& path : node.paths)
    trials.push_back(std::async(std::launch::async, [&path] { try_path(path); }));
  for (spec::RingProbe& far : node.far) trials.push_back(std::async(std::launch::async, [&far] { try_far(far); }));
  for (spec::NameLookup& name : node.names)
    trials.push_back(std::async(std::launch::async, [&name] { resolve(name); }));
  node.machine = probe::probe_machine(probe::sources_here());
  read_packet_filter(node);
  for (const std::string_view file : spec::kSetupFiles) {
    if (DiskTree().exists(file)) node.setup_files.emplace_back(file);
  }
  if (!node.far.empty()) node.ring_settings = read_ring_settings(DiskTree(), node.paths);
  for (std::future<void>& trial : trials) trial.get();
  for (spec::PathProbe& path : node.paths) ask_routes(path, *node.machine);
  if (node.canary) node.canary = measure_canary();  // alone, as it takes all cores
  return node;
}

Document answer_survey(const Document& question, agent::AgentContext&) {
  return spec::to_json(survey_this_node(from_json<spec::SurveyedNode>(question)));
}

Document capture_files() {
  const ScratchDir scratch("yoke-support");
  const std::filesystem::path folder = scratch.path() / "capture";
  probe::write_capture(probe::sources_here(), folder);
  Document files = Document::map();
  for (const char* name : {"machine.tree", "links.json", "nvml.json", "system.json"}) {
    files.add(name, Document::string(read_file(folder / name)));
  }
  return files;
}

Document answer_capture(const Document&, agent::AgentContext&) { return capture_files(); }

}  // namespace yoke::survey
