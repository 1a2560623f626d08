#include "yoke/text/jinja/template.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"

namespace yoke::text::jinja {
namespace {

const char* const kVariables = R"({"name": "Ada", "n": 3, "pi": 1.5, "yes": true, "nothing": null, "empty": [],
  "list": [1, 2, 3, 4, 5], "words": ["b", "a", "c"], "map": {"x": 1, "items": "held"},
  "people": [{"name": "Ann", "age": 9}, {"name": "Bob"}], "text": " a b\n", "umlauts": "äöü",
  "reals": [2.0, 1e3, -0.0, 0.5, 1e22]})";

MarkedText render_marked(std::string_view source, const Limits& limits = {}) {
  std::tm clock{};
  clock.tm_year = 126;
  clock.tm_mon = 6;
  clock.tm_mday = 4;
  const Value variables = Value::from_document(parse_json(kVariables, "variables"), Origin::kUser);
  return Template::parse(source, "test").render(variables, clock, limits);
}

std::string render(std::string_view source) { return render_marked(source).text(); }

std::string error_of(std::string_view source, const Limits& limits = {}) {
  try {
    return "no error: " + render_marked(source, limits).text();
  } catch (const Error& error) {
    return error.message();
  }
}

// Each pair was checked against Jinja 3.1.6 with the settings of transformers.
struct Example {
  const char* source;
  const char* text;
};

void check(std::initializer_list<Example> examples) {
  for (const Example& example : examples) {
    try {
      EXPECT_EQ(render(example.source), example.text) << example.source;
    } catch (const Error& error) {
      ADD_FAILURE() << example.source << ": " << error.message();
    }
  }
}

// Made by tools/goldens/jinja.py with Jinja itself.
TEST(JinjaGolden, SnippetsGiveWhatJinjaGives) {
  const Document golden = parse_json(read_file(YOKE_SOURCE_DIR "/tests/golden/jinja/snippets.json"), "snippets.json");
  const Value variables = Value::from_document(*golden.find("variables"), Origin::kUser);
  ASSERT_GT(golden.find("snippets")->items.size(), 80U);
  for (const Document& snippet : golden.find("snippets")->items) {
    const std::string& source = snippet.find("source")->text;
    const Document* wanted = snippet.find("text");
    try {
      const std::string text = Template::parse(source, "test").render(variables, std::tm{}).text();
      EXPECT_TRUE(wanted && text == wanted->text)
          << source << "\ngave " << text << "\nbut Jinja "
          << (wanted ? "gives " + wanted->text : "refuses it: " + snippet.find("refused")->text);
    } catch (const Error& error) {
      EXPECT_FALSE(wanted) << source << "\nwas refused: " << error.message() << "\nJinja gives " << wanted->text;
    }
  }
}

TEST(JinjaValues, ArePrintedAsPythonPrintsThem) {
  check({{"{{ name }}", "Ada"},
         {"{{ nothing }}{{ yes }}{{ n }}{{ pi }}{{ 2.0 }}", "NoneTrue31.52.0"},
         {"{{ unknown }}", ""},
         {"{{ list }}{{ map }}", "[1, 2, 3, 4, 5]{'x': 1, 'items': 'held'}"},
         {"{{ ['it\\'s', 'a\"b', 'c\\n'] }}", "[\"it's\", 'a\"b', 'c\\n']"},
         {"{{ [true, none, 1.0] }}", "[True, None, 1.0]"}});
}

TEST(JinjaOperators, BindAsInJinja) {
  check({{"{{ 1 + 2 * 3 - 4 }}", "3"},
         {"{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 3 }}", "3 -4 2 3.5 8"},
         {"{{ 'a' + 'b' | upper }}", "aB"},
         {"{{ 'a' ~ 1 ~ none }}", "a1None"},
         {"{{ not yes or n == 3 and n > 2 }}", "True"},
         {"{{ 1 < 2 < 3 }}{{ 1 < 3 < 2 }}", "TrueFalse"},
         {"{{ 2 in list }}{{ 9 not in list }}{{ 'x' in map }}{{ 'd' in name }}", "TrueTrueTrueTrue"},
         {"{{ 'yes' if n > 5 else 'no' }}{{ 'hidden' if n > 5 }}", "no"},
         {"{{ n or 5 }}{{ '' or 'other' }}{{ 0 and 1 }}", "3other0"},
         {"{{ [1] + [2] }}{{ 'ab' * 2 }}{{ -n }}", "[1, 2]abab-3"},
         {"{{ 1 == 1.0 }}{{ true == 1 }}{{ 'a' == 1 }}", "TrueTrueFalse"}});
}

