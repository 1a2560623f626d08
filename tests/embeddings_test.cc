// /v1/embeddings of a real server. The reference are logits that transformers computed: the head is linear, so the head
// times an embedding points where the logits of the last token, or the sum of all tokens' logits, point.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/served.h"
#include "yoke/base/fields.h"
#include "yoke/engine/golden.h"
#include "yoke/weights/safetensors_file.h"

namespace yoke::tests {
namespace {

using testing::HasSubstr;

std::vector<double> embedding_of(const Document& answer, std::size_t index) {
  std::vector<double> values;
  for (const Document& value : at(at(answer, "data").items.at(index), "embedding").items) {
    values.push_back(std::stod(value.text));
  }
  return values;
}

double length_of(const std::vector<double>& values) {
  double square = 0;
  for (const double value : values) square += value * value;
  return std::sqrt(square);
}

double cosine(const std::vector<double>& a, const std::vector<double>& b) {
  double product = 0;
  for (std::size_t i = 0; i < a.size(); ++i) product += a[i] * b.at(i);
  return product / (length_of(a) * length_of(b));
}

Document asked(const Served& served, const std::string& body) {
  const http::HttpAnswer answer = served.post("/v1/embeddings", body);
  EXPECT_EQ(answer.status, 200) << answer.body;
  return parse_json(answer.body, "answer");
}

TEST(ServeEmbeddings, PointWhereTheLogitsOfTransformersPoint) {
  const std::string folder = std::string(YOKE_SOURCE_DIR) + "/tests/golden/llama-f32";
  const weights::SafetensorsFile file(folder + "/model.safetensors");
  const tensor::Tensor head = file.view(*file.find("lm_head.weight"));
  Served served(ServedHow{.model = {folder, "--threads", "1", "--exact", "--ranks", "2"}});
  served.wait_until_ready();
  int compared = 0;
  for (const engine::GoldenCase& one : engine::load_golden(folder)) {
    if (!one.logits || one.logits->extent(0) != std::ssize(one.ids)) continue;
    for (const std::string pooling : {"last", "mean"}) {
      const Document answer =
          asked(served, fmt::format(R"({{"input":[{}],"pooling":"{}"}})", fmt::join(one.ids, ","), pooling));
      const std::vector<double> vector = embedding_of(answer, 0);
      ASSERT_EQ(std::ssize(vector), head.extent(1));
      EXPECT_NEAR(length_of(vector), 1, 1e-5);
      std::vector<double> ours, theirs;
      for (std::int64_t v = 0; v < head.extent(0); ++v) {
        double sum = 0, golden = 0;
        for (std::int64_t c = 0; c < head.extent(1); ++c) {
          sum += double{head.row<float>(v)[c]} * vector[static_cast<std::size_t>(c)];
        }
        const std::int64_t rows = one.logits->extent(0);
        for (std::int64_t row = pooling == "last" ? rows - 1 : 0; row < rows; ++row) {
          golden += one.logits->row<float>(row)[v];
        }
        ours.push_back(sum);
        theirs.push_back(golden);
      }
      EXPECT_GT(cosine(ours, theirs), 1 - 1e-6) << one.name << " " << pooling;
      ++compared;
    }
  }
  EXPECT_GE(compared, 4);
}

TEST(ServeEmbeddings, ABatchGivesWhatEachTextGivesAlone) {
  Served served;
  served.wait_until_ready();
  const Document batch = asked(served, R"({"model":"nano","input":["MTU 9000","a cable","MTU 9000"],"user":"u"})");
  ASSERT_EQ(at(batch, "data").items.size(), 3U);
  EXPECT_EQ(embedding_of(batch, 0), embedding_of(batch, 2));
  EXPECT_EQ(embedding_of(batch, 1), embedding_of(asked(served, R"({"input":"a cable"})"), 0));
  EXPECT_LT(cosine(embedding_of(batch, 0), embedding_of(batch, 1)), 0.9999);
  EXPECT_GT(std::stoi(at(at(batch, "usage"), "prompt_tokens").text), 5);
  // The same bytes as base64, which OpenAI's client asks for.
  const Document coded = asked(served, R"({"input":"a cable","encoding_format":"base64"})");
  const std::string text = at(at(coded, "data").items.at(0), "embedding").text;
  EXPECT_EQ(text.size(), (embedding_of(batch, 1).size() * 4 + 2) / 3 * 4);
}

TEST(ServeEmbeddings, RefuseWhatTheyCannotDo) {
  Served served;
  served.wait_until_ready();
  const auto refused = [&](const std::string& body, const std::string& why) {
    const http::HttpAnswer answer = served.post("/v1/embeddings", body);
    EXPECT_EQ(answer.status, 400) << body << answer.body;
    EXPECT_THAT(answer.body, HasSubstr(why));
  };
  refused("{", "JSON");
  refused(R"({"model":"nano"})", "input");
  refused(R"({"input":[]})", "empty");
  refused(R"({"input":[[]]})", "empty");
  refused(R"({"input":[-1]})", "input");
  refused(R"({"input":[1e9]})", "input");
  refused(R"({"input":7})", "input");
  refused(R"({"input":"a","dimensions":4})", "dimensions");
  refused(R"({"input":"a","encoding_format":"int8"})", "encoding_format");
  refused(R"({"input":"a","pooling":"max"})", "pooling");
  refused(R"({"input":")" + std::string(400000, 'x') + R"("})", "context");
  EXPECT_EQ(served.post("/v1/embeddings", R"({"input":"a","model":"other"})").status, 404);
}

}  // namespace
}  // namespace yoke::tests
