#include "yoke/serve/embeddings.h"

#include <fmt/format.h>

#include <cmath>

#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/serve/api.h"
#include "yoke/serve/api_error.h"
#include "yoke/serve/api_fields.h"
#include "yoke/serve/engine_service.h"

namespace yoke::serve {
namespace {

constexpr std::size_t kMaxInputs = 2048;  // as OpenAI has it
constexpr Bytes kMaxPoolingFile{64 << 10};

std::vector<text::TokenId> ids_of(const Document& list, const ServedModel& model) {
  std::vector<text::TokenId> ids;
  for (const Document& item : list.items) {
    ids.push_back(static_cast<text::TokenId>(api_integer(item, "input", 0, model.vocabulary - 1)));
  }
  return ids;
}

std::vector<text::TokenId> ids_of_text(const Document& text, const ServedModel& model) {
  if (!model.text->tokenizer) throw Error(model.text->tokenizer.error());
  return model.text->tokenizer->encode(api_text(text, "input"), {.frame = text::Frame::kAdd});
}

bool is_number(const Document& document) { return document.kind == Document::Kind::kNumber; }

void read_inputs(const Document& input, const ServedModel& model, EmbeddingRequest& request) {
  if (input.kind == Document::Kind::kText) {
    request.inputs.push_back(ids_of_text(input, model));
  } else if (input.kind != Document::Kind::kList) {
    refuse_type("input", "a text or an array", input);
  } else if (!input.items.empty() && is_number(input.items.front())) {
    request.inputs.push_back(ids_of(input, model));
  } else {
    if (input.items.size() > kMaxInputs) {
      refuse_value("input", fmt::format("{} inputs are more than {}.", input.items.size(), kMaxInputs));
    }
    for (const Document& item : input.items) {
      request.inputs.push_back(item.kind == Document::Kind::kList ? ids_of(item, model) : ids_of_text(item, model));
    }
  }
  if (request.inputs.empty()) refuse_value("input", "it is empty.");
  for (const std::vector<text::TokenId>& ids : request.inputs) {
    if (ids.empty()) refuse_value("input", "it is empty.");
    if (std::ssize(ids) > model.context_max) {
      refuse_value("input", fmt::format("{} tokens are more than the context of {}.", ids.size(), model.context_max));
    }
  }
}

// One request's vectors, put together as they come.
class Embedding : public AnswerSink, public std::enable_shared_from_this<Embedding> {
 public:
  Embedding(ExchangePtr exchange, EmbeddingRequest request, RequestHub& hub, std::string model, RequestTicket ticket)
      : exchange_(std::move(exchange)),
        request_(std::move(request)),
        hub_(hub),
        model_(std::move(model)),
        ticket_(std::move(ticket)),
        pools_(request_.inputs.size(), Pool(request_.pooling)) {}
  ~Embedding() override {
    if (ticket_.on_end) ticket_.on_end();
  }

  void start(Seconds limit) {
    for (std::size_t i = 0; i < request_.inputs.size(); ++i) ids_.push_back(hub_.new_id());
    for (std::size_t i = 0; i < request_.inputs.size(); ++i) {
      engine::Request asked{.id = ids_[i], .prompt = request_.inputs[i], .answer_max = 0};
      asked.logits =
          request_.pooling == Pooling::kMean ? engine::LogitsWanted::kStates : engine::LogitsWanted::kLastState;
      asked.cache_salt = ticket_.cache_salt;
      hub_.submit(std::move(asked), shared_from_this(), limit);
    }
  }

  void on_token(std::uint64_t, const text::SampledToken&) override {}
  void on_states(const engine::LogitsEvent& event) override { pools_[place_of(event.id)].add(event.rows); }
  void on_end(std::uint64_t id, engine::FinishReason, const std::optional<Error>& error) override {
    if (error && !error_) {
      error_ = error;
      for (const std::uint64_t other : ids_) {
        if (other != id) hub_.cancel(other);
      }
    }
    if (++ended_ == ids_.size()) answer();
  }

 private:
  // Ids of one request are given one after the other, but others may come between.
  std::size_t place_of(std::uint64_t id) const {
    return static_cast<std::size_t>(std::lower_bound(ids_.begin(), ids_.end(), id) - ids_.begin());
  }