TEST(JinjaIndices, AreThoseOfPython) {
  check(
      {{"{{ list[0] }}{{ list[-1] }}{{ name[1] }}{{ umlauts[-1] }}", "15dü"},
       {"{{ list[1:3] }}{{ list[:-1] }}{{ list[::-1] }}{{ list[::2] }}", "[2, 3][1, 2, 3, 4][5, 4, 3, 2, 1][1, 3, 5]"},
       {"{{ umlauts[1:] }}{{ name[:-1] }}{{ name[::-1] }}{{ list[9:] }}", "öüAdadA[]"},
       {"{{ map.x }}{{ map['items'] }}{{ map.y }}{{ list[7] }}", "1held"},
       {"{{ people[0].name }}{{ people[1].age is defined }}", "AnnFalse"},
       {"{% for k, v in map.items() %}{{ k }}={{ v }};{% endfor %}", "x=1;items=held;"},
       {"{{ map.get('x') }}{{ map.get('y', 'z') }}{{ map.keys() | list }}", "1z['x', 'items']"}});
}

TEST(JinjaFilters, DoWhatJinjaDoes) {
  check(
      {{"{{ text | trim }}|{{ 'xxaxx' | trim('x') }}", "a b|a"},
       {"{{ list | length }}{{ umlauts | length }}{{ map | count }}", "532"},
       {"{{ words | join(', ') }}{{ people | join('-', attribute='name') }}", "b, a, cAnn-Bob"},
       {"{{ {'a': [1, 'ü\"'], 'b': none} | tojson }}", "{\"a\": [1, \"ü\\\"\"], \"b\": null}"},
       {"{{ [1, {'a': true}, []] | tojson(indent=2) }}", "[\n  1,\n  {\n    \"a\": true\n  },\n  []\n]"},
       {"{{ 'ü😀' | tojson(ensure_ascii=true) }}", "\"\\u00fc\\ud83d\\ude00\""},
       {"{{ words | sort | list }}{{ words | reverse | list }}{{ [1, 1, 2] | unique | list }}",
        "['a', 'b', 'c']['c', 'a', 'b'][1, 2]"},
       {"{{ list | select('odd') | list }}{{ list | reject('equalto', 2) | list }}", "[1, 3, 5][1, 3, 4, 5]"},
       {"{{ people | selectattr('age') | map(attribute='name') | list }}", "['Ann']"},
       {"{{ people | selectattr('name', '==', 'Bob') | list }}", "[{'name': 'Bob'}]"},
       {"{{ people | rejectattr('name', 'in', ['Bob', 'Cy']) | map(attribute='name') | list }}", "['Ann']"},
       {"{{ list | select('>', 3) | list }}{{ list | reject('!=', 2) | list }}{{ list | select('<=', 1) | list }}",
        "[4, 5][2][1]"},
       {"{{ 3 is in list }}{{ 9 is not in list }}", "TrueTrue"},
       {"{{ reals }}{{ reals | tojson }}", "[2.0, 1000.0, -0.0, 0.5, 1e+22][2.0, 1000.0, -0.0, 0.5, 1e+22]"},
       {"{{ people | rejectattr('name', 'equalto', 'Ann') | list | length }}", "1"},
       {"{{ words | map('upper') | join }}{{ list | first }}{{ list | last }}", "BAC15"},
       {"{{ unknown | default('d') }}{{ '' | default('e', true) }}{{ none | default('f') }}", "deNone"},
       {"{{ 'a-b-a' | replace('a', 'x') }}{{ 'hello world' | title }}{{ 'abc' | capitalize }}", "x-b-xHello WorldAbc"},
       {"{{ '12' | int }}{{ 'x' | int }}{{ 3.9 | int }}{{ '1.5' | float }}{{ -3 | abs }}", "12031.53"},
       {"{{ 'a\nb\n\nc' | indent(2) }}", "a\n  b\n\n  c"},
       {"{{ ['b', 'A', 'a', 'C'] | sort }}{{ ['a', 'A', 'b'] | unique | list }}", "['A', 'a', 'b', 'C']['a', 'b']"},
       {"{{ ['b', 'A', 'a'] | sort(reverse=true) }}{{ ['b', 'A'] | sort(case_sensitive=true) }}",
        "['b', 'A', 'a']['A', 'b']"},
       {"{% for k, v in {'b': 1, 'A': 2} | dictsort(by='value', reverse=true) %}{{ k }}{{ v }}{% endfor %}", "A2b1"},
       {"{{ '3.7' | int }}{{ 'x' | int(5) }}{{ \"it's o'k\" | title }}{{ \"it's\".title() }}", "35It's O'kIt'S"},
       {"{{ {'b': 1, 'a': [1, 2]} | tojson(separators=(',', ':'), sort_keys=true) }}", "{\"a\":[1,2],\"b\":1}"},
       {"{{ '{} of {n}, {{{0}}}'.format(2, n=3) }}", "2 of 3, {2}"},
       {"{% for k, v in {'b': 1, 'a': 2} | dictsort %}{{ k }}{{ v }}{% endfor %}{{ list | sum }}{{ list | max }}",
        "a2b1155"},
       {"{{ map | items | list | length }}{{ 5 | string + 'x' }}", "25x"}});
}

