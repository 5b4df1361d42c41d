"""Texts that begin with a folder of Hugging Face: its network, its weights and its tokens."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.testing import assert_close

import ansatz
from ansatz import Classifier, Regressor, networks
from ansatz.data.sequences.sequences import Texts
from ansatz.data.sequences.tokenizer_folder import read_tokenizer
from ansatz.data.sequences.tokens import Tokens
from ansatz.errors import ModelError, UsageError
from ansatz.spec import InputSpec
from ansatz.structures.sequence.encoder import TextEncoder

transformers = pytest.importorskip("transformers")
transformers.logging.set_verbosity_error()
pytestmark = pytest.mark.filterwarnings("ignore")

TEXTS = [
    f"The {what} was {how}, {k}!"
    for k, what in enumerate(("film", "play", "plot", "song", "cast", "scene"))
    for how in ("fine", "dull", "lovely", "awful", "unmoving", "poor", "good", "bad")
]
LABELS = ["pos", "neg"] * 24
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CHARACTERS = sorted({letter for text in TEXTS for letter in text.lower() if letter != " "})
PIECES = [*SPECIAL, *CHARACTERS, *(f"##{c}" for c in CHARACTERS if c.isalnum())]
PIECES += ["the", "was", "film", "play", "fine", "un", "##mov", "##ing", "love", "##ly"]
QUICK = {"steps": 3, "batch_size": 16, "random_state": 0}


def write_word_piece(folder):
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True}))
    return transformers.BertTokenizerFast(vocab=dict(zip(PIECES, range(len(PIECES)), strict=True)))


def write_byte_pairs(folder):
    learned = Tokens.learn(TEXTS, kind="bpe", vocabulary=300).state()["model"]
    vocabulary = {**learned["vocab"], "<|endoftext|>": len(learned["vocab"])}
    lines = ["#version: 0.2", *(" ".join(pair) for pair in learned["merges"])]
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    (folder / "merges.txt").write_text("\n".join(lines) + "\n")
    merges = [tuple(pair) for pair in learned["merges"]]
    return transformers.GPT2TokenizerFast(vocab=vocabulary, merges=merges)


def folder_of(kind, folder):
    """A folder as their library writes it, and the tokenizer that they make of it."""
    folder.mkdir()
    torch.manual_seed(0)
    tokenizer = write_byte_pairs(folder) if kind == "gpt2" else write_word_piece(folder)
    size = {"vocab_size": len(tokenizer), "initializer_range": 0.3}
    if kind == "bert":
        config = transformers.BertConfig(
            **size,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=40,
        )
        network = transformers.BertModel(config)
    elif kind == "distilbert":
        config = transformers.DistilBertConfig(
            **size, dim=16, n_layers=2, n_heads=2, hidden_dim=32, max_position_embeddings=40
        )
        network = transformers.DistilBertModel(config)
    else:
        config = transformers.GPT2Config(
            **size, n_embd=16, n_layer=2, n_head=2, n_positions=64, eos_token_id=len(tokenizer) - 1
        )
        network = transformers.GPT2Model(config)
    network.float().save_pretrained(folder)
    return folder, tokenizer, network.double().eval()


@pytest.fixture(scope="module", params=["bert", "distilbert", "gpt2"])
def given(request, tmp_path_factory):
    return folder_of(request.param, tmp_path_factory.mktemp("models") / request.param)


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return folder_of("bert", tmp_path_factory.mktemp("models") / "bert")[0]


ODD = ["", "unmoving Ünmoving 漢字 don't", "<b>&amp;</b>\t \n x" * 3, "[MASK] [CLS]"]


def test_tokens_are_those_of_transformers(given):
    folder, tokenizer, _ = given
    tokens = read_tokenizer(folder)
    for text in TEXTS + ODD:
        assert tokens.tokenizer.encode(text).ids == tokenizer(text)["input_ids"], text
    tokenizer.save_pretrained(folder / "saved")
    assert tokens.split(TEXTS[0]) == read_tokenizer(folder / "saved").split(TEXTS[0])


def longest_match(word, pieces):
    found, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:end]
            if piece in pieces:
                found, start = [*found, piece], end
                break
        else:
            return ["[UNK]"]
    return found


def test_word_piece_takes_the_longest_match(bert):
    tokens = read_tokenizer(bert)
    for word in ("unmoving", "filmfilm", "lovely", "xyz", "playing"):
        assert tokens.split(word)[1:-1] == longest_match(word, set(PIECES))


def test_a_cut_text_keeps_its_last_special_token(bert):
    tokenizer, tokens = write_word_piece(bert), read_tokenizer(bert)
    found = TextEncoder(tokens, 7).inputs(Texts(TEXTS[:9]))
    theirs = tokenizer(TEXTS[:9], truncation=True, max_length=7, padding=True, return_tensors="pt")
    assert torch.equal(found.values * found.mask, theirs["input_ids"] * theirs["attention_mask"])
    assert torch.equal(found.mask.long(), theirs["attention_mask"])


def test_padding_and_truncation_of_a_file_are_left_out(bert, tmp_path):
    tokens = read_tokenizer(bert)
    tokens.tokenizer.enable_padding(length=30)
    tokens.tokenizer.enable_truncation(5)
    (tmp_path / "tokenizer.json").write_text(tokens.tokenizer.to_str())
    assert read_tokenizer(tmp_path).split(TEXTS[0]) == read_tokenizer(bert).split(TEXTS[0])


def test_a_fit_begins_with_their_hidden_states(given):
    folder, tokenizer, network = given
    model = Classifier(pretrained=folder, freeze="backbone", **QUICK).fit(TEXTS, LABELS).model_
    ours, inputs = model.network.double(), model.encoder.inputs(Texts(TEXTS[:5]))
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    batch = tokenizer(TEXTS[:5], padding=True, return_tensors="pt")
    with torch.no_grad():
        states = network(**batch).last_hidden_state[inputs.mask]
        assert_close(ours.hidden_states(*inputs)[inputs.mask], states, atol=1e-5, rtol=0)
    notes = " ".join(model.notes)
    assert "tensors loaded; left fresh:" in notes and "stay as they began" in notes


def test_a_saved_model_needs_no_folder(given, tmp_path):
    folder, _, _ = given
    frame = pd.DataFrame({"text": TEXTS, "label": LABELS})
    path = tmp_path / "gone"
    path.symlink_to(folder)
    fit = ansatz.fit(frame, target="label", text_column="text", pretrained=path, **OPTIONS)
    fit.model.save(tmp_path / "m")
    path.unlink()
    again = ansatz.load(tmp_path / "m")
    assert np.array_equal(again.predict_proba(TEXTS), fit.model.predict_proba(TEXTS))
    alone = np.concatenate([again.predict_proba([text]) for text in TEXTS[:4]])
    np.testing.assert_allclose(alone, fit.model.predict_proba(TEXTS[:4]), rtol=0, atol=1e-5)


OPTIONS = {"options": {"steps": 3}, "x": "sequence"}


def test_states_computed_once_train_the_same_head(given):
    folder, _, _ = given
    options = {"pretrained": folder, **QUICK, "steps": 9, "learning_rate": 0.01}
    pooling = {} if folder.name == "gpt2" else {"pooling": "mean"}
    once = Classifier(freeze="backbone", **options).fit(TEXTS, LABELS)
    groups = len(networks.layer_groups(once.model_.network)) - 1
    always = Classifier(freeze=groups, network_options={"dropout": 0.0, **pooling}, **options)
    found = always.fit(TEXTS, LABELS).predict_proba(TEXTS)
    np.testing.assert_allclose(once.predict_proba(TEXTS), found, rtol=0, atol=1e-5)


def logits_of(folder, tokenizer, texts):
    made = transformers.AutoModelForSequenceClassification.from_pretrained(
        folder, dtype=torch.float64
    ).eval()
    batch = transformers.AutoTokenizer.from_pretrained(folder)(
        texts, padding=True, return_tensors="pt"
    )
    batch.pop("token_type_ids", None)
    with torch.no_grad():
        return made, made(**batch).logits


@pytest.mark.parametrize("labels", [LABELS, ["a", "b", "c"] * 16], ids=["two", "three"])
def test_an_exported_folder_has_the_probabilities_of_the_model(given, labels, tmp_path):
    folder, tokenizer, _ = given
    model = Classifier(pretrained=folder, **QUICK).fit(TEXTS, labels)
    model.model_.structure.export_folder(model.model_, str(tmp_path / "hf"), merged=False)
    texts = [*TEXTS, "!!!", "the" * 9]
    theirs, logits = logits_of(tmp_path / "hf", tokenizer, texts)
    found = torch.tensor(model.predict_proba(texts)).double()
    assert_close(logits.softmax(1), found, atol=1e-5, rtol=0)
    assert theirs.config.id2label == dict(enumerate(model.classes_.tolist()))


@pytest.mark.parametrize("name", ["bert", "distilbert", "gpt"])
def test_an_adapter_changes_no_bit_before_it_is_trained(name):
    spec = InputSpec.sequence(vocabulary=20, length=9)
    plain, adapted = (
        networks.create(
            name, spec, 2, torch.Generator().manual_seed(0), width=8, heads=2, rank=rank
        )
        for rank in (0, 2)
    )
    codes = torch.randint(2, 20, (3, 9))
    assert torch.equal(plain(codes), adapted(codes))
    assert set(plain.state_dict()) < {k.replace(".linear.", ".") for k in adapted.state_dict()}


@pytest.fixture(scope="module")
def adapted(given):
    folder, _, _ = given
    steps = {**QUICK, "steps": 8, "learning_rate": 0.05}
    options = {"network_options": {"rank": 2}, **steps}
    return Classifier(pretrained=folder, adapter="lora", **options).fit(TEXTS, LABELS)


def test_only_the_adapter_and_the_head_are_trained(given, adapted):
    state, network = adapted.model_.network.state_dict(), adapted.model_.network
    held = load_file(given[0] / "model.safetensors")
    for key, value in held.items():
        own = next((k for k in state if k.replace(".linear.", ".").endswith(key)), None)
        if own is not None:
            assert torch.equal(state[own].float(), value), key
    changes = [value for key, value in state.items() if key.endswith(".B")]
    assert changes and all(value.abs().max() > 0 for value in changes)
    assert network.heads


def test_peft_loads_the_adapter_and_a_merged_folder_is_the_same(given, adapted, tmp_path):
    peft = pytest.importorskip("peft")
    _, tokenizer, _ = given
    model, want = adapted.model_, torch.tensor(adapted.predict_proba(TEXTS)).double()
    model.structure.export_folder(model, str(tmp_path / "merged"), merged=True)
    _, logits = logits_of(tmp_path / "merged", tokenizer, TEXTS)
    assert_close(logits.softmax(1), want, atol=1e-5, rtol=0)
    notes = model.structure.export_folder(model, str(tmp_path / "peft"), merged=False)
    assert "num_labels=2" in notes[0]
    config = peft.PeftConfig.from_pretrained(tmp_path / "peft")
    base = transformers.AutoModelForSequenceClassification.from_pretrained(
        config.base_model_name_or_path, num_labels=2
    )
    theirs = peft.PeftModel.from_pretrained(base, tmp_path / "peft").double().eval()
    inputs = model.encoder.inputs(Texts(TEXTS))
    theirs.config.pad_token_id = base.config.pad_token_id = config_padding(tmp_path / "peft")
    filled = inputs.values.masked_fill(~inputs.mask, base.config.pad_token_id)
    with torch.no_grad():
        found = theirs(input_ids=filled, attention_mask=inputs.mask.long()).logits
    assert_close(found.softmax(1), want, atol=1e-5, rtol=0)


def config_padding(folder):
    made = transformers.AutoTokenizer.from_pretrained(folder)
    return made.pad_token_id


def test_an_adapter_is_saved_with_its_model(adapted, tmp_path):
    adapted.save(tmp_path / "m")
    again = ansatz.load(tmp_path / "m")
    assert np.array_equal(again.predict_proba(TEXTS), adapted.predict_proba(TEXTS))


def test_numbers_export_the_raw_numbers_of_their_likelihood(bert, tmp_path):
    y = np.arange(48) % 5 + 0.1
    model = Regressor("gamma", pretrained=bert, **QUICK).fit(TEXTS, y).model_
    notes = model.structure.export_folder(model, str(tmp_path / "hf"), merged=False)
    assert notes == ["the logits are the raw numbers of gamma."]
    _, logits = logits_of(tmp_path / "hf", None, TEXTS)
    assert_close(logits, model.posterior.predictive(Texts(TEXTS)).raw, atol=1e-5, rtol=1e-5)


def changed(bert, folder, change=lambda state: state, **config):
    folder.mkdir()
    for file in bert.iterdir():
        if file.is_file():
            (folder / file.name).write_bytes(file.read_bytes())
    save_file(change(load_file(bert / "model.safetensors")), folder / "model.safetensors")
    read = json.loads((bert / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**read, **config}))
    return folder


def test_a_folder_without_a_pooler_leaves_it_to_the_head(bert, tmp_path):
    def masked(state):
        return {f"bert.{k}": v for k, v in state.items() if not k.startswith("pooler")}

    model = Classifier(pretrained=changed(bert, tmp_path / "m", masked), **QUICK)
    notes = " ".join(model.fit(TEXTS, LABELS).model_.notes)
    assert "left fresh: bert.pooler.dense.weight, bert.pooler.dense.bias, classifier" in notes


REFUSED = {
    "of relative positions": ({"position_embedding_type": "relative_key"}, "only absolute"),
    "of another kind": ({"model_type": "llama"}, "known are bert, distilbert, gpt2"),
    "of a decoder": ({"is_decoder": True}, "is_decoder 'True', only False"),
    "of another vocabulary": ({"vocab_size": 50}, "embeddings are for 50 tokens"),
    "of another size": ({"num_hidden_layers": 3}, "lacks 16 .bert.encoder.layer.2"),
}


@pytest.mark.parametrize("config, words", REFUSED.values(), ids=REFUSED)
def test_a_folder_is_refused(bert, config, words, tmp_path):
    path = changed(bert, tmp_path / "m", **config, auto_map={"AutoModel": "evil.Model"})
    with pytest.raises(ModelError, match=words):
        Classifier(pretrained=path, **QUICK).fit(TEXTS, LABELS)


def test_options_against_the_folder_are_one_line(bert, tmp_path):
    asked = {
        "is decided|decides its tokens": {"tokens": "char"},
        "those of a bert: leave network out": {"network": "lstm"},
        "reads 3 to 40 tokens": {"length": 41},
        "adapter and freeze": {"adapter": "lora", "freeze": "backbone"},
        "no tokenizer.json, no vocab.txt": {"pretrained": tmp_path / "empty"},
    }
    changed(bert, tmp_path / "empty")
    (tmp_path / "empty" / "vocab.txt").unlink()
    for words, options in asked.items():
        with pytest.raises((UsageError, ModelError), match=words):
            Classifier(**{"pretrained": bert, **options, **QUICK}).fit(TEXTS, LABELS)
    with pytest.raises(UsageError, match="adapter needs pretrained weights"):
        Classifier(adapter="lora").fit(TEXTS, LABELS)
    with pytest.raises(UsageError, match="an option of images"):
        Classifier(pretrained=bert).fit(np.zeros((20, 2)), [0, 1] * 10)


def test_what_has_no_class_of_theirs_is_refused(bert, tmp_path):
    frozen = Classifier(pretrained=bert, freeze="backbone", **QUICK).fit(TEXTS, LABELS).model_
    with pytest.raises(UsageError, match="pooling=first"):
        frozen.structure.export_folder(frozen, str(tmp_path / "a"), merged=False)
    bag = Classifier(**QUICK).fit(TEXTS, LABELS).model_
    with pytest.raises(UsageError, match="holds a bert, distilbert or gpt on tokens, not bag"):
        bag.structure.export_folder(bag, str(tmp_path / "a"), merged=False)
