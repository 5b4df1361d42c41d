"""Augmentations by name."""

from ansatz.registry import Registry

_HERE = "ansatz.data.augmentation"

registry = Registry(
    "augmentation",
    {
        "affine": f"{_HERE}.affine:Affine",
        "blur": f"{_HERE}.blur:Blur",
        "brightness": f"{_HERE}.enhance:Brightness",
        "compose": f"{_HERE}.compose:Compose",
        "contrast": f"{_HERE}.enhance:Contrast",
        "crop": f"{_HERE}.crop:Crop",
        "elastic": f"{_HERE}.elastic:Elastic",
        "random_erasing": f"{_HERE}.random_erasing:RandomErasing",
        "flip": f"{_HERE}.flip:Flip",
        "hue": f"{_HERE}.hue:Hue",
        "noise": f"{_HERE}.noise:Noise",
        "pca_color": f"{_HERE}.pca_color:PcaColor",
        "rotate": f"{_HERE}.rotate:Rotate",
        "saturation": f"{_HERE}.enhance:Saturation",
        "scale": f"{_HERE}.scale:Scale",
        "shift": f"{_HERE}.shift:Shift",
        "random_apply": f"{_HERE}.compose:RandomApply",
        "rotate90": f"{_HERE}.rotate90:Rotate90",
    },
)

create = registry.create
names = registry.names
register = registry.register
