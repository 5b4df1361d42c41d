"""The page is inert, whole and readable, whatever the data are called (W5, W10)."""

import re
from html.parser import HTMLParser

import pytest
from tests.report.conftest import HOSTILE

import ansatz
from ansatz.figures import Figure, Section, Table, Text
from ansatz.figures.page import render, write_page
from ansatz.figures.style import figure, to_svg


class Checked(HTMLParser):
    """Collects tags, attributes and text; every tag that opens must close."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.words, self.open = [], [], [], []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in ("meta", "link"):
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(self.words)


def check_inert(page):
    found = Checked(page)
    assert not {"script", "iframe", "object", "embed", "form", "img", "base"} & set(found.tags)
    for tag, name, value in found.attributes:
        assert not name.startswith("on") and name != "style", (tag, name)
        if name in ("href", "src", "xlink:href"):
            assert value.startswith("#") or value == "data:,", value
        assert "\u202e" not in value
    policy = next(v for t, n, v in found.attributes if t == "meta" and "default-src" in v)
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]", page)
    # The only address is the name space that SVG has.
    assert set(re.findall(r"https?://[^\s\"'<]+", page)) <= {"http://www.w3.org/2000/svg"}
    return found


def hostile_sections():
    with figure(4, 2) as paper:
        axes = paper.subplots()
        axes.plot([0, 1], [0, 1], label=HOSTILE[0])
        axes.set_title(HOSTILE[4])
        axes.set_xlabel(HOSTILE[6])
        axes.set_ylabel(HOSTILE[5])
        axes.legend()
        svg = to_svg(paper)
    every = [
        Section(
            text,
            text,
            [
                Text(text),
                Text(text, "code"),
                Table([text, "n"], [[text, 1.5]], text),
                Figure(svg, text, text),
            ],
        )
        for text in HOSTILE
    ]
    return every


def test_hostile_text_is_text():
    page = render(hostile_sections(), title=HOSTILE[1], kicker=HOSTILE[0], verdict=HOSTILE)
    found = check_inert(page)
    assert "<script>alert(1)</script>" in found.text  # shown, not run
    assert "{{7*7}}" in found.text and "49" not in found.text
    assert "\\u202egnp.exe" in found.text
    assert len(page) < 400_000  # a name of 10 KB is shortened wherever it stands


def test_a_long_name_is_shortened_and_whole_on_demand():
    page = render([Section("A", "", [Table(["c"], [["x" * 1_000]])])], title="t")
    found = Checked(page)
    assert max(map(len, found.text.split())) < 300
    assert any(name == "title" and len(value) == 1_000 for _, name, value in found.attributes)


def test_the_style_is_the_one_that_the_policy_allows():
    import base64
    import hashlib

    page = render([], title="t")
    style = re.search(r"<style>(.*?)</style>", page, re.S)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in page


def test_numbers_are_formatted_and_aligned_by_the_page():
    page = render(
        [Section("A", "", [Table(["m", "v"], [["rmse", -0.123456], ["n", None]])])], title="t"
    )
    assert '<td class="n">−0.1235</td>' in page and '<td class="n">–</td>' in page


@pytest.mark.parametrize(
    "svg",
    [
        '<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>',
        '<svg xmlns="http://www.w3.org/2000/svg" onload="x()"></svg>',
        '<svg xmlns="http://www.w3.org/2000/svg"><image href="http://a.b/c.png"/></svg>',
        '<svg xmlns="http://www.w3.org/2000/svg"><foreignObject/></svg>',
    ],
)
def test_a_figure_may_only_draw(svg):
    with pytest.raises(ValueError, match="may only draw"):
        render([Section("A", "", [Figure(svg, "", "")])], title="t")


def test_it_is_written_whole_or_not_at_all(tmp_path):
    path = write_page(tmp_path / "a.html", "<p>1")
    with pytest.raises(ansatz.errors.UsageError, match="exists"):
        write_page(path, "<p>2")
    assert path.read_text() == "<p>1"
    assert write_page(path, "<p>2", overwrite=True).read_text() == "<p>2"
    assert [file.name for file in tmp_path.iterdir()] == ["a.html"]
