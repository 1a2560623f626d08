#include "yoke/serve/model_pool.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>

#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/process.h"
#include "yoke/base/yaml.h"

namespace yoke::serve {
using namespace literals;

template <class Visitor>
void visit_fields(Visitor& visit, PoolModel& model) {
  visit.required("name", model.name);
  visit.optional("model", model.model);
  visit.optional("upstream", model.upstream);
  visit.optional("cluster", model.cluster);
  visit.optional("ranks", model.ranks);
  visit.optional("context", model.context);
  visit.optional("max_running", model.running);
}
void from_json(const Document& document, PoolModel& model) { read_fields(document, model); }
template <class Visitor>
void visit_fields(Visitor& visit, PoolSpec& spec) {
  visit.required("models", spec.models);
  visit.optional("loaded_max", spec.loaded_max);
}
void from_json(const Document& document, PoolSpec& spec) { read_fields(document, spec); }

namespace {

constexpr Seconds kEndTime{40};    // for a server to finish its answers
constexpr Seconds kStartAgain{2};  // after one that ended by itself
constexpr Seconds kGlance{0.002};  // at what a server says, and whether it is there

}  // namespace

PoolSpec read_pool_file(const std::filesystem::path& file) {
  PoolSpec spec = from_json<PoolSpec>(parse_yaml(read_file(file), file.native()));
  const auto refuse = [&](const std::string& why) {
    return Error(ErrorCode::kInvalid, fmt::format("{}: {}", file.native(), why));
  };
  if (spec.models.empty()) throw refuse("there must be one model at least");
  if (spec.loaded_max < 0) throw refuse("loaded_max is a count of models");
  const std::filesystem::path folder = std::filesystem::absolute(file).parent_path();
  for (PoolModel& model : spec.models) {
    const auto same = [&](const PoolModel& other) { return other.name == model.name; };
    if (std::count_if(spec.models.begin(), spec.models.end(), same) > 1) {
      throw refuse(fmt::format("two models have the name '{}'", model.name));
    }
    if (model.model.empty() == !model.upstream) {
      throw refuse(fmt::format("the model '{}' needs either a 'model' or an 'upstream'", model.name));
    }
    if (model.upstream) parse_upstream(*model.upstream);
    const bool is_path = std::filesystem::exists(folder / model.model);
    if (!model.model.empty() && is_path) model.model = (folder / model.model).native();
    if (model.cluster) model.cluster = (folder / *model.cluster).native();
  }
  return spec;
}

class ModelPool::Entry : public Service {
 public:
  Entry(const PoolModel& model, const PoolOptions& options) : model_(model), program_(options.program) {
    UpstreamOptions front = options.front;
    front.name = model.name;
    front.waits_for_start = true;
    front.on_notice = [name = model.name, say = options.front.on_notice](const std::string& text) {
      if (say) say(fmt::format("{}: {}", name, text));
    };
    if (model.running) front.running_max = *model.running;
    if (model.upstream) {
      const UpstreamUrl url = parse_upstream(*model.upstream);
      front.server = {url.host, url.port};
      is_wanted_ = true;
    }
    front_ = std::make_unique<UpstreamService>(front);
    if (model.upstream) front_->start_looking();
  }
  ~Entry() override { end_server(); }

  bool is_loaded() const { return server_.has_value(); }
  bool has_own_server() const { return !model_.upstream; }
  bool is_wanted() const { return is_wanted_; }
  bool is_idle() const {
    const GaugeValues gauges = front_->gauges();
    return gauges.running + gauges.waiting == 0;
  }
  Instant last_asked() const { return last_asked_; }

  void start_server() {
    if (to_seconds(real_clock().now() - ended_at_) < kStartAgain) return;
    std::vector<std::string> argv = {program_.native(), "serve", model_.model, "--port", "0", "--name", model_.name};
    const auto add = [&](const char* word, const std::string& value) { argv.insert(argv.end(), {word, value}); };
    if (model_.ranks) add("--ranks", std::to_string(*model_.ranks));
    if (model_.context) add("--context", std::to_string(*model_.context));
    if (model_.running) add("--max-running", std::to_string(*model_.running));
    if (model_.cluster) add("--cluster", *model_.cluster);
    front_->report(fmt::format("loading: {}", fmt::join(argv, " ")));
    server_.emplace(Command{.argv = argv, .output_limit = Bytes{1 << 20}});
  }

