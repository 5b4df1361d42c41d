import json
import operator

import pytest

import ansatz
from ansatz import inference
from ansatz.cli.formula import plain_formula
from ansatz.cli.names import KINDS, factory_of, registry_of
from ansatz.cli.show import Docstring, _call
from ansatz.fitting.options import declared
from ansatz.fitting.options.commands import InferenceSettings

every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
def test_every_name_has_a_page(command, kind):
    for name in registry_of(kind).names():
        done = command("show", name, "--kind", kind)
        assert done.status == 0 and done.err == ""
        assert done.out.startswith(f"{name} (")


@every_kind
def test_every_formula_can_be_read_in_a_terminal(kind):
    for name in registry_of(kind).names():
        for formula in Docstring.of(registry_of(kind).get(name)).formulas:
            if r"\rule" not in formula:  # torch's algorithms are left to its own page
                assert "\\" not in plain_formula(formula), (name, formula)


def test_a_likelihood_shows_formula_parameters_shapes_reference_and_example(command):
    page = command("show", "poisson").out
    assert "-log p(y) = e^η - y η + log y!" in page
    for title in ("Call", "Shapes", "Example", "Reference"):
        assert f"\n{title}\n" in page
    assert 'ansatz.likelihoods.create("poisson")' in page
    assert "McCullagh and Nelder" in page and ">>> Poisson()" in page


def test_as_json(command):
    document = json.loads(command("show", "poisson", "--json").out)
    assert document["kind"] == "likelihood" and document["formulas"]


def test_a_name_with_several_meanings_says_so(command):
    done = command("show", "linear")
    assert done.out.startswith("linear (network)")
    assert "'linear' is also among the layers: ansatz show linear --kind layers\n" in done.err


def test_a_wrong_name_suggests_the_nearest(command):
    done = command("show", "poison")
    assert done.status == 2 and "Did you mean 'poisson'" in done.err
    done = command("show", "poison", "--kind", "likelihoods")
    assert done.status == 2 and "Did you mean 'poisson'" in done.err


@every_kind
def test_python_spells_it_as_shown(kind):
    for name in registry_of(kind).names():
        member = registry_of(kind).get(name) if kind in ("metrics", "functions") else None
        spelled = factory_of(kind) if member is None else _call(name, kind, member).split("(")[0]
        assert callable(operator.attrgetter(spelled.removeprefix("ansatz."))(ansatz)), name


def test_formulas_stand_where_the_docstring_has_them(command):
    page = command("show", "cox").out
    words = ("Times until an event", "λ(t | x)", "with η = raw[0]", "Breslow's formula,", "H₀(t) =")
    places = [page.index(each) for each in words]
    assert places == sorted(places)


def test_what_set_accepts_is_a_table(command):
    done = command("show", "mlp", "--options")
    table = {line.split()[0]: line for line in done.out.splitlines() if line}
    assert "network" in table["widths"] and "[128, 128]" in table["widths"]
    assert "training" in table["epochs"] and "inputs" not in table
    rows = json.loads(command("show", "gamma", "--options", "--json").out)
    assert rows[0]["name"] == "dispersion" and rows[0]["owner"] == "likelihood"
    assert "for networks, likelihoods" in command("show", "adamw", "--options").err


def test_the_options_of_an_inference_are_shown_with_their_defaults(command):
    page = command("show", "nuts").out
    assert (
        "max_depth: Doublings of a path of nuts at most: 10; networks 8." in page
        and "friction" not in page
    )
    rows = json.loads(command("show", "sghmc", "--options", "--json").out)
    assert {row["name"] for row in rows} == set(inference.registry.get("sghmc").settings)


@pytest.mark.parametrize("name", inference.names())
def test_every_option_of_an_inference_is_declared(name):
    assert inference.registry.get(name).settings <= set(declared(InferenceSettings))


def test_a_data_set_is_shown_with_rows_target_columns_source_and_licence(command):
    page = command("data", "show", "bike-sharing").out
    for words in ("17,379", "cnt; --drop casual,registered,instant", "windspeed", "UCI, from"):
        assert words in page
    document = json.loads(command("show", "rossi", "--json").out)
    assert document["question"] == {"target": ["week"], "event": "arrest"}
    assert document["rows"] == 432 and document["license"] and document["source"]
