"""Passages and windows: each token once, none from the future, pure in (seed, epoch, position)."""

import torch
from torch.testing import assert_close

from ansatz.data.batch import UNLABELLED
from ansatz.data.sequences.documents import split_documents
from ansatz.data.sequences.masked_passages import MASK, SHARE, MaskedPassages
from ansatz.data.sequences.passage_source import PassageSource
from ansatz.data.sequences.passages import passages
from ansatz.data.sequences.tokens import Tokens

TEXT = "the quick brown fox jumps over the lazy dog. " * 9
TOKENS = Tokens.learn([TEXT], kind="char")


def rows(context=16, documents=1):
    return passages([[(TEXT[d:], 0)] for d in range(documents)], TOKENS, context)


def test_each_token_is_a_target_once_and_is_predicted_from_those_before_it():
    made = rows()
    y, (values, answers) = made.targets(), made.inputs()
    assert torch.equal(y[y != UNLABELLED], made.codes[1:])
    for row in range(len(made)):
        begin, start, stop = made.places[row].tolist()
        for k in range(stop - start):
            at = int(answers[row, k])
            seen = values.values[row, : at + 1].tolist()
            assert seen == made.codes[start + k - len(seen) : start + k].tolist()
            assert len(seen) == start + k - begin or len(seen) > made.context - made.stride


def test_no_window_reaches_into_another_document():
    made = rows(documents=3)
    ends = (made.codes == 0).nonzero().flatten().tolist()
    assert len(ends) == 6  # each begins and ends with 0
    for source in (PassageSource(made, 4), PassageSource(made, 4, shuffle=False)):
        for batch in source.batches(0):
            inputs = batch.inputs.values[batch.inputs.mask]
            assert int((inputs == 0).sum()) <= len(batch.index)  # only to begin with


def test_windows_in_order_hold_each_token_once():
    made = rows(documents=2)
    batches = list(PassageSource(made, 4, shuffle=False).batches(0))
    y = torch.cat([b.target[b.weight > 0] for b in batches])
    both = made.targets()
    assert torch.equal(y, both[both != UNLABELLED])


def test_an_epoch_is_a_function_of_seed_epoch_and_position():
    source, again = (PassageSource(rows(documents=2), 4, seed=3) for _ in "12")
    full = list(source.batches(1))
    late = list(again.batches(1, start=2))
    assert len(full) == len(source) and len(late) == len(full) - 2
    for a, b in zip(full[2:], late, strict=True):
        assert torch.equal(a.inputs.values, b.inputs.values) and torch.equal(a.target, b.target)
    other = next(source.batches(2))
    assert not torch.equal(other.inputs.values, full[0].inputs.values)


def test_the_test_is_the_end_of_a_stream_and_whole_documents_of_many():
    (pieces,) = split_documents(["abcdefghij"], 0.1, 0.2, seed=0)
    assert pieces == [("abcdefg", 0), ("hi", 1), ("j", 2)]
    many = [f"text {k % 50}" for k in range(100)]  # each twice
    parts = [each[0][1] for each in split_documents(many, 0.1, 0.2, seed=0)]
    assert parts[:50] == parts[50:]
    assert (parts.count(1), parts.count(2)) == (20, 10)


def masked(n=40):
    tokens = Tokens.learn([TEXT], kind="char")
    tokens.tokenizer.add_special_tokens([MASK])
    return passages([[(TEXT * n, 0)]], tokens, 32, MaskedPassages)


def test_masks_have_berts_shares_and_the_text_is_elsewhere():
    made = masked()
    for batches in (PassageSource(made, 64, shuffle=s).batches(0) for s in (True, False)):
        found = [(b.inputs.values, b.target, b.weight, b.inputs.mask) for b in batches]
        found = [each for each in found if each[0].shape[1] == 32]
        x, y, w, m = (torch.cat([each[k] for each in found]) for k in range(4))
        hidden, n = w > 0, int(m.sum())
        share = hidden.sum() / n
        assert abs(share - SHARE) < 4 * (SHARE * (1 - SHARE) / n) ** 0.5 + 0.15 / 32
        is_mask = (x == made.tokens.size - 1)[hidden].double().mean()
        same = (x == y)[hidden].double().mean()
        assert abs(is_mask - 0.8) < 4 * (0.16 / int(hidden.sum())) ** 0.5
        assert abs(same - 0.1 - 0.1 / (made.tokens.size - 3)) < 0.03
    assert torch.equal(made.targets(), made.targets())


def test_masks_of_a_batch_are_a_function_of_its_position():
    made = masked(4)
    full = list(PassageSource(made, 8, seed=1).batches(0))
    late = list(PassageSource(made, 8, seed=1).batches(0, start=3))
    assert_close(full[3].inputs.values, late[0].inputs.values)
    assert_close(full[3].weight, late[0].weight)
