"""Writes tests/fixtures/diffusers-unet-*: weights and outputs of diffusers' UNet2DModel.

pip install diffusers && python benchmarks/oracles/diffusers_unet.py
"""

import json
from pathlib import Path

import torch
from diffusers import UNet2DModel
from safetensors.torch import save_file

FIXTURES = Path(__file__).parents[2] / "tests" / "fixtures"
MODELS = {
    "classes": {
        "sample_size": 8, "in_channels": 2, "out_channels": 3, "block_out_channels": [8, 16],
        "layers_per_block": 2, "down_block_types": ["DownBlock2D", "AttnDownBlock2D"],
        "up_block_types": ["AttnUpBlock2D", "UpBlock2D"], "norm_num_groups": 4,
        "attention_head_dim": 8, "num_class_embeds": 5,
    },
    "ddpm": {
        "sample_size": 16, "in_channels": 1, "out_channels": 1, "block_out_channels": [8, 8, 12],
        "layers_per_block": 1, "norm_num_groups": 4, "attention_head_dim": None,
        "down_block_types": ["DownBlock2D", "AttnDownBlock2D", "DownBlock2D"],
        "up_block_types": ["UpBlock2D", "AttnUpBlock2D", "UpBlock2D"],
        "freq_shift": 1, "flip_sin_to_cos": False, "downsample_padding": 0, "norm_eps": 1e-6,
    },
}  # fmt: skip


def main() -> None:
    for name, config in MODELS.items():
        torch.manual_seed(0)
        model = UNet2DModel(**config).eval()
        for parameter in model.parameters():  # away from its start, where parts are alike
            torch.nn.init.normal_(parameter, 0, 0.2)
        size = config["sample_size"]
        x, t = torch.randn(3, config["in_channels"], size, size), torch.tensor([0, 17, 999])
        extra = {}
        if "num_class_embeds" in config:
            extra["class_labels"] = torch.tensor([0, 4, 2])
        with torch.no_grad():
            y = model(x, t, **extra).sample
        tensors = {f"weight.{key}": value for key, value in model.state_dict().items()}
        tensors |= {"x": x, "t": t, "y": y, **extra}
        folder = FIXTURES / f"diffusers-unet-{name}"
        folder.mkdir(exist_ok=True)
        save_file(
            {key: value.contiguous() for key, value in tensors.items()},
            folder / "model.safetensors",
        )
        (folder / "config.json").write_text(json.dumps(dict(model.config), indent=1, default=str))


if __name__ == "__main__":
    main()