TEST(JinjaTests, AnswerAsJinjaDoes) {
  check({{"{{ name is defined }}{{ unknown is defined }}{{ unknown is undefined }}{{ nothing is none }}",
          "TrueFalseTrueTrue"},
         {"{{ name is string }}{{ map is mapping }}{{ list is iterable }}{{ list is not string }}", "TrueTrueTrueTrue"},
         {"{{ n is number }}{{ n is integer }}{{ pi is float }}{{ yes is boolean }}{{ yes is true }}",
          "TrueTrueTrueTrueTrue"},
         {"{{ 4 is even }}{{ 3 is odd }}{{ 9 is divisibleby 3 }}{{ 2 is in [1, 2] }}{{ 1 is eq 1 }}",
          "TrueTrueTrueTrueTrue"},
         {"{{ not name is defined }}{{ name is not none and name is string }}", "FalseTrue"}});
}

TEST(JinjaMethods, AreThoseOfPython) {
  check({{"{{ text.strip() }}|{{ 'xxax'.lstrip('x') }}|{{ 'axx'.rstrip('x') }}", "a b|ax|a"},
         {"{{ 'a,b,c'.split(',') }}{{ 'a,b,c'.split(',', 1) }}{{ 'a,b,c'.rsplit(',', 1) }}{{ ' a  b '.split() }}",
          "['a', 'b', 'c']['a', 'b,c']['a,b', 'c']['a', 'b']"},
         {"{{ name.startswith('A') }}{{ name.endswith(('x', 'da')) }}{{ name.upper() }}{{ 'AB'.lower() }}",
          "TrueTrueADAab"},
         {"{{ 'aXb'.replace('X', '-') }}{{ '-'.join(words) }}{{ 'öx'.find('x') }}{{ 'banana'.count('an') }}",
          "a-bb-a-c12"},
         {"{{ 'a\nb'.splitlines() }}{{ 'prefix'.removeprefix('pre') }}{{ 'x.py'.removesuffix('.py') }}",
          "['a', 'b']fixx"}});
}

