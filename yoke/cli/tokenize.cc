// yoke tokenize: text to tokens and back, as a model's tokenizer does it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <memory>

#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/cli/commands.h"
#include "yoke/report/table.h"
#include "yoke/terminal/typed_input.h"
#include "yoke/text/chat.h"
#include "yoke/text/tokenizer.h"
#include "yoke/weights/model_folder.h"

namespace yoke::cli {
namespace {

constexpr Bytes kMaxInput{64 << 20};

struct TokenizeArguments {
  std::string model;
  std::optional<std::string> text;
  std::optional<std::string> decode;
  bool ids = false;
  bool chat = false;
  bool messages = false;
  bool special = false;
  bool bare = false;
};

std::filesystem::path tokenizer_file(const std::filesystem::path& model) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(model, ignored)) return model;
  if (!std::filesystem::is_directory(model, ignored)) return tokenizer_file(weights::find_model_folder(model.native()));
  const std::filesystem::path file = model / "tokenizer.json";
  if (!std::filesystem::exists(file, ignored)) {
    const bool has_sentencepiece = std::filesystem::exists(model / "tokenizer.model", ignored);
    throw Error(ErrorCode::kNotFound, fmt::format("{} has no tokenizer: it holds no tokenizer.json", model.native()),
                has_sentencepiece ? "tokenizer.model is another format: fetch the model's tokenizer.json"
                                  : "fetch the model's tokenizer.json");
  }
  return file;
}

std::string input_text(const TokenizeArguments& arguments) {
  std::string text = arguments.text ? *arguments.text : terminal::read_standard_input(kMaxInput);
  if (const auto broken = find_invalid_utf8(text)) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("the text is not UTF-8: byte {} (0x{:02x}) begins no character", *broken,
                            static_cast<unsigned char>(text[*broken])),
                "convert it first, for example with iconv -t utf-8");
  }
  return text;
}

std::vector<text::TokenId> parse_ids(const std::string& list, const text::Tokenizer& tokenizer) {
  std::vector<text::TokenId> ids;
  for (const std::string& item : split(list, ',')) {
    const std::string_view word = trim(item);
    text::TokenId id = 0;
    const auto [rest, failure] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (failure != std::errc{} || rest != word.data() + word.size()) {
      throw Error(ErrorCode::kUsage, fmt::format("--decode: '{}' is not a token's id", printable(word, 40)),
                  "give ids with commas between: --decode 1,2,3");
    }
    if (!tokenizer.contains(id)) {
      throw Error(ErrorCode::kInvalid, fmt::format("there is no token {} in this vocabulary", id),
                  fmt::format("its ids are 0 to {}", tokenizer.size() - 1));
    }
    ids.push_back(id);
  }
  return ids;
}

std::vector<text::TokenId> encode_chat(const TokenizeArguments& arguments, const text::Tokenizer& tokenizer) {
  const text::ChatTemplate chat = text::ChatTemplate::load(tokenizer_file(arguments.model).parent_path());
  const std::string text = input_text(arguments);
  Document messages =
      arguments.messages
          ? parse_json(text, arguments.text ? "TEXT" : "standard input")
          : Document::list({Document::map({{"role", Document::string("user")}, {"content", Document::string(text)}})});
  // A request as a server gets it: what is beside the messages goes to the template too.
  text::ChatOptions options;
  if (const Document* inside = messages.find("messages")) {
    if (const Document* tools = messages.find("tools")) options.tools = *tools;
    if (const Document* documents = messages.find("documents")) options.documents = *documents;
    messages = Document(*inside);
  }
  if (messages.kind != Document::Kind::kList) {
    throw Error(ErrorCode::kInvalid, fmt::format("the messages are {}, not a list", yoke::to_string(messages.kind)),
                R"(give a list such as [{"role": "user", "content": "Hello"}])");
  }
  return tokenizer.encode(chat.render(messages, options));
}

void print_tokens(Session& session, const std::vector<text::TokenId>& ids, const text::Tokenizer& tokenizer) {
  report::Table table{.columns = {{.header = "place", .align = report::TextAlign::kRight},
                                  {.header = "id", .align = report::TextAlign::kRight},
                                  {.header = "token"},
                                  {.header = "kind"}}};
  for (std::size_t i = 0; i < ids.size(); ++i) {
    table.rows.push_back({fmt::format("{}", i), fmt::format("{}", ids[i]), printable(tokenizer.token(ids[i]), 60),
                          tokenizer.is_special(ids[i]) ? "special" : ""});
  }
  session.print(report::render_text(table));
  session.print(fmt::format("{} token{}\n", ids.size(), ids.size() == 1 ? "" : "s"));
}

