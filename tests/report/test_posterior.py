"""The report's section on a posterior."""

import numpy as np
import pandas as pd

from ansatz import Regressor
from ansatz.report import gather
from ansatz.report.posterior import ranks, section

draw = np.random.default_rng(0)
TABLE = pd.DataFrame({"x": draw.normal(size=60), "g": [f"<b>{k % 5}" for k in range(60)]})
Y = TABLE["x"] + draw.normal(size=5)[np.arange(60) % 5] + 0.3 * draw.normal(size=60)


def of(**options):
    model = Regressor(network="linear", **options).fit(TABLE, Y)
    return section(gather(model, TABLE, Y))


def test_ranks_are_flat_where_chains_agree_and_not_where_they_do_not():
    x = draw.normal(size=(4, 500))
    assert np.abs(ranks(x) - 25).max() < 25
    x[0] += 3
    assert ranks(x)[0][-1] >= 100 and ranks(x).sum() == 2000


def test_draws_have_priors_ranks_traces_and_groups():
    options = {"warmup": 30, "draws": 20}
    found = of(inference="nuts", random=["1|g"], inference_options=options)
    assert found.title == "Posterior" and found.lead.startswith("The draws: ")
    kinds = [type(part).__name__ for part in found.parts]
    assert kinds.count("Table") == 2 and kinds.count("Figure") == 2
    texts = [part.text for part in found.parts if type(part).__name__ == "Text"]
    assert any("known groups" in text for text in texts)
    assert not any("<b>" in part.svg for part in found.parts if hasattr(part, "svg"))


def test_a_normal_approximation_has_no_chains_and_other_models_no_section():
    found = of(inference="laplace", inference_options={"samples": 50})
    assert "normal approximation" in found.lead
    assert of() is None
