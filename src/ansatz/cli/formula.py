"""Turns the LaTeX of docstrings into plain Unicode for a terminal."""

import re
import unicodedata

_SYMBOLS = """
    Σ sum  Π prod  ∫ int  ∞ infty  ∂ partial  ∇ nabla  · cdot  × times  ⊙ odot  ⊗ otimes  ⊕ oplus
    ∘ circ  * ast  * star  ± pm  ∓ mp  ≤ le  ≤ leq  ≥ ge  ≥ geq  ≠ ne  ≠ neq  ≈ approx  ~ sim
    ∝ propto  ≪ ll  ≫ gg  ≡ equiv  ∈ in  ∉ notin  ⊂ subset  ∪ cup  ∩ cap  ∀ forall  ∃ exists
    ∄ nexists  ∅ emptyset  ⊆ subseteq  ⊃ supset  ⊇ supseteq  ∖ setminus  ∧ land  ∧ wedge  ∨ lor
    ∨ vee  ¬ neg  ¬ lnot  ≻ succ  ⪰ succeq  ≺ prec  ⪯ preceq  ≲ lesssim  ≳ gtrsim  ≃ simeq  ≅ cong
    ⊥ perp  ∥ parallel  ⇔ iff  ⇔ Leftrightarrow  ↔ leftrightarrow  ⇒ implies  ⇒ Rightarrow
    ⇒ Longrightarrow  ⇐ Leftarrow  → longrightarrow  → to  → rightarrow  ↑ uparrow  ↓ downarrow
    ′ prime  † dagger  □ square  ← leftarrow  ← gets  ↦ mapsto  | mid  | vert  | lvert  | rvert
    ‖ Vert  ‖ lVert  ‖ rVert  ⌊ lfloor  ⌋ rfloor  ⌈ lceil  ⌉ rceil  ⟨ langle  ⟩ rangle  ℓ ell
    T top  ε varepsilon  φ varphi  θ vartheta  λ lambda  Λ Lambda
""".split()  # a character and its command, in turn
_WORDS = dict(zip(_SYMBOLS[1::2], _SYMBOLS[::2], strict=True)) | {
    "|": "‖",
    "ldots": "...",
    "dots": "...",
    "cdots": "...",
    "quad": "  ",
    "qquad": "    ",
    "{": "\1",  # not the braces of a group
    "}": "\2",
    "%": "%",
    "_": "\0",  # until the subscripts are done
    "&": "&",
    "#": "#",
    ",": " ",
    ";": " ",
    ":": " ",
    "!": "",
    " ": " ",
    "\\": "\n",
}
_WRAPPERS = (
    "text|textrm|textbf|mathrm|mathbf|mathcal|mathbb|mathit|mathsf|boldsymbol|operatorname|"
    "mathbin|mathop|bm|operatorname\\*"
)
_LETTERS = "mathrm|mathbf|mathcal|mathbb|mathit|mathsf|boldsymbol|bm"  # may stand without braces
_TOKEN = r"\\[A-Za-z]+|[0-9]"
_PAIRS = r"\\(?:[dt]?frac|binom)(?![A-Za-z])"
_ACCENTS = {"hat": "\u0302", "bar": "\u0304", "tilde": "\u0303", "dot": "\u0307", "vec": "\u20d7"}
_SUPERSCRIPT = str.maketrans("0123456789+-=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ")
_SUBSCRIPT = str.maketrans("0123456789+-=()aeijoruvx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑᵢⱼₒᵣᵤᵥₓ")