TEST(JinjaStatements, LoopAndBranch) {
  check({{"{% for x in list if x > 2 %}{{ loop.index }}:{{ x }}{{ ',' if not loop.last }}{% endfor %}", "1:3,2:4,3:5"},
         {"{% for x in empty %}x{% else %}none{% endfor %}", "none"},
         {"{% for x in unknown %}x{% endfor %}", ""},
         {"{% for x in list %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 4 %}{% break %}{% endif %}{{ x }}{% "
          "endfor %}",
          "13"},
         {"{% for x in words %}{{ loop.previtem }}{{ loop.first }}{{ loop.revindex }}{{ loop.length }} {% endfor %}",
          "True33 bFalse23 aFalse13 "},
         {"{% if n == 1 %}a{% elif n == 3 %}b{% else %}c{% endif %}", "b"},
         {"{% set x = 1 %}{% for i in list %}{% set x = i %}{% endfor %}{{ x }}", "1"},
         {"{% set ns = namespace(x=1) %}{% for i in list %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}", "16"},
         {"{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set c %}in {{ name }}{% endset %}{{ c }}", "12in Ada"},
         {"{% macro f(a, b='B') %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ f(1) }}{{ f('x', b=2) }}{{ f() }}", "1Bx2B"},
         {"{% generation %}kept{% endgeneration %}{% raw %}{{ raw }}{% endraw %}", "kept{{ raw }}"},
         {"{% for c in 'ab' %}{{ c }}.{% endfor %}{% for i in range(2, 8, 3) %}{{ i }}{% endfor %}", "a.b.25"},
         {"{{ strftime_now('%d %b %Y') }}{{ dict(a=1) }}", "04 Jul 2026{'a': 1}"}});
}

TEST(JinjaWhiteSpace, IsKeptOrDroppedAsTransformersSetsIt) {
  check({{"a\n  {% if yes %}\nb\n  {% endif %}\nc\n", "a\nb\nc"},
         {"a  {%- if yes -%}  b  {%- endif -%}  c", "abc"},
         {"a\n  {{ n }}\n b", "a\n  3\n b"},
         {"a\n  {{- n -}}\n b", "a3b"},
         {"a\n  {%+ if yes %}b{% endif +%}\nc", "a\n  b\nc"},
         {"a {# comment #}\nb{#- x -#} c", "a bc"},
         {"x {% if yes %} y{% endif %}", "x  y"},
         {"\n\n", "\n"},
         {"{{ {'a': {'b': 1}}['a']['b'] }}", "1"},
         {"a\r\nb{% if yes %}\r\nc{% endif %}", "a\nbc"}});
}

TEST(JinjaOrigins, AUsersTextStaysMarked) {
  const auto marked = [](std::string_view source) {
    std::string shown;
    for (const Segment& segment : render_marked(source).segments()) {
      shown += segment.origin == Origin::kUser ? "[" + segment.text + "]" : segment.text;
    }
    return shown;
  };
  EXPECT_EQ(marked("<{{ name }}>"), "<[Ada]>");
  EXPECT_EQ(marked("{{ '<' + name + '>' }}"), "<[Ada]>");
  EXPECT_EQ(marked("{{ ('<' + name + '>')[1:3] ~ 'x' }}"), "[Ad]x");
  EXPECT_EQ(marked("{{ text | trim }}.{{ name.split('d')[0] }}"), "[a b].[A]");
  EXPECT_EQ(marked("{{ words | join('-') }}"), "[b]-[a]-[c]");
  EXPECT_EQ(marked("{{ name | upper }}{{ map | tojson }}"), "[ADA{\"x\": 1, \"items\": \"held\"}]");
  EXPECT_EQ(marked("{{ 'aXb' | replace('X', name) }}{{ name.replace('d', '<>') }}"), "a[Ada]b[A]<>[a]");
  EXPECT_EQ(marked("{% macro f(x) %}<{{ x }}>{% endmacro %}{{ f(name) }}"), "<[Ada]>");
  EXPECT_EQ(marked("{% for k in map %}{{ k }}.{% endfor %}{% set y %}{{ name }}{% endset %}{{ y }}"),
            "[x].[items].[Ada]");
  EXPECT_EQ(marked("{{ people }}"), "[{'[name]': '[Ann]', '[age]': 9}, {'[name]': '[Bob]'}]");
}

