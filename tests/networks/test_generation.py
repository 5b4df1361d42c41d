"""Generation: batches, caches and beams agree, and with Hugging Face's."""

import pytest
import torch
from tests.networks.test_sequence_transformers import SMALL, TOKENS, V, hugging_face, shaken
from torch.testing import assert_close

from ansatz import networks
from ansatz.errors import UsageError
from ansatz.networks import generate, next_token_distribution, stream_tokens


def model(seed=0):
    torch.manual_seed(seed)
    return shaken(networks.create("gpt", TOKENS, V, each=True, **SMALL))


def test_cached_is_uncached_and_one_beam_is_greedy():
    net, x = model(), torch.randint(2, V, (3, 4))
    greedy = generate(net, x, 8)
    assert torch.equal(greedy, generate(net, x, 8, cache=False))
    assert torch.equal(greedy, networks.generation._search(net, x, 8, None, 1))
    assert torch.equal(greedy, torch.stack(list(stream_tokens(net, x, 8)), 1))
    drawn = [
        generate(net, x, 8, temperature=0.7, cache=c, generator=torch.Generator().manual_seed(1))
        for c in (True, False)
    ]
    assert torch.equal(*drawn)


@pytest.mark.parametrize("beams", [1, 3])
def test_a_batch_gives_what_each_prompt_gives(beams):
    net, x = model(), torch.randint(2, V, (2, 5))
    x[0, :2] = 0
    mask = torch.tensor([[False] * 2 + [True] * 3, [True] * 5])
    y = generate(net, x, 6, mask=mask, beams=beams)
    for row, first in enumerate((2, 0)):
        assert torch.equal(
            y[row : row + 1], generate(net, x[row : row + 1, first:], 6, beams=beams)
        )


def test_an_end_ends_a_text():
    net, x = model(), torch.randint(2, V, (2, 3))
    free = generate(net, x, 8)
    end = int(free[0, 2])
    y = generate(net, x, 8, end=end)
    first = int((free[0] == end).nonzero()[0])
    assert torch.equal(y[0, : first + 1], free[0, : first + 1]) and (y[0, first + 1 :] == 0).all()


def test_top_k_and_top_p_keep_the_likely_tokens():
    logits = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log()
    assert_close(next_token_distribution(logits), logits.exp())
    assert_close(next_token_distribution(logits, top_p=0.75)[0], torch.tensor([0.625, 0.375, 0, 0]))
    assert_close(next_token_distribution(logits, top_k=1)[0], torch.tensor([1.0, 0, 0, 0]))
    cold = next_token_distribution(logits, temperature=0.5)[0]
    assert_close(cold, logits.exp()[0] ** 2 / (logits.exp() ** 2).sum())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("beams", [1, 4])
def test_it_is_hugging_faces(beams):
    config, kind = hugging_face("gpt")
    theirs = shaken(kind(config).double())
    ours = networks.create("gpt", TOKENS, V, each=True, **SMALL).eval()
    state = theirs.state_dict()
    ours.load_state_dict({k: v for k, v in state.items() if k != "lm_head.weight"})
    x = torch.randint(2, V, (3, 4))
    given = theirs.generate(
        x, attention_mask=torch.ones_like(x), max_new_tokens=7, do_sample=False, num_beams=beams
    )
    assert torch.equal(generate(ours, x, 7, beams=beams), given[:, 4:])


def test_wrong_calls_are_named():
    net, x = model(), torch.ones(1, 3, dtype=torch.long)
    with pytest.raises(UsageError, match="positions for 12 tokens, 22 are needed"):
        generate(net, x)
    with pytest.raises(UsageError, match="padding on the left"):
        generate(net, x, 2, mask=torch.tensor([[True, True, False]]))
    with pytest.raises(UsageError, match="needs a language model"):
        generate(networks.create("gpt", TOKENS, 2, **SMALL), x, 2)
    with pytest.raises(UsageError, match="temperature must be positive"):
        generate(net, x, 2, temperature=-1)
