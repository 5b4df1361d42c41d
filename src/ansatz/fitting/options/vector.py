"""The options of tables: how they are read, and what their columns are."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict

from ansatz.fitting.options.option import MODEL, READING, ROWS, Option, read_roles, separator, words

Errors = Literal["classical", "HC0", "HC1", "HC2", "HC3", "cluster"]
_READ: Any = {"panel": READING, "reader": True}


class TableReading(TypedDict, total=False):
    """The options of reading the file of a table."""

    delimiter: Annotated[
        str | None,
        Option(
            "What separates the cells of a CSV file. Found out when not given.",
            metavar="CHAR",
            reads=str,
            parse=separator,
            **_READ,
        ),
    ]
    header: Annotated[
        bool,
        Option(
            "The first line holds data, not names.",
            default=True,
            flags=("--no-header",),
            reads=bool,
            parse=lambda absent: not absent,
            **_READ,
        ),
    ]
    names: Annotated[
        str | Sequence[str] | None,
        Option(
            "Names of the columns, separated by commas. A first line of names is replaced, a first "
            "line of data is kept.",
            metavar="A,B,...",
            reads=str,
            parse=words,
            listed=True,
            limits={"min_length": 1},
            **_READ,
        ),
    ]
    comment: Annotated[
        str | None, Option("Lines that start with this are skipped.", metavar="CHAR", **_READ)
    ]
    missing: Annotated[
        str | Sequence[str],
        Option(
            "A cell that means 'missing'. May be given several times.",
            default=[],
            metavar="TEXT",
            reads=list[str],
            listed=True,
            **_READ,
        ),
    ]
    decimal: Annotated[
        str, Option("The decimal sign, '.' by default.", default=".", metavar="CHAR", **_READ)
    ]
    encoding: Annotated[
        str | None,
        Option(
            "How the file spells its letters (utf-8, latin-1, utf-16). Found out when not given.",
            metavar="NAME",
            **_READ,
        ),
    ]


class VectorOptions(TableReading, total=False):
    """The options of tables."""

    roles: Annotated[
        Mapping[str, str] | None,
        Option(
            "What a column is: numeric, categorical, ordered, date, drop; low<mid<high; the format "
            "of its dates, %d/%m/%Y; or a number as it writes them, 1.234,5. May be repeated.",
            ROWS,
            default={},
            flags=("--role",),
            metavar="COL=ROLE",
            reads=list[str],
            parse=read_roles,
        ),
    ]
    formula: Annotated[
        str | None,
        Option(
            "Target and terms as in R: 'y ~ age * sex + bs(bmi, 4) + C(site)'.",
            MODEL,
            metavar="FORMULA",
        ),
    ]
    errors: Annotated[
        Errors | None,
        Option(
            "Standard errors of a linear model: classical, HC0 to HC3, or cluster. Default: "
            "cluster with --group, else classical.",
            MODEL,
            metavar="KIND",
            reads=str,
        ),
    ]
    link: Annotated[
        str | None,
        Option(
            "Link of a linear model's mean: probit, cloglog, identity, log, sqrt, inverse. "
            "Default: the likelihood's own.",
            MODEL,
            metavar="NAME",
        ),
    ]
    impute: Annotated[
        int | None,
        Option(
            "Missing values of a linear model: impute them this often (20, say) and pool the fits "
            "by Rubin's rules. Default: the mean, and a column that marks them.",
            MODEL,
            metavar="N",
            limits={"ge": 2, "le": 1000},
        ),
    ]
    text: Annotated[
        Sequence[str] | None,
        Option("Columns whose cells stay text even if they look like numbers.", reader=True),
    ]
    strict: Annotated[
        Sequence[str] | None,
        Option("Columns in which a word among numbers is an error; all by default.", reader=True),
    ]


class VectorSettings(TypedDict, total=False):
    """Options of the training on tables, as ``--set`` takes them."""

    quantile: Annotated[
        bool | Sequence[str],
        Option("True, or the columns, whose heavy tails are mapped to normal scores."),
    ]
    formula: Annotated[str, Option("Terms of the design matrix as in R.")]
    errors: Annotated[Errors, Option("Standard errors: classical, HC0 to HC3, cluster.")]
    link: Annotated[str, Option("Link of the mean, where not the likelihood's own.")]
    impute: Annotated[int, Option("Imputations of missing values, pooled by Rubin's rules.")]
    bins: Annotated[int, Option("Bins into which the range of each number is cut.")]