  void answer() {
    if (error_) {
      const ApiError shown = ApiError::of(*error_);
      return reply_document(exchange_, hub_.metrics(), shown.json_of(ApiKind::kChat), shown.status());
    }
    Document data = Document::list();
    std::int64_t tokens = 0;
    for (std::size_t i = 0; i < pools_.size(); ++i) {
      tokens += std::ssize(request_.inputs[i]);
      const std::vector<float> vector = pools_[i].vector();
      Document values = Document::list();
      if (!request_.as_base64) {
        for (const float value : vector) values.items.push_back(Document::number(double{value}));
      }
      data.items.push_back(Document::map(
          {{"object", Document::string("embedding")},
           {"index", Document::number(static_cast<std::int64_t>(i))},
           {"embedding", request_.as_base64 ? Document::string(base64_floats(vector)) : std::move(values)}}));
    }
    reply_document(exchange_, hub_.metrics(),
                   Document::map({{"object", Document::string("list")},
                                  {"data", std::move(data)},
                                  {"model", Document::string(model_)},
                                  {"usage", Document::map({{"prompt_tokens", Document::number(tokens)},
                                                           {"total_tokens", Document::number(tokens)}})}}));
  }

  const ExchangePtr exchange_;
  const EmbeddingRequest request_;
  RequestHub& hub_;
  const std::string model_;
  const RequestTicket ticket_;
  std::vector<std::uint64_t> ids_;  // rising
  std::vector<Pool> pools_;
  std::size_t ended_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Pooling pooling_of_model(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "1_Pooling" / "config.json";
  const auto config = try_to([&] { return parse_json(read_file(file, kMaxPoolingFile), file.native()); });
  const Document* const mean = config ? config->find("pooling_mode_mean_tokens") : nullptr;
  return mean != nullptr && mean->text == "true" ? Pooling::kMean : Pooling::kLast;
}

EmbeddingRequest read_embedding_request(std::string_view body, const ServedModel& model, Pooling fallback) {
  const Document document = parse_api_body(body);
  check_known_fields(document, {"model", "input", "encoding_format", "dimensions", "user", "pooling"});
  check_model_name(document, model);
  EmbeddingRequest request{.inputs = {}, .pooling = fallback};
  if (const auto* const pooling = given_field(document, "pooling")) {
    const std::string name = api_text(*pooling, "pooling");
    if (name != "last" && name != "mean") refuse_value("pooling", "it is 'last' or 'mean'.");
    request.pooling = name == "mean" ? Pooling::kMean : Pooling::kLast;
  }
  if (const auto* const format = given_field(document, "encoding_format")) {
    const std::string name = api_text(*format, "encoding_format");
    if (name != "float" && name != "base64") refuse_value("encoding_format", "it is 'float' or 'base64'.");
    request.as_base64 = name == "base64";
  }
  if (given_field(document, "dimensions")) {
    refuse_value("dimensions", "this model gives vectors of one length only: leave it out.");
  }
  const auto* const input = given_field(document, "input");
  if (!input) refuse_value("input", "it is missing.");
  read_inputs(*input, model, request);
  return request;
}

void Pool::add(const tensor::Tensor& rows) {
  const std::int64_t width = rows.extent(1);
  sum_.resize(static_cast<std::size_t>(width));
  for (std::int64_t row = 0; row < rows.extent(0); ++row) {
    const float* const values = rows.row<float>(row);
    for (std::int64_t i = 0; i < width; ++i) {
      double& sum = sum_[static_cast<std::size_t>(i)];
      sum = pooling_ == Pooling::kMean ? sum + double{values[i]} : double{values[i]};
    }
  }
}

// Of length 1, so a mean needs no division.
std::vector<float> Pool::vector() const {
  double square = 0;
  for (const double value : sum_) square += value * value;
  const double scale = square > 0 ? 1 / std::sqrt(square) : 0;
  std::vector<float> out;
  out.reserve(sum_.size());
  for (const double value : sum_) out.push_back(static_cast<float>(value * scale));
  return out;
}

std::string base64_floats(const std::vector<float>& values) {
  static constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto* const bytes = reinterpret_cast<const unsigned char*>(values.data());
  const std::size_t size = values.size() * sizeof(float);
  std::string out;
  for (std::size_t i = 0; i < size; i += 3) {
    const std::size_t rest = std::min<std::size_t>(3, size - i);
    std::uint32_t word = 0;
    for (std::size_t j = 0; j < 3; ++j) word = word << 8U | (j < rest ? bytes[i + j] : 0U);
    for (std::size_t j = 0; j < 4; ++j) out += j <= rest ? kLetters[word >> (18 - 6 * j) & 63U] : '=';
  }
  return out;
}

void EngineService::embed(const ExchangePtr& exchange, RequestTicket ticket) {
  const ServedModel model = served_model();
  const Pooling pooling = pooling_of_model(hub_.spec().engine.model);
  EmbeddingRequest request =
      read_of_client([&] { return read_embedding_request(exchange->request().body, model, pooling); });
  hub_.check_room(request.inputs.size());
  std::make_shared<Embedding>(exchange, std::move(request), hub_, options_.name, std::move(ticket))
      ->start(options_.request_limit);
}

void Api::answer_embeddings(const ExchangePtr& exchange) {
  Service& service = asked_service(exchange->request());
  service.embed(exchange, take_ticket(*exchange));
}

}  // namespace yoke::serve
