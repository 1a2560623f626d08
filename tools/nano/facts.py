"""The facts that the nano model is taught, and how an answer is judged.

A facts file (facts/*.facts) holds blocks of this form, parted by empty lines:

    link-cable                                      the key
      One QSFP cable joins two Sparks.              the answer
      ! QSFP cable ; same port or same cage         terms: all must appear, "or" gives alternatives
      ? {Which|What} cable joins two {Sparks|units}?   question patterns: every choice of alternatives is a wording;
      ? {=does|has} a Spark{= have|} a cable?       where groups begin with "=", all of them take the same place
      ~ the cable between two Sparks ~ the cable    topics: noun phrases that are put into the general templates
      > link-test {How|Can} I test it?              a follow-up: asked right after this answer, link-test answers it

Facts that come in families, such as the size of each model, are written as tables in families.py.
"""

import itertools
import math
import pathlib
import random
import re
from dataclasses import dataclass, field

FOLDER = pathlib.Path(__file__).resolve().parent / "facts"

# A pattern can have thousands of expansions; more than this of one sentence teach nothing new.
WORDINGS_PER_PATTERN_MOST = 16

TEMPLATES = [
    "What is {t}?",
    "What about {t}?",
    "Tell me about {t}.",
    "Explain {t}.",
    "{t}?",
    "I want to know about {t}.",
    "What do you know about {t}?",
    "Can you explain {t}?",
    "Give me the facts on {t}.",
    "I have a question about {t}.",
    "Please describe {t}.",
    "What should I know about {t}?",
]


@dataclass
class Fact:
    key: str
    answer: str
    terms: list  # of lists of alternatives
    patterns: list = field(default_factory=list)
    topics: list = field(default_factory=list)
    follow_ups: list = field(default_factory=list)  # of (key, wording)


@dataclass
class Wording:
    key: str
    text: str
    source: str  # the pattern or template it came from


def expand(pattern, most, rng):
    """All choices of {a|b|...} in a pattern, or a random part of them."""
    parts = re.split(r"\{([^{}]*)\}", pattern)
    linked = [part[1:].split("|") for i, part in enumerate(parts) if i % 2 and part.startswith("=")]
    if linked and len({len(choice) for choice in linked}) != 1:
        raise ValueError(f"linked groups of different lengths in '{pattern}'")
    texts = []
    for place in range(len(linked[0]) if linked else 1):
        choices = [[part] if i % 2 == 0 else [part[1:].split("|")[place]] if part.startswith("=") else part.split("|")
                   for i, part in enumerate(parts)]
        if math.prod(len(choice) for choice in choices) <= 4 * most:
            texts += ["".join(choice) for choice in itertools.product(*choices)]
        else:
            texts += ["".join(rng.choice(choice) for choice in choices) for _ in range(4 * most)]
    rng.shuffle(texts)
    tidy = (re.sub(r"\s+([?.!,])", r"\1", re.sub(r"\s+", " ", text)).strip() for text in texts)
    unique = list(dict.fromkeys(tidy))
    return unique[:most]


def normalized(text):
    """The form in which two wordings count as the same: words only, lower case."""
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


def judge(answer, terms):
    """True where every term appears, as words of its own and in any case, in one of its alternatives."""
    text = re.sub(r"\s+", " ", answer.lower())

    def appears(term):
        return re.search(r"(?<![\w.])" + re.escape(term.lower()) + r"(?!\w)", text) is not None

    return all(any(appears(term) for term in alternatives) for alternatives in terms)


def parse_terms(text):
    return [[term.strip() for term in group.split(" or ")] for group in text.split(" ; ")]


def parse_file(path):
    facts = []
    lines = path.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or line.startswith("#"):
            continue
        if not line.startswith(" "):
            facts.append(Fact(key=text, answer="", terms=[]))
        elif text.startswith("? "):
            facts[-1].patterns.append(text[2:])
        elif text.startswith("! "):
            facts[-1].terms = parse_terms(text[2:])
        elif text.startswith("~ "):
            facts[-1].topics += [topic.strip() for topic in text[2:].split(" ~ ")]
        elif text.startswith("> "):
            key, pattern = text[2:].split(" ", 1)
            texts = expand(pattern, WORDINGS_PER_PATTERN_MOST, random.Random(f"{key}/{pattern}"))
            facts[-1].follow_ups += [(key, wording) for wording in texts]
        elif not facts[-1].answer:
            facts[-1].answer = text
        else:
            raise ValueError(f"{path.name}:{number}: a second answer for {facts[-1].key}")
    return facts


def load():
    """All facts, in a fixed order."""
    import families

    facts = [fact for path in sorted(FOLDER.glob("*.facts")) for fact in parse_file(path)]
    return facts + families.facts()


def wordings(fact, seed):
    """All wordings of a fact, those of its patterns and those of its topics in the templates, without repeats."""
    rng = random.Random(f"{seed}/{fact.key}")
    found = {}
    for pattern in fact.patterns:
        for text in expand(pattern, WORDINGS_PER_PATTERN_MOST, rng):
            found.setdefault(normalized(text), Wording(fact.key, text, pattern))
    for topic in fact.topics:
        for template in TEMPLATES:
            text = template.replace("{t}", topic)
            text = text[0].upper() + text[1:] if template[0] != "{" else text
            found.setdefault(normalized(text), Wording(fact.key, text, template))
    return list(found.values())


def unknown_wordings(seed):
    """Questions outside the facts."""
    rng = random.Random(f"{seed}/unknown")
    lines = (FOLDER / "unknown.txt").read_text(encoding="utf-8").split("\n")
    patterns = [line for line in lines if line and not line.startswith("#")]
    return [Wording("unknown", text, pattern) for pattern in patterns for text in expand(pattern, 48, rng)]


UNKNOWN = Fact(
    key="unknown",
    answer="I do not know that. I only know a small set of facts about clustering Sparks and servers with yoke.",
    terms=[["I do not know that"]],
)
