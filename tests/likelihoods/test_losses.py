import pytest
import torch
from torch.testing import assert_close

from ansatz.likelihoods import MAE, MSE, Bernoulli, CrossEntropy, Huber, create
from ansatz.spec import TargetSpec

raw_and_y = pytest.mark.parametrize("rows", [30])


@raw_and_y
def test_mse_is_torchs_and_its_minimiser_the_mean(rows):
    """M094; the lecture's half sum of squares differs by a factor."""
    raw, y = torch.randn(rows, 1), torch.randn(rows)
    assert_close(MSE().loss(raw, y), torch.nn.functional.mse_loss(raw[:, 0], y, reduction="none"))
    assert_close(MSE().start(y, torch.ones(rows))[0], y.mean().reshape(1))


@raw_and_y
def test_mae_is_torchs_and_its_minimiser_the_median(rows):
    """M101."""
    raw, y = torch.randn(rows, 1), torch.randn(rows)
    assert_close(MAE().loss(raw, y), torch.nn.functional.l1_loss(raw[:, 0], y, reduction="none"))
    ordered = y.sort().values
    middle = ordered[rows // 2 - 1 : rows // 2 + 1].mean()
    assert_close(MAE().start(y, torch.ones(rows))[0], middle.reshape(1))


@raw_and_y
def test_huber_is_torchs(rows):
    """M109."""
    raw, y = torch.zeros(rows, 1), 3 * torch.randn(rows)
    torchs = torch.nn.HuberLoss(delta=0.7, reduction="none")
    assert_close(Huber(delta=0.7).loss(raw, y), torchs(raw[:, 0], y))


def test_huber_is_continuously_differentiable_at_delta():
    """M109: value and slope agree on both sides of |r| = delta."""
    for side in (-1.0, 1.0):
        y = torch.tensor([side * (1.345 - 1e-9), side * (1.345 + 1e-9)], requires_grad=True)
        loss = Huber().loss(torch.zeros(2, 1), y)
        (slope,) = torch.autograd.grad(loss.sum(), y)
        assert_close(loss[0], loss[1], atol=1e-8, rtol=0)
        assert_close(slope[0], slope[1], atol=1e-8, rtol=0)
        assert_close(slope[1], torch.tensor(side * 1.345))


def test_huber_tends_to_half_mse_and_to_delta_mae():
    """M109: delta to infinity and delta to 0."""
    raw, y = torch.zeros(30, 1), torch.randn(30)
    assert_close(Huber(delta=1e9).loss(raw, y), MSE().loss(raw, y) / 2)
    assert_close(Huber(delta=1e-9).loss(raw, y) / 1e-9, MAE().loss(raw, y))


def test_hubers_delta_counts_in_median_absolute_deviations():
    y = torch.cat([torch.randn(999), torch.tensor([1e9])])
    likelihood = Huber()
    likelihood.observe(y, torch.ones(1000))
    exact = 1.4826 * (y - y.median()).abs().median()
    assert likelihood.unit.value.item() == pytest.approx(exact.item(), rel=1e-2)
    assert likelihood.start(y, torch.ones(1000))[0].abs().item() < 0.2


@pytest.mark.parametrize("likelihood", [MSE(), MAE(), Huber()], ids=["mse", "mae", "huber"])
def test_the_training_loss_does_not_depend_on_the_unit_of_y(likelihood):
    y, f = torch.randn(50), torch.randn(50, 1)
    likelihood.observe(y, torch.ones(50))
    metres = likelihood.training_loss(f, y)
    likelihood.observe(1000 * y, torch.ones(50))
    assert_close(likelihood.training_loss(1000 * f, 1000 * y), metres)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weight", [None, [1.0, 2.0, 0.5]])
def test_cross_entropy_is_torchs(smoothing, weight):
    raw, y = torch.randn(30, 3), torch.randint(3, (30,))
    tensor = None if weight is None else torch.tensor(weight)
    torchs = torch.nn.CrossEntropyLoss(tensor, label_smoothing=smoothing, reduction="none")
    likelihood = CrossEntropy(class_weight=weight, label_smoothing=smoothing)
    assert_close(likelihood.loss(raw, y), torchs(raw, y))


def test_the_weighted_minimiser_is_undone_by_probs():
    """The constant that minimises weighted cross-entropy gives back the plain frequencies."""
    y = torch.tensor([0, 0, 0, 0, 0, 1, 1, 2])
    likelihood = CrossEntropy(class_weight="balanced")
    likelihood.outputs(TargetSpec(classes=3))
    likelihood.observe(y, torch.ones(8))
    assert_close(likelihood.class_weight.value, torch.tensor([8 / 15, 8 / 6, 8 / 3]))
    shift, _ = likelihood.start(y, torch.ones(8))
    assert_close(shift.exp(), torch.full((3,), 1 / 3))
    assert_close(likelihood.probs(shift), torch.tensor([5.0, 2.0, 1.0]) / 8)


def test_class_weights_must_match_the_classes():
    with pytest.raises(ValueError, match="class_weight has 2 entries, but y has 3 classes"):
        CrossEntropy(class_weight=[1.0, 2.0]).outputs(TargetSpec(classes=3))
    with pytest.raises(ValueError, match="class weights must be positive"):
        CrossEntropy(class_weight=[1.0, 0.0])
    with pytest.raises(ValueError, match=r"numbers or 'balanced', .*got 'even'"):
        CrossEntropy(class_weight="even")
    with pytest.raises(ValueError, match=r"label_smoothing must be in \[0, 1\), got 1"):
        CrossEntropy(label_smoothing=1)
    with pytest.raises(ValueError, match="delta of Huber must be positive"):
        Huber(delta=0)


def observed(rule, y, **options):
    likelihood = CrossEntropy(class_weight=rule, **options)
    likelihood.outputs(TargetSpec(classes=int(y.max()) + 1))
    likelihood.observe(y, torch.ones(len(y)))
    return likelihood


CODES = torch.tensor([0] * 50 + [1] * 10 + [2] * 4)


def test_inverse_weights_balance_the_class_totals():
    """M105, M106: w = 1 / f; each class has the same total weight."""
    weight = observed("inverse", CODES).class_weight.value
    assert_close(weight, 64 / torch.tensor([50.0, 10.0, 4.0]))
    total = torch.bincount(CODES) * weight
    assert_close(total, total.mean().expand(3))


def test_balanced_weights_are_sklearns():
    utils = pytest.importorskip("sklearn.utils")
    theirs = utils.compute_class_weight("balanced", classes=CODES.unique().numpy(), y=CODES.numpy())
    assert_close(observed("balanced", CODES).class_weight.value, torch.as_tensor(theirs))


def test_class_balanced_weights_go_from_equal_to_inverse():
    """M108: (1 - beta) / (1 - beta^n); beta = 0 gives 1, beta to 1 gives 1 / n."""
    n = torch.tensor([50.0, 10.0, 4.0])
    for beta in (0.9, 0.999):
        exact = (1 - beta) / (1 - beta**n)
        assert_close(observed("class_balanced", CODES, beta=beta).class_weight.value, exact)
    assert_close(observed("class_balanced", CODES, beta=0.0).class_weight.value, torch.ones(3))
    near = observed("class_balanced", CODES, beta=1 - 1e-13).class_weight.value
    assert_close(near, 1 / n, rtol=1e-10, atol=0)


@pytest.mark.parametrize("rule", ["inverse", "balanced", "class_balanced"])
def test_a_class_without_rows_has_weight_one(rule):
    likelihood = CrossEntropy(class_weight=rule)
    likelihood.outputs(TargetSpec(classes=4))
    likelihood.observe(CODES, torch.ones(64))
    assert likelihood.class_weight.value[3].item() == 1
    shift, _ = likelihood.start(CODES, torch.ones(64))
    assert likelihood.probs(shift).isfinite().all()


@pytest.mark.parametrize("rule", ["inverse", "balanced", "class_balanced", [1.0, 2.0, 7.0]])
def test_every_weighting_is_undone_by_unweighted(rule):
    likelihood = observed(rule, CODES)
    shift, _ = likelihood.start(CODES, torch.ones(64))
    frequency = torch.tensor([50.0, 10.0, 4.0]) / 64
    assert_close(likelihood.probs(shift), frequency)
    assert_close(torch.softmax(likelihood.unweighted(shift), -1), frequency)
    assert_close(likelihood.unweighted(shift) + likelihood.log_weights, shift)


CONFUSION = [[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.0, 0.3, 0.7]]


def test_a_confusion_matrix_is_the_expected_loss_over_replaced_labels():
    raw, y = torch.randn(30, 3), torch.randint(3, (30,))
    plain, likelihood = CrossEntropy(), CrossEntropy(label_smoothing=CONFUSION)
    exact = sum(
        torch.tensor(CONFUSION)[y, k] * plain.loss(raw, torch.full((30,), k)) for k in range(3)
    )
    assert_close(likelihood.loss(raw, y), exact)
    assert likelihood.smoothed and not plain.smoothed


def test_an_even_confusion_matrix_is_label_smoothing_by_a_number():
    raw, y = torch.randn(30, 3), torch.randint(3, (30,))
    matrix = (0.9 * torch.eye(3) + 0.1 / 3).tolist()
    weight = [1.0, 2.0, 3.0]
    one = CrossEntropy(class_weight=weight, label_smoothing=matrix)
    other = CrossEntropy(class_weight=weight, label_smoothing=0.1)
    assert_close(one.loss(raw, y), other.loss(raw, y))


def test_the_constant_model_of_a_confusion_matrix_minimises_its_loss():
    likelihood = CrossEntropy(class_weight=[1.0, 2.0, 3.0], label_smoothing=CONFUSION)
    likelihood.outputs(TargetSpec(classes=3))
    shift, _ = likelihood.start(CODES, torch.ones(64))
    leaf = shift.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(likelihood.loss(leaf.expand(64, 3), CODES).mean(), leaf)
    assert_close(gradient, torch.zeros(3), atol=1e-12, rtol=0)


def test_a_confusion_matrix_is_remade_from_name_and_options():
    likelihood = CrossEntropy(label_smoothing=CONFUSION, class_weight="inverse")
    again = create("cross_entropy", **likelihood.options)
    again.load_state_dict(likelihood.state_dict())
    raw, y = torch.randn(5, 3), torch.tensor([0, 1, 2, 1, 0])
    assert torch.equal(again.loss(raw, y), likelihood.loss(raw, y))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"label_smoothing": [[1.0, 0.5], [0.0, 1.0]]}, r"add up to 1, got row sums \[1.5, 1.0\]"),
        ({"label_smoothing": [[1.0, 0.0]]}, r"square matrix, got the shape \(1, 2\)"),
        ({"label_smoothing": "much"}, r"a number in \[0, 1\) or K rows of K numbers, got 'much'"),
        ({"beta": 1.0}, r"beta of CrossEntropy must be in \[0, 1\), got 1.0"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        CrossEntropy(**options)
    with pytest.raises(ValueError, match="label_smoothing has 3 rows, but y has 4 classes"):
        CrossEntropy(label_smoothing=CONFUSION).outputs(TargetSpec(classes=4))


def test_binary_cross_entropy_has_a_sigmoid_in_both_terms_and_a_minus():
    """E19, E20: -y log s(f) - (1 - y) log(1 - s(f)), which is never negative."""
    raw, y = 3 * torch.randn(50, 1), torch.randint(2, (50,)).double()
    s = torch.sigmoid(raw[:, 0])
    loss = Bernoulli().loss(raw, y)
    assert_close(loss, -y * s.log() - (1 - y) * (1 - s).log())
    assert (loss >= 0).all()


def test_the_weighted_likelihood_is_minimised_as_a_negative():
    """E19: minus the sum of w_y log P, never negative, and smaller where P is larger."""
    raw, y = torch.randn(50, 3), torch.randint(3, (50,))
    likelihood = CrossEntropy(class_weight=[1.0, 2.0, 3.0])
    log_p = torch.log_softmax(raw, -1)[torch.arange(50), y]
    assert_close(likelihood.loss(raw, y), -torch.tensor([1.0, 2.0, 3.0])[y] * log_p)
    assert (likelihood.loss(raw, y) >= 0).all()


def test_constants_have_the_digits_of_double_precision():
    raw, y = torch.randn(5, 2), torch.tensor([0, 1, 1, 0, 1])
    log_p, code = torch.log_softmax(raw, -1), y.unsqueeze(-1)
    hit = log_p.gather(-1, code).squeeze(-1)
    weight = torch.tensor([0.1, 0.3])[y]  # float64 in tests
    assert_close(
        create("focal", gamma=0.0, alpha=[0.1, 0.3]).loss(raw, y), -weight * hit, rtol=1e-14, atol=0
    )
    assert_close(
        create("cross_entropy", class_weight=[0.1, 0.3]).loss(raw, y),
        -weight * hit,
        rtol=1e-14,
        atol=0,
    )
    confusion = [[0.9, 0.1], [0.3, 0.7]]
    expected = -(torch.tensor(confusion)[y] * log_p).sum(-1)
    assert_close(
        create("cross_entropy", label_smoothing=confusion).loss(raw, y),
        expected,
        rtol=1e-14,
        atol=0,
    )


def test_names_of_torch_are_known():
    """M100: the negative log-likelihood of log-probabilities is that of nn.NLLLoss, and CE's."""
    raw, y = torch.randn(6, 3), torch.tensor([0, 1, 2, 2, 1, 0])
    log_p = torch.log_softmax(raw, -1)
    theirs = torch.nn.NLLLoss(reduction="none")(log_p, y)
    assert_close(create("nll").loss(log_p, y), theirs)
    assert_close(create("cross_entropy").loss(raw, y), theirs)
    logit, hit = torch.randn(6, 1), y.clamp(max=1).double()
    expected = torch.nn.BCEWithLogitsLoss(reduction="none")(logit[:, 0], hit)
    assert_close(create("binary_cross_entropy").loss(logit, hit), expected)