TEST(JinjaErrors, TellTheLine) {
  EXPECT_EQ(error_of("a\n\n{{ 1 + }}"), "test, line 3: a value is missing before ''");
  EXPECT_EQ(error_of("\n{% if x %}"), "test, line 2: 'endif' is missing");
  EXPECT_EQ(error_of("\n{% endfor %}"), "test, line 2: 'endfor' closes nothing");
  EXPECT_EQ(error_of("{{ 'a"), "test, line 1: the text is not closed");
  EXPECT_EQ(error_of("\n{{ unknown.x }}"), "test, line 2: 'unknown' is undefined");
  EXPECT_EQ(error_of("{{ 'a' + 1 }}"), "test, line 1: '+' does not work with a text and an integer");
  EXPECT_EQ(error_of("\n\n{{ raise_exception('no tools') }}"), "test, line 3: the template refuses this: no tools");
  EXPECT_EQ(error_of("{{ 1 // 0 }}"), "test, line 1: a division by zero");
  EXPECT_EQ(error_of("{{ missing() }}"), "test, line 1: there is no function 'missing'");
  EXPECT_EQ(error_of("{{ 'a' < 1 }}"), "test, line 1: a text and an integer have no order");
  EXPECT_EQ(error_of("{% break %}"), "test, line 1: 'break' and 'continue' belong into a loop");
  EXPECT_EQ(error_of("{% set name.x = 1 %}"),
            "test, line 1: 'name' is not a namespace: only a namespace can be changed");
  EXPECT_EQ(error_of("\xFF"), "test is not UTF-8");
}

TEST(JinjaErrors, NameWhatIsNotSupported) {
  for (const auto& [source, message] : std::initializer_list<std::pair<const char*, const char*>>{
           {"{% include 'x' %}", "test, line 1: the statement 'include' is not supported"},
           {"{{ name | odd_filter }}", "test, line 1: the filter 'odd_filter' is not supported"},
           {"{{ name is odd_test }}", "test, line 1: the test 'odd_test' is not supported"}}) {
    try {
      render(source);
      ADD_FAILURE() << source;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
      EXPECT_EQ(error.message(), message);
    }
  }
}

TEST(JinjaLimits, EndTemplatesThatDoNotEnd) {
  const Limits small{.steps = 100'000, .text_bytes = 10'000};
  const char* const endless =
      "{% for a in range(1000) %}\n{% for b in range(1000) %}{% for c in range(1000) %}{% endfor %}{% endfor %}{% "
      "endfor %}";
  EXPECT_EQ(error_of(endless, small), "test, line 2: it does not come to an end within 100000 steps");
  EXPECT_NE(error_of("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}").find("recurses too deep"), std::string::npos);
  EXPECT_NE(error_of("{% set n = namespace(x='ab') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}")
                .find("a text of more than"),
            std::string::npos);
  EXPECT_NE(error_of("{{ 'a' * 999999999999 }}").find("a text of more than"), std::string::npos);
  EXPECT_NE(error_of("{% for i in range(999) %}{{ text * 99 }}{% endfor %}", small).find("a text of more than"),
            std::string::npos);
  EXPECT_NE(error_of("{% set n = namespace(x=[]) %}{% for i in range(999) %}{% set n.x = [n.x] %}{% endfor %}")
                .find("nested more than 80 deep"),
            std::string::npos);
  EXPECT_NE(error_of("{% set n = namespace() %}{% set n.x = n %}").find("cannot hold a namespace"), std::string::npos);
  EXPECT_NE(error_of("{{ range(10000000000) }}").find("too long"), std::string::npos);
  EXPECT_NE(error_of("{{ 9223372036854775807 + 1 }}").find("too large"), std::string::npos);
}

