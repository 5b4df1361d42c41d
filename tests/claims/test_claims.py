"""Every claim holds, refutes the wrong prediction it names, and repeats itself."""

import inspect

import pytest
import torch

from ansatz import claims

every_claim = pytest.mark.parametrize("name", claims.names())


@every_claim
def test_holds_and_refutes_what_is_wrong(name):
    torch.set_default_dtype(torch.float32)  # what a user has
    finding = claims.run(name)
    failed = [check.to_dict() for check in finding.checks if not check.holds]
    assert not failed
    passed = [check.to_dict() for check in finding.checks if not check.rejects_wrong]
    assert not passed, "a wrong prediction passes"
    assert finding.rejects_wrong, "no wrong prediction is named"
    refuted = {check.wrong.erratum for check in finding.checks if check.wrong}
    assert {erratum.id for erratum in claims.get(name).errata} == refuted - {""}


@every_claim
def test_states_itself(name):
    claim = claims.get(name)
    assert claim.id == name
    assert claim.title and claim.statement.endswith(".") and claim.formula and claim.reference
    assert claim.sources and all(source[0] in "ME" for source in claim.sources)
    assert {erratum.id for erratum in claim.errata} == {s for s in claim.sources if s[0] == "E"}
    parameters = list(inspect.signature(claim.measure).parameters.values())[1:]
    assert all(p.kind is p.KEYWORD_ONLY and p.default is not p.empty for p in parameters)
    assert set(claim.full) <= {p.name for p in parameters}