Document tokens_json(const std::vector<text::TokenId>& ids, const text::Tokenizer& tokenizer) {
  Document numbers = Document::list();
  Document pieces = Document::list();
  for (const text::TokenId id : ids) {
    numbers.items.push_back(Document::number(std::int64_t{id}));
    pieces.items.push_back(Document::string(std::string(tokenizer.token(id))));
  }
  const std::string text = tokenizer.decode(ids, {.special_tokens = text::SpecialTokens::kShow});
  return Document::map({{"ids", std::move(numbers)},
                        {"pieces", std::move(pieces)},
                        {"text", Document::string(text)},
                        {"count", Document::number(std::ssize(ids))}});
}

void check_together(const TokenizeArguments& arguments) {
  const auto refuse = [](const char* one, const char* other) {
    throw Error(ErrorCode::kUsage, fmt::format("{} and {} do not go together", one, other),
                "see 'yoke tokenize --help'");
  };
  const bool is_chat = arguments.chat || arguments.messages;
  if (arguments.decode && arguments.text) refuse("--decode", "TEXT");
  if (arguments.decode && is_chat) refuse("--decode", arguments.chat ? "--chat" : "--messages");
  if (arguments.decode && arguments.ids) refuse("--decode", "--ids");
  if (is_chat && arguments.special) refuse("--special", arguments.chat ? "--chat" : "--messages");
  if (is_chat && arguments.bare) refuse("--no-special-tokens", arguments.chat ? "--chat" : "--messages");
}

int tokenize(Session& session, const TokenizeArguments& arguments) {
  check_together(arguments);
  const text::Tokenizer tokenizer = text::Tokenizer::load(tokenizer_file(arguments.model));
  std::vector<text::TokenId> ids;
  if (arguments.decode) {
    ids = parse_ids(*arguments.decode, tokenizer);
  } else if (arguments.chat || arguments.messages) {
    ids = encode_chat(arguments, tokenizer);
  } else {
    ids = tokenizer.encode(input_text(arguments),
                           {.frame = arguments.bare ? text::Frame::kNone : text::Frame::kAdd,
                            .origin = arguments.special ? text::Origin::kTemplate : text::Origin::kUser});
  }
  if (session.json) {
    session.print_json(tokens_json(ids, tokenizer));
  } else if (arguments.decode) {
    session.print_as_is(tokenizer.decode(ids, {.special_tokens = text::SpecialTokens::kShow}) + "\n");
  } else if (arguments.ids) {
    session.print(fmt::format("{}\n", fmt::join(ids, ",")));
  } else {
    print_tokens(session, ids, tokenizer);
  }
  return kExitOk;
}

}  // namespace

CommandRow tokenize_command() {
  return {
      .name = "tokenize",
      .summary = "text to a model's tokens, and back",
      .description =
          "Shows the tokens that a model is given for a text: for TEXT, or for all of standard input, its last line "
          "end too. With what the model wants around a text, such as <|begin_of_text|>, unless --no-special-tokens. "
          "Special tokens "
          "that stand in the text are plain text to it, unless --special.\n\n"
          "MODEL is a model folder, or a tokenizer.json.",
      .examples = {{"yoke tokenize models/nano \"Which cable joins two units?\"", "a table"},
                   {"yoke tokenize models/nano --ids < prompt.txt", "ids with commas between"},
                   {"yoke tokenize models/nano --decode 39,68,75", "back to text"},
                   {"yoke tokenize models/nano --chat \"Hello\"", "as the question of a chat"},
                   {"yoke tokenize models/nano --messages < chat.json", "[{\"role\", \"content\"}, …]"}},
      .prepare = [](OptionTable& options) -> Action {
        auto chosen = std::make_shared<TokenizeArguments>();
        options.positional("MODEL", "a model folder, or a tokenizer.json", chosen->model, Presence::kRequired);
        options.positional("TEXT", "the text; else standard input", chosen->text, Presence::kOptional);
        options.flag("--ids", "print only the ids, with commas between", chosen->ids);
        options.value("--decode", "IDS", "print the text of these ids instead", chosen->decode);
        options.flag("--chat", "as a user's message, by the model's chat template", chosen->chat);
        options.flag("--messages", "the text is a JSON list of messages, or a map with messages, tools and documents",
                     chosen->messages);
        options.flag("--special", "special tokens that stand in the text count as such", chosen->special);
        options.flag("--no-special-tokens", "without what the model wants around a text", chosen->bare);
        return [chosen](Session& session) { return tokenize(session, *chosen); };
      }};
}

}  // namespace yoke::cli
