"""Transformers on sequences: the same states and logits as Hugging Face's, with its names."""

import copy

import pytest
import torch
from torch.testing import assert_close

from ansatz import networks
from ansatz.errors import UsageError
from ansatz.spec import InputSpec

EXACT = {"atol": 1e-10, "rtol": 0}
V, T = 40, 12
TOKENS = InputSpec.sequence(vocabulary=V, length=T)
MASK = torch.arange(7) < torch.tensor([[7], [4], [1]])
SMALL = {"width": 8, "depth": 2, "heads": 2}
ROWS = {  # name, options, inputs
    "transformer tokens": ("transformer", {}, TOKENS),
    "transformer numbers": (
        "transformer",
        {"positions": "learned"},
        InputSpec.sequence(features=3),
    ),
    "transformer rotary": ("transformer", {"positions": "rotary", "norm": "post"}, TOKENS),
    "gpt": ("gpt", {}, TOKENS),
    "bert": ("bert", {}, TOKENS),
    "distilbert": ("distilbert", {}, TOKENS),
}
every_network = pytest.mark.parametrize("name, options, spec", ROWS.values(), ids=ROWS)


def build(name, options, spec, seed=0, **more):
    generator = torch.Generator().manual_seed(seed)
    return networks.create(name, spec, 3, generator=generator, **SMALL, **options, **more)


def steps(spec):
    return torch.randint(2, V, (3, 7)) if spec.vocabulary else torch.randn(3, 7, spec.features)


def shaken(network):
    """Away from the start, where weights are small and biases zero."""
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, 0, 0.3)
    return network.eval()


@every_network
@pytest.mark.parametrize("each", [False, True])
def test_padded_is_alone_and_padding_may_hold_anything(name, options, spec, each):
    net, x = shaken(build(name, options, spec, each=each)), steps(spec)
    filler = 0 if spec.vocabulary else torch.nan
    present = MASK if spec.vocabulary else MASK[..., None]
    y = net(x.masked_fill(~present, filler), MASK)
    for row, length in enumerate(MASK.sum(1)):
        alone = net(x[row : row + 1, :length])[0]
        assert_close(y[row, ..., :length] if each else y[row], alone, **EXACT)
    assert y.shape == ((3, 3, 7) if each else (3, 3))


@every_network
def test_it_follows_its_generator_copies_and_has_finite_gradients(name, options, spec):
    before = torch.get_rng_state()
    a, b, c = (build(name, options, spec, seed) for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))
    c.load_state_dict(a.state_dict(), strict=True)
    x, empty = steps(spec), MASK & torch.tensor([[True], [True], [False]])
    assert torch.equal(c(x, MASK), copy.deepcopy(a)(x, MASK))
    shaken(a)(x, empty).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in a.parameters())
    found = [p for group in a.layer_groups() for m in group for p in m.parameters()]
    assert len(found) == len(set(found)) and set(found) == set(a.parameters())


def hugging_face(kind, **more):
    transformers = pytest.importorskip("transformers")
    transformers.logging.set_verbosity_error()
    size = {"vocab_size": V, "num_labels": 3, "pad_token_id": 0, "attn_implementation": "eager"}
    if kind == "gpt":
        config = transformers.GPT2Config(
            n_embd=8, n_layer=2, n_head=2, n_positions=T, bos_token_id=None, eos_token_id=None,
            **size, **more,
        )  # fmt: skip
        return config, transformers.GPT2LMHeadModel
    if kind == "bert":
        config = transformers.BertConfig(
            hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
            max_position_embeddings=T, **size, **more,
        )  # fmt: skip
        return config, transformers.BertForSequenceClassification
    config = transformers.DistilBertConfig(
        dim=8, n_layers=2, n_heads=2, hidden_dim=32, max_position_embeddings=T, **size, **more
    )
    return config, transformers.DistilBertForSequenceClassification


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["gpt", "bert", "distilbert"])
def test_states_and_logits_are_hugging_faces(name):
    config, kind = hugging_face(name)
    theirs = shaken(kind(config).double())
    options = {"each": True} if name == "gpt" else {}
    ours = networks.create(name, TOKENS, V if name == "gpt" else 3, **SMALL, **options).eval()
    state = dict(theirs.state_dict())
    tied = {"lm_head.weight": state.pop("lm_head.weight")} if name == "gpt" else {}
    ours.load_state_dict(state, strict=True)
    theirs.load_state_dict({**ours.state_dict(), **tied}, strict=True)
    x = torch.randint(2, V, (3, 7))
    given = theirs(input_ids=x, attention_mask=MASK.long(), output_hidden_states=True)
    assert_close(ours.hidden_states(x, MASK)[MASK], given.hidden_states[-1][MASK], **EXACT)
    if name == "gpt":
        assert_close(ours(x, MASK).transpose(1, 2)[MASK], given.logits[MASK], **EXACT)
    else:
        assert_close(ours(x, MASK), given.logits, **EXACT)


def test_the_future_changes_no_token_of_gpt():
    net, x = shaken(build("gpt", {}, TOKENS, each=True)), torch.randint(2, V, (2, 7))
    later = x.clone()
    later[:, 4:] = 1
    assert torch.equal(net(later)[..., :4], net(x)[..., :4])


def test_left_padding_and_caches_change_nothing():
    net = shaken(build("gpt", {}, TOKENS, each=True))
    x = torch.randint(2, V, (1, 5))
    left = torch.cat([torch.zeros(1, 3, dtype=torch.long), x], 1)
    mask = torch.arange(8)[None] >= 3
    assert_close(net(left, mask)[..., 3:], net(x), **EXACT)
    caches = net.caches()
    parts = [net(left[:, a:b], mask[:, :b], caches) for a, b in ((0, 5), (5, 6), (6, 8))]
    assert_close(torch.cat(parts, -1)[..., 3:], net(x), **EXACT)


def test_without_positions_the_order_is_invisible():
    net = shaken(build("transformer", {"positions": "none"}, TOKENS))
    x, order = torch.randint(2, V, (2, 7)), torch.randperm(7)
    assert_close(net(x[:, order]), net(x), **EXACT)


def test_an_image_of_224_pixels_is_196_tokens_and_one():
    with torch.device("meta"):
        network = networks.ViTB16((3, 224, 224), 1000)
    assert network.encoder.pos_embedding.shape == (1, 197, 768)
    tiny = networks.create("vit_tiny", (1, 8, 12), 3, width=8, depth=2)
    x = torch.randn(2, 1, 8, 12)
    assert_close(tiny(x)[:1], tiny(x[:1]))
    with pytest.raises(UsageError, match="multiple of the 4 pixels of a patch, got 10 x 8"):
        networks.create("vit_tiny", (1, 10, 8), 3)


@pytest.mark.parametrize("name", ["gpt", "bert", "distilbert", "transformer"])
def test_other_inputs_are_refused(name):
    with pytest.raises(UsageError, match=f"{name} takes sequences, got .* 'vector'"):
        networks.create(name, 3, 2)
    net = build(name, {}, TOKENS)
    with pytest.raises(UsageError, match="vocabulary of 40 tokens, got the code 40"):
        net(torch.full((1, 3), 40))
    with pytest.raises(UsageError, match=r"codes of shape \(B, T\) in int64"):
        net(torch.randn(1, 3, 2))
