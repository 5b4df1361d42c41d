"""Published image files: where each comes from, and the SHA-256 sum that proves it."""

from ansatz.data.bundles import Bundle

_GITHUB = "https://raw.githubusercontent.com/"
_IDX = tuple(
    f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")
)

IMAGE_BUNDLES = {
    "mnist": Bundle(
        "mnist",
        _IDX,
        "b2d8f5bf39174ee5ffeefa97e42d673c35432b411bb5d1f74fbbeddae7f1690a",
        54_950_048,
        _GITHUB + "fgnt/mnist/master/",
        packed=True,
    ),
    "fashion-mnist": Bundle(
        "fashion-mnist",
        _IDX,
        "14410854cf7a289477dcfc7df3f8ec24741e281cdcc425ede0d9a748ca630214",
        54_950_048,
        _GITHUB + "zalandoresearch/fashion-mnist/master/data/fashion/",
        packed=True,
    ),
    "cifar10": Bundle(
        "cifar10",
        ("cifar10_subset.npz",),
        "052897d022712a96e3aaf4a2619866f642a4ff35c64869598cb5281ff258ad2b",
        33_911_357,
    ),
    "isbi2012": Bundle(
        "isbi2012",
        tuple(
            f"{folder}/{k}.png"
            for folder in ("train/image", "train/label", "test/image")
            for k in range(30)
        ),
        "6e7b7914a00342836ec097aed99bad46455a1e02af1da53a247d4cb60893ffe4",
        12_840_848,
    ),
    "mni152": Bundle(
        "mni152-volume",
        ("mni152_t1_tissue.npz",),
        "25e154ba06c835a7c786cf30f57c525122ded557786155f5b192cb42e40b10eb",
        1_827_253,
    ),
}
