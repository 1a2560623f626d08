#include "yoke/serve/completion_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "yoke/base/files.h"
#include "yoke/serve/api_error.h"
#include "yoke/serve/api_fields.h"

namespace yoke::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct CompletionRequestTest : testing::Test {
  const ModelText text = ModelText::load(std::string(YOKE_SOURCE_DIR) + "/models/nano");
  const ServedModel model{.name = "nano", .text = &text, .context_max = 1024, .vocabulary = 2048};

  CompletionRequest chat(const std::string& more) const {
    return read_completion_request(
        ApiKind::kChat, R"({"messages":[{"role":"user","content":"Hi"}])" + (more.empty() ? "" : "," + more) + "}",
        model);
  }
  CompletionRequest complete(const std::string& more) const {
    return read_completion_request(ApiKind::kCompletion, "{" + more + "}", model);
  }
  // "400 temperature invalid_type", or what came instead.
  std::string refused(ApiKind kind, const std::string& body) const {
    try {
      read_completion_request(kind, body, model);
    } catch (const ApiError& error) {
      const Document inner = *error.json().find("error");
      return fmt::format("{} {} {}", error.status(), inner.find("param")->text, inner.find("code")->text);
    } catch (const Error& error) {
      return fmt::format("another error: {}", error.message());
    }
    return "taken";
  }
  std::string refused_chat(const std::string& more) const {
    return refused(ApiKind::kChat, R"({"messages":[{"role":"user","content":"Hi"}],)" + more + "}");
  }
};

TEST_F(CompletionRequestTest, TakesTheModelsSettingsWhereNoneAreGiven) {
  const CompletionRequest request = chat("");
  EXPECT_EQ(request.n, 1);
  EXPECT_FALSE(request.stream);
  EXPECT_EQ(request.sampling.temperature, text.sampling.temperature);
  EXPECT_EQ(request.prompts.size(), 1U);
  EXPECT_EQ(answer_room(request, request.prompts[0].size(), model), *text.answer_max);
  EXPECT_EQ(answer_room(complete(R"("prompt":"a")"), 2, model), 16);
}

TEST_F(CompletionRequestTest, ReadsEverySetting) {
  const CompletionRequest request = chat(
      R"("n":2,"stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":7,"stop":["a","b"],
      "temperature":0.5,"top_p":0.9,"frequency_penalty":1,"presence_penalty":-1,"seed":-3,"logprobs":true,
      "top_logprobs":4,"logit_bias":{"5":-100,"6":2.5},"top_k":40,"min_p":0.1,"repetition_penalty":1.1,
      "user":"u","metadata":{},"response_format":{"type":"text"},"model":"nano")");
  EXPECT_EQ(request.n, 2);
  EXPECT_TRUE(request.stream && request.include_usage && request.has_seed);
  EXPECT_EQ(request.answer_max, 7);
  EXPECT_THAT(request.stops, ElementsAre("a", "b"));
  EXPECT_FLOAT_EQ(request.sampling.temperature, 0.5F);
  EXPECT_EQ(request.sampling.seed, static_cast<std::uint64_t>(-3));
  EXPECT_EQ(request.sampling.logprobs, 4);
  ASSERT_EQ(request.sampling.logit_bias.size(), 2U);
  EXPECT_TRUE(std::isinf(request.sampling.logit_bias[0].bias));
  EXPECT_FLOAT_EQ(request.sampling.logit_bias[1].bias, 2.5F);
  EXPECT_EQ(request.sampling.top_k, 40);
}

TEST_F(CompletionRequestTest, ReadsPromptsOfEveryForm) {
  EXPECT_EQ(complete(R"("prompt":"a")").prompts.size(), 1U);
  EXPECT_THAT(complete(R"("prompt":[1,2,3])").prompts, ElementsAre(ElementsAre(1, 2, 3)));
  EXPECT_EQ(complete(R"("prompt":["a","b"])").prompts.size(), 2U);
  EXPECT_THAT(complete(R"("prompt":[[1],[2,3]])").prompts, ElementsAre(ElementsAre(1), ElementsAre(2, 3)));
}

TEST_F(CompletionRequestTest, JoinsThePartsOfAMessage) {
  const auto whole = chat("").prompts;
  const auto parts = read_completion_request(
      ApiKind::kChat,
      R"({"messages":[{"role":"user","content":[{"type":"text","text":"H"},{"type":"text","text":"i"}]}]})", model);
  EXPECT_EQ(whole, parts.prompts);
}

