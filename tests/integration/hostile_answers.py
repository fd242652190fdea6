"""What a hostile model writes: texts that would run, break out, reorder or flood, were they shown as they are."""

import json
from pathlib import Path

MEGABYTE = 1_000_000
TIPS = 5  # an answer's
EXPERIMENT = "tip-bench-<b onfocus=top.hacked='experiment'>"
_MODEL_FILE = "evil \x1b[2J\x9b2J\u202e <img src=x onerror=top.hacked='model'>.yaml"


def _long(head: str, more: str) -> str:
    """Without a space in all that follows the head: YAML is read quickly then, and pages have the most to carry."""
    return (head + more * (MEGABYTE // len(more)))[:MEGABYTE]


SCRIPT = "<script>top.hacked='script'</script>"
IMAGE = "<img src=x onerror=\"top.hacked='image'\">"
ESCAPES = "\x1b[2J\x1b]0;owned\x07\x1b[31mall red from here"
LONG = _long("<script>top.hacked='long'</script> \x1b[2J ", "<i>on-and-on</i>")

_MARKUP = (
    SCRIPT,
    IMAGE,
    "</textarea></blockquote></pre><svg onload=\"top.hacked='drawing'\">",
    '"><iframe srcdoc="<script>top.hacked=\'frame\'</script>"></iframe>',
    "' autofocus onfocus='top.hacked=\"attribute\"' style='position:fixed;inset:0",
)
_LINKS = (
    "[Do this first](javascript:top.hacked='link')",
    "![a picture](x\" onerror=\"top.hacked='picture')",
    "<a href=\"javascript:top.hacked='anchor'\" autofocus onfocus=\"top.hacked='focus'\">Read on</a>",
    "<form action=/logout method=post><button autofocus>Go on</button></form>",
    "<div hx-post=/logout hx-trigger=load hx-on:load=\"top.hacked='htmx'\">Wait</div>",
)
_TEMPLATES = (
    "{{7*7}} {{ ''.__class__.__mro__ }}",
    '{% raw %}{% include "run.html" %}',
    "${7*7} #{7*7} <%= 7*7 %>",
    "</style><style>body{display:none}</style>",
    "<!-- nothing after this is shown",
)
_PAGES = (
    "</main></body></html><title>owned</title><base href=//evil.example/>",
    "<meta http-equiv=refresh content='0;url=/login'>",
    '=HYPERLINK("https://evil.example","Open") | a | cell |',
    "[bold red]not bold[/bold red] [link=https://evil.example]not a link[/link]",
    "First line\n\n| --- |\n# Owned\n" + "\n" * 3_000 + "last line",
)
_TERMINAL = (
    ESCAPES,
    "\x9b2J\x9d0;owned\x9c one byte is enough for some terminals",
    "over\rwritten\x08\x08\x08\x7f, and a bell\x07",
    "Call \u202egnp.exe\u202c \u2066now\u2069\u200f\u061c.",
    "two\u2028lines\u2029or\x85four\x0b\x0cpages",
)
_CHARACTERS = (
    "a NUL \x00 in the middle",
    "half a smile \ud83d and no more",
    "s\u200bp\u200dl\u200ci\u2060t\ufeff and Z" + "\u0301\u0489" * 200,
    "W" * 20_000,
    LONG,
)
ANSWERS = (_MARKUP, _LINKS, _TEMPLATES, _PAGES, _TERMINAL, _CHARACTERS)
TEXTS = tuple(text for answer in ANSWERS for text in answer)
NOTES = tuple(f"noted: {text}" for text in (*_MARKUP, *_LINKS, *_TEMPLATES, *_TERMINAL))
RAW = _long("</pre><script>top.hacked='raw'</script>\x1b]0;owned\x07 \x00 \u202e ", "</pre></main><script>")
FAILURE = "<script>top.hacked='failure'</script> </pre> \x1b[2J\x1b]0;owned\x07 \u202e \ud83d " + "W" * 2_000
REASON = "good enough <script>top.hacked='reason'</script> \x1b[2J \u202e"
# A word of every scenario, in the order in which the suite has them.
_MOMENTS = ("07:10", "18:20", "08:30", "20:15", "07:20", "20:05", "08:40", "20:40")


def hostile_model(folder: Path) -> str:
    """A model that answers each scenario with other texts, one of them with a megabyte, and fails at the last."""
    told = [*({"answer": json.dumps(answer)} for answer in ANSWERS), {"answer": RAW}, {"fail": FAILURE}]
    rules = [{"when": f", {moment} (", **what} for moment, what in zip(_MOMENTS, told, strict=True)]
    script = {"parameters": MEGABYTE, "latency_s": 0.05, "rules": rules}
    (folder / _MODEL_FILE).write_text(json.dumps(script), encoding="utf-8")
    return f"scripted/{folder / _MODEL_FILE}"
