#include "yoke/serve/serve_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/fleet/fleet.h"
#include "yoke/http/plain_client.h"
#include "yoke/probe/probe.h"
#include "yoke/serve/api_keys.h"
#include "yoke/spec/memory_fit.h"

namespace yoke::serve {
namespace {

constexpr Seconds kMemoryLimit{20};
constexpr Seconds kUpstreamTime{5};

struct NodeMemory {
  std::string name;
  spec::Memory memory;
  bool has_gpu = false;
};

std::vector<NodeMemory> inspect_memory(const EngineHostSpec& spec) {
  const auto of = [](std::string name, const spec::Machine& machine) {
    return NodeMemory{.name = std::move(name), .memory = machine.memory, .has_gpu = !machine.gpus.empty()};
  };
  std::vector<NodeMemory> all;
  if (!spec.cluster || spec.place) {
    const spec::Machine here = probe::probe_machine(probe::quick_sources_here());
    all.push_back(of(here.hostname, here));
    return all;
  }
  fleet::Fleet fleet(spec.cluster->nodes, fleet::NodeOptions{});
  const auto machines = fleet::all_or_throw(fleet.each("looking at memory", [](fleet::Node& node) {
    return from_json<spec::Machine>(node.ask("pin-facts", Document::null(), kMemoryLimit));
  }));
  for (std::size_t i = 0; i < machines.size(); ++i) all.push_back(of(fleet[i].name(), machines[i]));
  return all;
}

std::string amount_text(double bytes) { return to_string(Bytes{static_cast<std::int64_t>(bytes)}); }

}  // namespace

void add_front_check(Document& found, const Endpoint& listen, const std::optional<std::string>& key_file) {
  const Socket free = listen_tcp(listen);
  found.add("listen", Document::string(to_string(listen)));
  if (key_file) ApiKeys::load(*key_file);
  found.add("keys", Document::boolean(key_file.has_value()));
}

void add_memory_check(Document& found, const EngineHostSpec& spec, const std::optional<plan::Plan>& made) {
  if (!made || made->layouts.empty()) return;
  if (!made->fits) {
    throw Error(ErrorCode::kExhausted,
                fmt::format("{} in {} does not fit {}", made->model, made->format, made->machines),
                made->changes.empty() ? "a smaller --context needs less" : made->changes.front());
  }
  const plan::MemoryUse& use = made->layouts.front().memory;
  const int nodes = spec.cluster ? static_cast<int>(spec.cluster->nodes.size()) : 1;
  const int ranks_each = std::max(1, rank_count(spec) / nodes);
  const double needed = use.used() * (spec.cluster ? ranks_each : 1);
  found.add("memory_needed_bytes", Document::number(static_cast<std::int64_t>(needed)));
  Document all = Document::map();
  for (const NodeMemory& node : inspect_memory(spec)) {
    const Bytes free = node.memory.available.value_or(Bytes{0});
    all.add(node.name, Document::number(free.value));
    // Of a GPU with memory of its own the machine's says nothing.
    if ((node.has_gpu && !node.memory.unified) || free.value == 0) continue;
    // What stays free of unified memory is the plan's: this is about what other programs took.
    const Bytes reserve = spec::memory_reserve(free, spec::MemoryKind::kHost);
    if (needed <= static_cast<double>(free.value - reserve.value)) continue;
    throw Error(ErrorCode::kExhausted,
                fmt::format("{} has {} of memory free, and its part of the model needs {} beside a reserve of {}",
                            node.name, to_string(free), amount_text(needed), to_string(reserve)),
                "end other programs there, or lower --context");
  }
  found.add("memory_available_bytes", std::move(all));
}

void add_upstream_check(Document& found, const Endpoint& server, const std::string& key) {
  const auto answer = try_to([&] {
    http::HttpQuestion question{.path = "/v1/models"};
    if (!key.empty()) question.headers.emplace_back("Authorization", "Bearer " + key);
    return http::ask(server, question, Deadline::after(kUpstreamTime));
  });
  std::string models;
  if (answer && answer->status == 200) {
    if (const auto read = try_to([&] { return parse_json(answer->body, "models"); })) {
      if (const Document* data = read->find("data")) {
        for (const Document& one : data->items) {
          if (const Document* id = one.find("id")) models += (models.empty() ? "" : ", ") + printable(id->text, 100);
        }
      }
    }
  }
  found.add("upstream_models", Document::string(models));
  found.add("upstream_state", Document::string(!answer                 ? answer.error().message()
                                               : answer->status == 200 ? "answers"
                                                                       : fmt::format("status {}", answer->status)));
}

std::string check_text(const Document& found) {
  std::string text;
  for (const auto& [key, value] : found.fields) {
    if (value.kind == Document::Kind::kMap) {
      for (const auto& [node, bytes] : value.fields) {
        text += fmt::format("memory available on {}: {}\n", node, amount_text(std::stod(bytes.text)));
      }
    } else if (key == "memory_needed_bytes") {
      text += fmt::format("memory needed on each node: {}\n", amount_text(std::stod(value.text)));
    } else {
      text += fmt::format("{}: {}\n", key, value.text);
    }
  }
  return text;
}

}  // namespace yoke::serve