  // What the server says, and whether it is still there.
  void look() {
    if (!server_) return;
    while (const auto line = server_->read_line(Deadline::after(kGlance))) {
      constexpr std::string_view kUrl = "http://127.0.0.1:";
      const std::size_t at = line->text.find(kUrl);
      if (!is_listening_ && at != std::string::npos) {
        is_listening_ = true;
        front_->set_server({"127.0.0.1", std::atoi(line->text.c_str() + at + kUrl.size())});
        front_->start_looking();
      } else {
        front_->report(line->text);
      }
    }
    if (!server_->wait(Deadline::after(kGlance))) return;
    front_->report("its server has ended");
    forget_server();
  }

  void end_server() {
    if (!server_) return;
    ::kill(server_->pid(), SIGTERM);
    server_->wait(Deadline::after(kEndTime));
    forget_server();
    is_wanted_ = false;
  }

  void stop_asking() { front_->stop_taking(); }

  std::string name() const override { return model_.name; }
  Document model_entry() const override { return front_->model_entry(); }
  std::string state() const override { return is_wanted_ ? front_->state() : "not loaded"; }
  GaugeValues gauges() const override { return front_->gauges(); }
  ServeMetrics& metrics() override { return front_->metrics(); }
  Document cluster_view() override { return front_->cluster_view(); }
  // A model that is not loaded is loaded for a request, not for a look.
  void answer_ready(const ExchangePtr& exchange) override {
    if (is_wanted_) return front_->answer_ready(exchange);
    reply_document(exchange, metrics(),
                   Document::map({{"status", Document::string("ready")}, {"loaded", Document::boolean(false)}}));
  }
  void complete(const ExchangePtr& exchange, ApiKind kind, RequestTicket ticket) override {
    want();
    front_->complete(exchange, kind, std::move(ticket));
  }
  void embed(const ExchangePtr& exchange, RequestTicket ticket) override {
    want();
    front_->embed(exchange, std::move(ticket));
  }
  void tokenize(const ExchangePtr& exchange) override {
    want();
    front_->tokenize(exchange);
  }
  void detokenize(const ExchangePtr& exchange) override {
    want();
    front_->detokenize(exchange);
  }
  void count_tokens(const ExchangePtr& exchange) override {
    want();
    front_->count_tokens(exchange);
  }

 private:
  void want() {
    last_asked_ = real_clock().now();
    is_wanted_ = true;
  }
  void forget_server() {
    front_->stop_looking();
    server_.reset();
    is_listening_ = false;
    ended_at_ = real_clock().now();
  }

  const PoolModel model_;
  const std::filesystem::path program_;
  std::unique_ptr<UpstreamService> front_;
  std::optional<Process> server_;  // of the owner's thread
  bool is_listening_ = false;
  Instant ended_at_{};
  std::atomic<bool> is_wanted_{false};
  std::atomic<Instant> last_asked_{Instant{}};
};

ModelPool::ModelPool(PoolSpec spec, PoolOptions options) : spec_(std::move(spec)), options_(std::move(options)) {
  for (const PoolModel& model : spec_.models) entries_.push_back(std::make_unique<Entry>(model, options_));
}
ModelPool::~ModelPool() = default;

std::vector<Service*> ModelPool::all() {
  std::vector<Service*> services;
  for (const auto& entry : entries_) services.push_back(entry.get());
  return services;
}

Service& ModelPool::named(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& entry : entries_) {
    if (entry->name() == name) return *entry;
    names.push_back(entry->name());
  }
  throw unknown_model(name, fmt::format("{}", fmt::join(names, "', '")));
}

// True where another model fits now.
bool ModelPool::make_room() {
  const auto loaded = std::count_if(entries_.begin(), entries_.end(), [](const auto& one) { return one->is_loaded(); });
  if (spec_.loaded_max == 0 || loaded < spec_.loaded_max) return true;
  Entry* oldest = nullptr;
  for (const auto& entry : entries_) {
    if (!entry->is_loaded() || !entry->is_idle()) continue;
    if (!oldest || entry->last_asked() < oldest->last_asked()) oldest = entry.get();
  }
  if (!oldest) return false;
  oldest->end_server();
  return true;
}

void ModelPool::place_models() {
  for (const auto& entry : entries_) {
    entry->look();
    if (entry->has_own_server() && entry->is_wanted() && !entry->is_loaded() && make_room()) entry->start_server();
  }
}

void ModelPool::run() {
  std::optional<Deadline> end;
  while (true) {
    if (held_.take()) {
      if (end) return;  // a second one
      end = Deadline::after(options_.front.drain_limit);
      for (const auto& entry : entries_) entry->stop_asking();
      if (options_.front.on_drain) options_.front.on_drain();
    }
    const bool is_idle = std::all_of(entries_.begin(), entries_.end(), [](const auto& one) { return one->is_idle(); });
    if (end && (is_idle || end->expired())) return;
    place_models();
    real_clock().sleep(Seconds{0.05});
  }
}

}  // namespace yoke::serve