// A few shared values that stand for 2^60, and texts that cost their size times another's.
TEST(JinjaLimits, EndWhatIsDearInsideOfOneExpression) {
  const std::string twins =
      "{% set n = namespace(x=['a'], y=['a']) %}"
      "{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% set n.y = [n.y, n.y] %}{% endfor %}";
  for (const char* use : {"{{ n.x }}", "{{ n.x | tojson }}", "{{ n.x | tojson(indent=4) }}", "{{ n.x ~ 'a' }}",
                          "{{ n.x | upper }}", "{{ [n.x] | join }}", "{{ n.x is upper }}",
                          "{{ n.x | string | length }}", "{{ n.x == n.y }}", "{{ n.x is eq(n.y) }}", "{{ n.x < n.y }}",
                          "{{ n.x in [n.y] }}", "{{ [n.x, n.y] | unique }}", "{{ [n.x, n.y] | sort }}",
                          "{{ [n.x, n.y] | max }}", "{{ {'k': n.x} == {'k': n.y} }}", "{{ raise_exception(n.x) }}"}) {
    const std::string error = error_of(twins + use, {.steps = 2'000'000, .text_bytes = 1 << 20});
    const bool named = error.find("it does not come to an end") != std::string::npos ||
                       error.find("it makes a text of more than") != std::string::npos;
    EXPECT_TRUE(named && error.starts_with("test, line 1: ")) << use << ": " << error.substr(0, 200);
  }
  for (const char* dear : {"{{ ('a,' * 8000000).split(',') | length }}", "{% for c in 'a' * 8000000 %}{% endfor %}",
                           "{{ ('a ' * 8000000).split() | length }}", "{{ ('\\n' * 8000000).splitlines() | length }}",
                           "{{ ('a' * 8000000).strip('b' * 8000000 ~ 'a') }}", "{{ ['\\n' * 9000000] }}",
                           "{{ ['\1' * 8000000] | tojson }}"}) {
    EXPECT_TRUE(error_of(dear, {.steps = 2'000'000}).starts_with("test, line 1: ")) << dear;
  }
  // Each round walks 1.6 MB: a template of 90 bytes must not take hours. The limits are a tenth of the usual ones.
  for (const char* walk : {"x.strip()", "x.startswith(x)", "x.endswith(x)", "x | int", "x | float", "x.split()",
                           "x.splitlines()", "x.find('a')", "x.removeprefix(x[1:])", "x.removesuffix(x[1:])",
                           "x.split(none, 1)", "x | indent(2)", "x | trim", "x.rstrip()", "x == x ~ ''"}) {
    const std::string source = fmt::format(
        "{{% set x = ' ' * 1600000 %}}{{% for i in range(100000) %}}{{% set y = {} %}}{{% endfor %}}", walk);
    EXPECT_EQ(error_of(source, {.steps = 2'000'000}), "test, line 1: it does not come to an end within 2000000 steps")
        << walk;
  }
  // Fields of format() find their arguments without copying all of them.
  std::string ones = "1";
  for (int i = 1; i < 20'000; ++i) ones += ",1";
  EXPECT_EQ(render(fmt::format("{{{{ ('{{}}' * 20000).format({}) | length }}}}", ones)), "20000");
  // Found in a time that grows with the texts' sizes, not with their product.
  EXPECT_EQ(render("{{ ('a' * 4000000 ~ 'b') in 'a' * 8000000 }}{{ ('a' * 8000000).find('a' * 4000000 ~ 'b') }}"),
            "False-1");
}

TEST(JinjaLimits, LeaveRoomForLongMessages) {
  EXPECT_EQ(render("{% for i in range(50) %}{% set t = 'é' * 200000 %}{{ t[0] }}{{ t[-1:] }}{{ t[:2] }}{% endfor %}"),
            [] {
              std::string all;
              for (int i = 0; i < 200; ++i) all += "é";
              return all;
            }());
  EXPECT_EQ(render("{{ 'héllo'[1] }}{{ 'héllo'[::-1] }}{{ 'héllo'[1:4:2] }}{{ 'héllo'[4:1] }}{{ 'é'[5] }}{{ ''[:] }}"),
            "éolléhél");
}

TEST(JinjaLimits, BoundTheDepthOfTheSource) {
  for (const auto& [open, close] : std::initializer_list<std::pair<const char*, const char*>>{
           {"(", ")"}, {"[", "]"}, {"-", ""}, {"not ", ""}, {"1+", ""}, {"", "|abs"}, {"", "[0]"}, {"1 or ", ""}}) {
    std::string source = "1";
    for (int i = 0; i < 100'000; ++i) source = i % 1000 == 0 ? open + source + close : source;
    for (int i = 0; i < 1000; ++i) source = open + source + close;
    EXPECT_NE(error_of("{{ " + source + " }}").find("nested more than"), std::string::npos) << open << close;
  }
  std::string blocks;
  for (int i = 0; i < 100'000; ++i) blocks += "{% if x %}";
  EXPECT_NE(error_of(blocks).find("nested more than"), std::string::npos);
}

}  // namespace
}  // namespace yoke::text::jinja