def plain_formula(latex: str) -> str:
    r"""A formula as a line of Unicode text, for a terminal."""
    text = re.sub(
        r"\\(?:left|right|bigl?|bigr?|Bigl?|Bigr?|displaystyle)(?![a-zA-Z])\.?", "", latex
    )
    text = re.sub(r"\\(?:begin|end)\{(\w+\*?)\}", _environment, text).replace("&", " ")
    text = re.sub(r"\\not\s*\\(?:Leftarrow|impliedby)(?![A-Za-z])", "⇍", text)
    text = re.sub(r"\\not\s*\\(?:Rightarrow|implies)(?![A-Za-z])", "⇏", text)
    text = re.sub(rf"\\({_LETTERS})\s*([A-Za-z0-9])(?![A-Za-z])", r"\\\1{\2}", text)
    # TeX takes one token where the braces are left out: \frac12, \frac1\phi, \sqrt2.
    text = re.sub(rf"({_PAIRS}|\\sqrt)\s*(?:({_TOKEN})|(?<=\s)([A-Za-z]))", _braced, text)
    text = re.sub(rf"({_PAIRS})(\{{[^{{}}]*\}})\s*({_TOKEN}|[A-Za-z])", r"\1\2{\3}", text)
    for _ in range(20):  # innermost groups first; twenty levels are more than anyone writes
        before = text
        text = re.sub(r"\\([A-Za-z]+(?![{A-Za-z])|[^A-Za-z])", _word, text)
        text = re.sub(rf"\\(?:{_WRAPPERS})\s*\{{([^{{}}]*)\}}", r"\1", text)
        text = re.sub(r"\\(hat|bar|tilde|dot|vec)\s*(?:\{([^{}\\]*)\}|(\w))", _accent, text)
        text = re.sub(r"\\(?:over|under)(?:line|brace)\s*\{([^{}]*)\}", r"\1", text)
        text = re.sub(r"\\sqrt\s*\{([^{}]*)\}", lambda m: f"√{_grouped(m[1])}", text)
        text = re.sub(  # \sqrt[p]{x} is x^(1/p)
            r"\\sqrt\[([^\[\]{}]*)\]\{([^{}]*)\}", lambda m: f"{_grouped(m[2])}^(1/{m[1]})", text
        )
        text = re.sub(r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}", _fraction, text)
        text = re.sub(r"\\binom\s*\{([^{}]*)\}\s*\{([^{}]*)\}", r"binom(\1, \2)", text)
        text = re.sub(r"([_^])\{([^{}]*)\}", _script, text)
        if text == before:
            break
    text = re.sub(r"([_^])([\w+*-])", _script, text)
    text = re.sub(r"\\([A-Za-z]+|[^A-Za-z])", _word, text)
    text = text.replace("{", "").replace("}", "")
    text = text.translate({0: "_", 1: "{", 2: "}"})
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return unicodedata.normalize("NFC", "\n".join(line for line in lines if line))


def plain_text(text: str) -> str:
    r"""Prose of a docstring: roles and double backquotes become plain text."""
    text = re.sub(r":math:`([^`]*)`", lambda match: plain_formula(match[1]), text)
    text = re.sub(r":\w+(?::\w+)*:`~?([^`<]*?)(?:\s*<[^`>]*>)?`", r"\1", text)
    text = re.sub(r"``([^`]*)``", r"\1", text)
    return re.sub(r"`([^`<]*?)\s*<[^`>]*>`_+", r"\1", text)


def _braced(match: re.Match[str]) -> str:
    return f"{match[1]}{{{match[2] or match[3]}}}"


def _environment(match: re.Match[str]) -> str:
    if match[1] != "cases":
        return " "
    return "\1 " if match[0].startswith("\\begin") else " \2 "


def _word(match: re.Match[str]) -> str:
    name = match[1]
    if name in _WORDS:
        return _WORDS[name]
    kind = "CAPITAL" if name[:1].isupper() else "SMALL"
    try:
        return unicodedata.lookup(f"GREEK {kind} LETTER {name.upper()}")
    except KeyError:
        if name in _PENDING:  # what takes a group waits its turn
            return match[0]
    # A function's name (log, exp, max) is itself, apart from its argument.
    after = match.string[match.end() : match.end() + 1]
    return f"{name} " if after.isalnum() or after == "\\" else name


_PENDING = {"frac", "dfrac", "tfrac", "sqrt", "binom", *_ACCENTS, *_WRAPPERS.split("|")}


def _accent(match: re.Match[str]) -> str:
    inner = match[2] or match[3] or ""
    return inner[:1] + _ACCENTS[match[1]] + inner[1:] if len(inner) == 1 else inner


def _fraction(match: re.Match[str]) -> str:
    quotient = f"{_grouped(match[1], top=True)}/{_grouped(match[2])}"
    is_argument = re.search(r"[a-z]{2,}\s*$", match.string[: match.start()])  # log of the whole
    return f"({quotient})" if is_argument else quotient


def _grouped(text: str, top: bool = False) -> str:
    """Parentheses where the fraction bar grouped and the slash does not."""
    text = text.strip()
    inner = re.sub(r"\([^()]*\)", "", text)  # what is in parentheses is grouped already
    needs = re.search(r"[+\-]|[a-z]{2,} " if top else r"[+\-/\s·]|[0-9](?:[^\W\d]|√)", inner)
    return f"({text})" if needs else text


def _script(match: re.Match[str]) -> str:
    mark, inner = match[1], match[2].strip()
    table = _SUPERSCRIPT if mark == "^" else _SUBSCRIPT
    small = inner.replace(" ", "")
    if small and all(ord(character) in table for character in small):
        return small.translate(table)
    grouped = len(inner) < 2 or re.fullmatch(r"\([^()]*\)", inner)
    return f"{mark}{inner}" if grouped else f"{mark}({inner})"
