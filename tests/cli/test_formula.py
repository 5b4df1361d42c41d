import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansatz.cli.formula import plain_formula, plain_text


@pytest.mark.parametrize(
    "latex, shown",
    [
        (r"\mu", "μ"),
        (r"\sigma^2", "σ²"),
        (r"x_{ij}", "xᵢⱼ"),
        (r"\frac{a + b}{2 c}", "(a + b)/(2 c)"),
        (r"\frac12", "1/2"),
        (r"\frac1\phi", "1/φ"),
        (r"\frac1M \sum_i", "1/M Σᵢ"),
        (r"\sqrt2 s", "√2 s"),
        (r"f(\tfrac kn) \binom nk", "f(k/n) binom(n, k)"),
        (r"\frac1n x + \frac{1}{2n}", "1/n x + 1/(2n)"),
        (r"\mathcal B \subseteq \mathbb R^n", "B ⊆ Rⁿ"),
        (r"A \succeq 0 \iff x \perp y \implies \nexists z", "A ⪰ 0 ⇔ x ⊥ y ⇒ ∄ z"),
        (r"a \not\Leftarrow b", "a ⇍ b"),
        (r"\log\phi + \log\frac{y}{\mu}", "log φ + log (y/μ)"),
        (r"\frac{\log\phi}{\phi}", "(log φ)/φ"),
        (r"\sqrt{\frac{a}{b}}", "√(a/b)"),
        (r"e^{-\lambda t}", "e^(-λ t)"),
        (r"\left\lVert x \right\rVert_p", "‖ x ‖_p"),
        (r"\bar{x} = \frac{1}{N} \sum_{j=1}^{N} x_j", "x̄ = 1/N Σⱼ₌₁^N xⱼ"),
        (r"\text{max\_val}", "max_val"),
        (r"\{0, 1\}", "{0, 1}"),
        (r"p(y \mid x) \ge 0", "p(y | x) ≥ 0"),
        (r"f = \begin{cases} x & x > 0 \\ 0 & \text{else} \end{cases}", "f = { x x > 0\n0 else }"),
        (r"\mathbb{E}[x^{(t+1)}]", "E[x^(t+1)]"),
        (r"\log \Gamma(\alpha)", "log Γ(α)"),
    ],
)  # fmt: skip
def test_a_formula_reads_as_one_would_type_it(latex, shown):
    assert plain_formula(latex) == shown


@given(st.text(alphabet=r"\{}_^ abfracsqrt&12", max_size=60))
def test_no_text_is_too_broken_to_show(latex):
    assert isinstance(plain_formula(latex), str)


def test_roles_and_backquotes_become_what_they_say():
    assert (
        plain_text(":class:`~torch.nn.ReLU` of ``x`` is :math:`x^+`") == "torch.nn.ReLU of x is x⁺"
    )
