// /v1/embeddings: texts to vectors of length 1, from the states of a model's last layer. A request's texts are computed
// side by side; each vector is the state of the last token, or the mean of all.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "yoke/serve/completion_request.h"
#include "yoke/serve/request_hub.h"
#include "yoke/serve/service.h"

namespace yoke::serve {

enum class Pooling { kLast, kMean };
constexpr auto enum_names(Pooling) {
  return std::array{std::pair{"last", Pooling::kLast}, std::pair{"mean", Pooling::kMean}};
}

struct EmbeddingRequest {
  std::vector<std::vector<text::TokenId>> inputs;
  Pooling pooling = Pooling::kLast;
  bool as_base64 = false;
};

// As sentence-transformers keeps it beside the model, in 1_Pooling/config.json; the last token where it says nothing.
Pooling pooling_of_model(const std::filesystem::path& folder);

// Error(ApiError) names the field that is wrong. `fallback`: where the request does not choose.
EmbeddingRequest read_embedding_request(std::string_view body, const ServedModel& model, Pooling fallback);

// States come in rows, in the order of tokens; then the vector of length 1.
class Pool {
 public:
  explicit Pool(Pooling pooling) : pooling_(pooling) {}
  void add(const tensor::Tensor& rows);  // f32 [n, C]
  std::vector<float> vector() const;     // empty where nothing came; zeros stay zeros

 private:
  Pooling pooling_;
  std::vector<double> sum_;
};

// Little-endian floats, as OpenAI's clients ask for them by default.
std::string base64_floats(const std::vector<float>& values);

}  // namespace yoke::serve