TEST_F(CompletionRequestTest, NamesTheParameterThatIsWrong) {
  EXPECT_EQ(refused_chat(R"("temperature":"hot")"), "400 temperature invalid_type");
  EXPECT_EQ(refused_chat(R"("temperature":3)"), "400 temperature invalid_value");
  EXPECT_EQ(refused_chat(R"("temperature":1e999)"), "400  ") << "no number that can be read";
  EXPECT_EQ(refused_chat(R"("top_p":-0.1)"), "400 top_p invalid_value");
  EXPECT_EQ(refused_chat(R"("n":0)"), "400 n invalid_value");
  EXPECT_EQ(refused_chat(R"("n":129)"), "400 n invalid_value");
  EXPECT_EQ(refused_chat(R"("n":1.5)"), "400 n invalid_type");
  EXPECT_EQ(refused_chat(R"("n":9999999999999)"), "400 n invalid_value");
  EXPECT_EQ(refused_chat(R"("max_tokens":0)"), "400 max_tokens invalid_value");
  EXPECT_EQ(refused_chat(R"("stream":"yes")"), "400 stream invalid_type");
  EXPECT_EQ(refused_chat(R"("stop":[""])"), "400 stop invalid_value");
  EXPECT_EQ(refused_chat(R"("stop":7)"), "400 stop invalid_type");
  EXPECT_EQ(refused_chat(R"("logit_bias":{"9999":1})"), "400 logit_bias invalid_value");
  EXPECT_EQ(refused_chat(R"("logit_bias":{"x":1})"), "400 logit_bias invalid_type");
  EXPECT_EQ(refused_chat(R"("top_logprobs":2)"), "400 top_logprobs invalid_value");
  EXPECT_EQ(refused_chat(R"("stream_options":{"include_usage":true})"), "400 stream_options ");
  EXPECT_EQ(refused_chat(R"("temprature":1)"), "400 temprature unknown_parameter");
  EXPECT_EQ(refused_chat(R"("prompt":"a")"), "400 prompt unknown_parameter");
  EXPECT_EQ(refused_chat(R"("tools":[{}])"), "400 tools unsupported_parameter");
  EXPECT_EQ(refused_chat(R"("response_format":{"type":"yaml"})"), "400 response_format.type invalid_value");
  EXPECT_EQ(refused_chat(R"("model":"gpt-4")"), "404 model model_not_found");
}

