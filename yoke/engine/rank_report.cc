#include "yoke/engine/rank_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/json.h"

namespace yoke::engine {

template <class Visitor>
void visit_fields(Visitor& visit, RankReport& report) {
  visit.required("node", report.node);
  visit.required("local_size", report.local_size);
  visit.required("available", report.available);
  visit.optional("unified", report.unified);
  visit.optional("devices", report.devices);
  visit.required("cache_tokens", report.cache_tokens);
  visit.optional("cut", report.cut);
  visit.optional("machine", report.machine);
  visit.required("model", report.model);
}

namespace {

bool is_loaded(const RankReport& report) { return report.cache_tokens > 0; }

}  // namespace

std::string encode(const RankReport& report) { return print_json(to_document(report), JsonLayout::kOneLine); }
RankReport decode_report(std::string_view text) { return from_json<RankReport>(parse_json(text, "a rank's report")); }

void check_same_model(const std::vector<RankReport>& reports) {
  auto right = std::find_if(reports.begin(), reports.end(), is_loaded);
  if (right == reports.end()) right = reports.begin();
  const auto other = std::find_if(reports.begin(), reports.end(),
                                  [&](const RankReport& report) { return report.model != right->model; });
  if (other == reports.end()) return;
  if (other->node == right->node) {
    throw Error(ErrorCode::kConflict,
                fmt::format("rank {} holds another model than rank {}, both on {}", other - reports.begin(),
                            right - reports.begin(), right->node),
                "its files were replaced meanwhile: start again");
  }
  throw Error(ErrorCode::kConflict, fmt::format("{} holds another model than {}", other->node, right->node),
              fmt::format("copy the model's folder from one to the other, with config.json and every *.safetensors; if "
                          "its files on {} were replaced meanwhile, start again",
                          other->node));
}

int ranks_on_machine(const std::vector<RankReport>& reports, std::size_t rank) {
  const RankReport& own = reports.at(rank);
  if (own.machine.empty()) return std::max(1, own.local_size);
  return static_cast<int>(
      std::count_if(reports.begin(), reports.end(), [&](const RankReport& one) { return one.machine == own.machine; }));
}

std::vector<RankMemory> memory_shares(const std::vector<RankReport>& reports) {
  std::vector<RankMemory> shares;
  for (const RankReport& report : reports) {
    if (is_loaded(report)) {
      shares.push_back({report.node, Bytes{kMemoryUnknown}, Bytes{kMemoryUnknown}});
      continue;
    }
    const auto sharing = std::count_if(reports.begin(), reports.end(), [&](const RankReport& one) {
      return one.node == report.node && !is_loaded(one);
    });
    // Machines that a launcher knows by one name are still several.
    std::int64_t ranks = std::max<std::int64_t>(1, std::min<std::int64_t>(sharing, report.local_size));
    if (report.devices > 0) ranks = (ranks + report.devices - 1) / report.devices;  // on the fullest GPU
    shares.push_back({report.node, Bytes{report.available / ranks}, Bytes{report.available},
                      report.unified ? spec::MemoryKind::kUnified : spec::MemoryKind::kHost});
  }
  return shares;
}

}  // namespace yoke::engine
