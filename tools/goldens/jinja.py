"""What Jinja makes of snippets of the kind that chat templates hold, with the settings of transformers.

    /usr/bin/python3 tools/goldens/jinja.py > tests/golden/jinja/snippets.json      # python3-jinja2 of Debian

Each snippet is rendered with VARIABLES. One that Jinja refuses has "refused" with its reason instead of "text": yoke
must refuse it too, in its own words.
"""
import json
import sys

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

VARIABLES = {
    "name": "Ada", "n": 3, "pi": 1.5, "yes": True, "nothing": None, "empty": [], "list": [1, 2, 3, 4, 5],
    "words": ["b", "a", "c"], "map": {"x": 1, "items": "held"}, "text": " a b\n", "umlauts": "äöü",
    "people": [{"name": "Ann", "age": 9}, {"name": "Bob"}], "lines": "one\n\n  two\r\nthree\n", "matrix": [[1, 2], [3, 4]],
    "documents": [{"title": "Cable", "text": "MTU 9000"}, {"title": "Rail", "text": "A and B"}],
    "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}],
}

SNIPPETS = [
    # Maps with keys that are no texts.
    "{{ (1, 2) }} {{ (1,) }} {{ () }} {{ [(1, 'a'), []] }} {{ [1] }}",
    "{{ {'b': 1, 'a': (2,)} | dictsort }} {{ {'b': 1}.items() | list }} {{ (1, 2) | list }}",
    "{{ (1, 2) == [1, 2] }} {{ (1, 2) == (1, 2) }} {{ (1, 2) + (3,) }} {{ (1, 2, 3)[1:] }} {{ (1, 2) | tojson }}",
    "{{ (1,) + [2] }}",
    "{% set pair = 1, 'x' %}{{ pair }}{% macro m() %}{{ varargs }}{% endmacro %}{{ m(1, 'b') }}",
    "{% set b = {0: 0, 512: 128, 1024: 256} %}{% for k, v in b | dictsort %}{{ k }}={{ v }};{% endfor %}",
    "{% set b = {0: 0, 512: 128} %}{{ b[512] }}|{{ b[7] is defined }}|{{ b.get(512) }}|{{ b.get(7, 'no') }}|{{ 512 in b }}",
    "{{ {1: 'a', 'k': 2, none: 3, 1.5: 4} }}",
    "{{ {1: 'a', true: 'b', 1.0: 'c'} }}",
    "{{ {1: [1], 'a': none, none: 2, true: 3} | tojson }}",
    "{{ {2: 'b', 1: 'a'} | tojson(sort_keys=true) }}",
    "{{ {'a': 1, 'a': 2, 'b': 3} }}",
    "{% for k in {3: 1, 4: 2} %}{{ k + 1 }} {% endfor %}",
    "{{ {3: 'c'}.keys() | list }}{{ {3: 'c'}.values() | list }}{{ {3: 'c'}.items() | list | length }}",
    "{{ {1: 2} == {1.0: 2} }}{{ {1: 2} == {'1': 2} }}",
    "{{ {-1: 'minus'}[-1] }}",
    "{% set thinking = {0: 0, 512: 128} %}{% set ns = namespace(best=none) %}{% for k, v in thinking | dictsort %}{% if ns.best is none and n <= k %}{% set ns.best = v %}{% endif %}{% endfor %}{{ ns.best }}",
    "{{ {['a']: 1} }}",
    # Call blocks.
    "{% macro box(title) %}[{{ title }}:{{ caller() }}]{% endmacro %}{% call box('T') %}body {{ n }}{% endcall %}",
    "{% macro each(items) %}{% for i in items %}{{ caller(i, loop.last) }}{% endfor %}{% endmacro %}{% call(item, last) each(words) %}{{ item }}{{ '.' if last else ',' }}{% endcall %}",
    "{% macro twice() %}{{ caller() }}{{ caller() }}{% endmacro %}{% set x = 1 %}{% call twice() %}{{ x }}{% endcall %}",
    "{% macro opt() %}{% if caller %}{{ caller() }}{% else %}none{% endif %}{% endmacro %}{{ opt() }}|{% call opt() %}some{% endcall %}",
    "{% macro plain() %}x{% endmacro %}{% call plain() %}y{% endcall %}",
    "{% macro m(a, b='d') %}{{ a }}{{ b }}{{ caller(a=1) }}{% endmacro %}{% call(a, c=5) m('q') %}<{{ a }}{{ c }}>{% endcall %}",
    "{% for w in words %}{% macro s() %}({{ caller() }}){% endmacro %}{% call s() %}{{ w }}{% endcall %}{% endfor %}",
    "{% macro outer() %}<{{ caller() }}>{% endmacro %}{% macro inner() %}{% call outer() %}{{ caller() }}!{% endcall %}{% endmacro %}{% call inner() %}deep{% endcall %}",
    # Arguments from lists and maps.
    "{% macro f(a, b, c='z') %}{{ a }}-{{ b }}-{{ c }}{% endmacro %}{{ f(*['x', 'y']) }}|{{ f('x', *['y', 'w']) }}|{{ f(**{'a': 1, 'b': 2}) }}|{{ f(*['p'], **{'b': 'q'}) }}",
    "{{ range(*[1, 4]) | list }}",
    "{{ dict(**map) }}",
    "{{ '{} {b}'.format(*['x'], **{'b': 'y'}) }}",
    "{% macro f(a) %}{{ a }}{{ varargs | join(',') }}{{ kwargs }}{% endmacro %}{{ f(1, 2, 3, k=4) }}",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(**{'b': 2}) }}",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(*5) }}",
    "{{ words | join(*[', ']) }}",
    "{{ [1, 2, 3] | sum(start=10) }}{{ [{'n': 1}, {'n': 2}] | sum('n') }}",
    # Filter blocks and filtered sets.
    "{% filter upper %}a {{ name }}{% endfilter %}",
    "{% filter trim | upper %}  x {% endfilter %}|",
    "{% filter replace('a', 'b') %}banana{% endfilter %}",
    "{% filter indent(2, true) %}a\nb{% endfilter %}",
    "{% set x | upper %}a{{ n }}{% endset %}{{ x }}",
    "{% set x | trim | length %}  ab {% endset %}{{ x + 1 }}",
    "{% filter upper %}{% for i in list if i > 3 %}{{ i }}x{% endfor %}{% endfilter %}",
    "{% filter nosuch %}a{% endfilter %}",
    # split and its kin.
    "{{ 'a b  c  d'.split(none, 2) }}{{ ' a b '.split(none, 0) }}{{ 'a  b c '.split(none, 1) }}{{ ''.split() }}",
    "{{ 'a b  c  d'.rsplit(none, 2) }}{{ ' a b '.rsplit(none, 0) }}{{ ' a  b c '.rsplit(none, 1) }}",
    "{{ 'a,b,c'.split(',', 1) }}{{ 'a,b,c'.rsplit(',', 1) }}{{ 'a,b'.split(',', -1) }}{{ 'a b'.split(maxsplit=1) }}",
    "{{ 'x'.split(none, 5) }}{{ '  '.split(none, 1) }}{{ 'a b c'.split(maxsplit=0) }}",
    "{{ lines.splitlines() }}{{ lines.splitlines(true) }}{{ 'a\x0bb\u2028c'.splitlines() }}",
    "{{ 'a'.split('') }}",
    # indent
    "{{ 'a\nb\n\nc' | indent }}|",
    "{{ 'a\nb\n\nc' | indent(2, blank=true) }}|",
    "{{ 'a\n\nb\n' | indent(2, true) }}|",
    "{{ 'a\n\nb\n' | indent(width=3, first=true, blank=true) }}|",
    "{{ 'a\nb' | indent('--') }}|{{ 'a\nb' | indent('> ', true) }}|",
    "{{ lines | indent(1) }}|",
    "{{ '' | indent(2, true) }}|{{ '\n' | indent(2, true) }}|{{ 'a\n' | indent(2, blank=true) }}|",
    # int and float
    "{{ 'x' | float('hello') }}{{ 'x' | float }}{{ '1.5' | float(9) }}{{ none | float(2.5) }}{{ '1.5abc' | float }}",
    "{{ ' 2.5 ' | float }}{{ '+1' | float }}{{ '1e3' | float }}{{ 'inf' | float }}{{ true | float }}{{ 3 | float }}",
    "{{ 'x' | int('d') }}{{ 'x' | int(default=7) }}{{ '12abc' | int }}{{ '3.9' | int }}{{ ' 4 ' | int }}{{ none | int(1) }}",
    "{{ 'ff' | int(0, 16) }}{{ '0xff' | int(base=16) }}{{ '0b11' | int(0, 2) }}{{ '-7' | int }}{{ '+7' | int }}{{ '0x1' | int(5) }}",
    "{{ [] | int(3) }}{{ '1e2' | int }}{{ 'nan' | int(4) }}",
    # Numbers
    "{{ -0.0 }} {{ 1e3 }} {{ 2.5e-3 }} {{ 1E2 }} {{ - 3 }} {{ +4 }} {{ 7.0 // 2 }}",
    "{{ matrix.0.1 }}{{ matrix[1].0 }}{{ matrix.1.0 + 0.5 }}",
    "{{ 10 / 4 }} {{ 2 ** -1 }} {{ -7 % 3 }} {{ 7.5 % 2 }}",
    "{{ 2.675 | round(2) }} {{ 3.5 | round }} {{ 2.5 | round | int }} {{ 1234.5 | round(-2) }} {{ 2.1 | round(0, 'ceil') }} {{ 2.19 | round(1, 'floor') }}",
    # Documents and messages
    "{% for d in documents %}{{ loop.index0 }} {{ d['title'] }}: {{ d.text }}\n{% endfor %}",
    "{% if documents %}{{ documents | length }}{% endif %}{{ documents | map(attribute='title') | join(', ') }}",
    "{% for m in messages %}{{ '<|' ~ m.role ~ '|>' }}{{ m['content'] | trim }}{% if not loop.last %}\n{% endif %}{% endfor %}",
    "{{ messages[-1]['role'] }}{{ messages[1:] | length }}{{ (messages | selectattr('role', 'equalto', 'user') | first).content }}",
    "{% for m in messages %}{% if m.role == 'user' %}{% continue %}{% endif %}{{ m.content }}{% break %}{% endfor %}",
    "{{ messages | tojson }}",
    "{{ messages | tojson(indent=2) }}",
    # Methods that cost what they walk
    "{{ ' xax '.strip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'xxa'.lstrip('x') }}|{{ 'axx'.rstrip('x') }}|{{ ' a '.lstrip() }}|",
    "{{ 'abc'.startswith('ab') }}{{ 'abc'.endswith(('x', 'c')) }}{{ 'abc'.removeprefix('ab') }}{{ 'abc'.removesuffix('c') }}{{ 'abc'.removeprefix('x') }}",
    "{{ 'a{}b{}'.format(1, 2) }}{{ '{1}{0}'.format('a', 'b') }}{{ '{x}{y}'.format(x=1, y='z') }}{{ '{{}}'.format() }}",
    "{{ '{}'.format() }}",
    "{{ 'banana'.count('an') }}{{ 'banana'.find('n') }}{{ 'banana'.find('z') }}{{ 'banana'.replace('a', 'o', 2) }}",
    "{{ 'hello world'.title() }}{{ 'HELLO'.capitalize() }}{{ 'a'.upper() }}{{ ','.join(['a', 'b']) }}",
    # Scope
    "{% set x = 1 %}{% for i in list %}{% set x = i %}{% endfor %}{{ x }}",
    "{% set ns = namespace(x=1) %}{% for i in list %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}",
    "{% macro f() %}{{ x }}{% endmacro %}{% set x = 5 %}{{ f() }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, d) = [3, 4] %}{{ c }}{{ d }}",
    "{{ 'a' if n > 2 }}{{ 'b' if n > 5 }}{{ unknown is undefined }}{{ unknown.attribute }}",
    "{{ words | sort | join }}{{ ['b', 'A'] | sort | join }}{{ [3, 1, 2] | sort(reverse=true) }}{{ people | sort(attribute='name') | map(attribute='name') | list }}",
    "{{ [1, none] | sort }}",
    "{{ 'x' * 3 }}{{ [1, 2] + [3] }}{{ 'a' ~ 1 ~ none ~ true }}{{ 'b' in 'abc' }}",
    "{{ list[1:-1] }}{{ list[::-1] }}{{ name[::-1] }}{{ umlauts[0] }}{{ list[10] is defined }}",
    "{%- for i in list -%} {{ i }} {%- endfor -%} |",
    "  {% if yes %}\n  a\n  {% endif %}\n{# c #}\nb",
    "{% raw %}{{ x }}{% endraw %}",
    "{{ list | batch(2) | list }}{{ list | batch(3, 0) | list }}",
    "{{ words | map('upper') | list }}{{ list | select('even') | list }}{{ list | reject('odd') | list }}",
    "{{ 1 if false else 2 if false else 3 }}{{ not false and true }}{{ 1 < 2 <= 2 != 3 }}",
    "{{ nothing is none }}{{ map is mapping }}{{ list is sequence }}{{ name is string }}{{ 3 is divisibleby 3 }}{{ list is iterable }}",
]


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols])
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    return made


def main():
    env = environment()
    rows = []
    for source in SNIPPETS:
        try:
            rows.append({"source": source, "text": env.from_string(source).render(**VARIABLES)})
        except Exception as error:  # whatever Python says
            rows.append({"source": source, "refused": f"{type(error).__name__}: {error}"})
    json.dump({"jinja": jinja2.__version__, "variables": VARIABLES, "snippets": rows}, sys.stdout, ensure_ascii=False, indent=1)
    print()


if __name__ == "__main__":
    main()