TEST_F(CompletionRequestTest, RefusesMessagesThatAreNone) {
  const auto refused_body = [this](const std::string& body) { return refused(ApiKind::kChat, body); };
  EXPECT_EQ(refused_body("{}"), "400 messages missing_required_parameter");
  EXPECT_EQ(refused_body(R"({"messages":[]})"), "400 messages invalid_value");
  EXPECT_EQ(refused_body(R"({"messages":"hi"})"), "400 messages invalid_type");
  EXPECT_EQ(refused_body(R"({"messages":[7]})"), "400 messages[0] invalid_type");
  EXPECT_EQ(refused_body(R"({"messages":[{"role":"pope","content":"x"}]})"), "400 messages[0].role invalid_value");
  EXPECT_EQ(refused_body(R"({"messages":[{"role":"user"}]})"), "400 messages[0].content invalid_type");
  EXPECT_EQ(refused_body(R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})"),
            "400 messages[0].content invalid_value");
  EXPECT_EQ(refused_body("[1]"), "400  ");
  EXPECT_EQ(refused_body("{"), "400  ");
  EXPECT_EQ(refused_body("{\"messages\":\"\xff\"}"), "400  ");
  EXPECT_EQ(refused_body(std::string(100'000, '[')), "400  ");
}

TEST_F(CompletionRequestTest, SaysLimitAndCountOfATooLongPrompt) {
  std::string many;
  for (int i = 0; i < 1024; ++i) many += i == 0 ? "1" : ",1";
  const std::string body = fmt::format(R"({{"prompt":[{}],"max_tokens":1}})", many);
  EXPECT_EQ(refused(ApiKind::kCompletion, body), "400 prompt context_length_exceeded");
  try {
    read_completion_request(ApiKind::kCompletion, body, model);
  } catch (const ApiError& error) {
    EXPECT_THAT(error.message(), HasSubstr("maximum context length is 1024 tokens"));
    EXPECT_THAT(error.message(), HasSubstr("1025 tokens (1024 in the prompt, 1 in the completion)"));
  }
}

TEST_F(CompletionRequestTest, HonoursOrRefusesWhatChangesAnAnswer) {
  EXPECT_FALSE(chat("").has_one_call);
  EXPECT_TRUE(chat(R"("parallel_tool_calls":false)").has_one_call);
  EXPECT_EQ(refused_chat(R"("parallel_tool_calls":1)"), "400 parallel_tool_calls invalid_type");
  EXPECT_EQ(refused_chat(R"("modalities":["text","audio"])"), "400 modalities invalid_value");
  EXPECT_EQ(refused_chat(R"("modalities":["text"])"), "taken");
  const auto responses = [&](const std::string& more) {
    return read_completion_request(ApiKind::kResponses, R"({"input":"Hi",)" + more + "}", model);
  };
  const auto refused_responses = [&](const std::string& more) {
    return refused(ApiKind::kResponses, R"({"input":"Hi",)" + more + "}");
  };
  EXPECT_TRUE(responses(R"("parallel_tool_calls":false)").has_one_call);
  const CompletionRequest shown = responses(R"("include":["message.output_text.logprobs"],"top_logprobs":3)");
  EXPECT_EQ(shown.sampling.logprobs, 3);
  EXPECT_FALSE(responses(R"("include":["reasoning.encrypted_content"])").sampling.logprobs);
  EXPECT_EQ(refused_responses(R"("include":["something"])"), "400 include invalid_value");
  EXPECT_EQ(refused_responses(R"("include":"message.output_text.logprobs")"), "400 include invalid_type");
  EXPECT_EQ(refused_responses(R"("top_logprobs":3)"), "400 top_logprobs invalid_value");
  EXPECT_EQ(refused_responses(R"("truncation":"auto")"), "400 truncation invalid_value");
  EXPECT_EQ(refused_responses(R"("truncation":"disabled","top_logprobs":0)"), "taken");
  const std::string messages = R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":9,)";
  EXPECT_TRUE(read_completion_request(ApiKind::kMessages,
                                      messages + R"("tool_choice":{"type":"auto","disable_parallel_tool_use":true}})",
                                      model)
                  .has_one_call);
}

TEST(ReadOfClient, WhatCostsTooMuchIsStatus400AndTheRestAsItIs) {
  const auto status_of = [](const Error& thrown) {
    try {
      read_of_client([&]() -> int { throw Error(thrown); });
    } catch (const ApiError& error) {
      return error.status();
    } catch (const Error& error) {
      return ApiError::of(error).status();
    }
    return 200;
  };
  EXPECT_EQ(status_of(Error(ErrorCode::kExhausted, "the template takes too long")), 400);
  EXPECT_EQ(status_of(Error(ErrorCode::kUnavailable, "no engine")), 503);
  EXPECT_EQ(read_of_client([] { return 7; }), 7);
}

TEST(ApiErrors, HaveTheHttpStatusAndTheNameOfTheirCode) {
  const auto answer_to = [](ErrorCode code) {
    const ApiError error = ApiError::of(Error(code, "what", "hint"));
    const Document json = error.json();
    const Document& name = *json.find("error")->find("code");
    return fmt::format("{} {} {}", error.status(), name.kind == Document::Kind::kNull ? "-" : name.text,
                       error.message());
  };
  EXPECT_EQ(answer_to(ErrorCode::kInvalid), "400 - what (hint)");
  EXPECT_EQ(answer_to(ErrorCode::kUnsupported), "400 - what (hint)");
  EXPECT_EQ(answer_to(ErrorCode::kExhausted), "429 queue_full what (hint)");
  EXPECT_EQ(answer_to(ErrorCode::kUnavailable), "503 engine_unavailable what (hint)");
  EXPECT_EQ(answer_to(ErrorCode::kTimeout), "504 timeout what (hint)");
  EXPECT_EQ(answer_to(ErrorCode::kNotFound), "500 - what (hint)") << "the server lacks it, not the request";
}

}  // namespace
}  // namespace yoke::serve
