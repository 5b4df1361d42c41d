import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz.data import Batch
from ansatz.errors import UsageError
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.training import Distillation, GradientStep, Supervised
from ansatz.training.distillation import tempered_cross_entropy
from ansatz.training.run import snapshot


class Softmax(Likelihood):
    """The categorical distribution, transcribed."""

    name = "softmax"

    def loss(self, raw, y):
        return -raw.log_softmax(-1).gather(-1, y.unsqueeze(-1)).squeeze(-1)


def finite_difference(f, x, h=1e-6):
    moves = h * torch.eye(len(x))
    return torch.stack([(f(x + d) - f(x - d)) / (2 * h) for d in moves])


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
def test_the_gradient_is_q_minus_p_over_T_by_finite_differences(temperature):
    r, t = torch.randn(5), torch.randn(5)
    slope = finite_difference(lambda r: tempered_cross_entropy(r, t, temperature), r)
    q, p = (r / temperature).softmax(0), (t / temperature).softmax(0)
    assert_close(slope, (q - p) / temperature, rtol=1e-7, atol=1e-9)


def test_the_value_is_the_sum_written_out():
    r, t = torch.randn(3, 4), torch.randn(3, 4)
    for i in range(3):
        p, q = (t[i] / 2).exp(), (r[i] / 2).exp()
        p, q = p / p.sum(), q / q.sum()
        expected = -sum(p[k] * q[k].log() for k in range(4))
        assert_close(tempered_cross_entropy(r, t, 2.0)[i], expected)


def test_it_is_least_where_the_student_is_the_teacher_up_to_a_constant():
    t = torch.randn(1, 4)
    least = tempered_cross_entropy(t + 3.7, t, 2.0)
    assert_close(least, tempered_cross_entropy(t, t, 2.0))
    for _ in range(20):
        assert tempered_cross_entropy(t + torch.randn(1, 4), t, 2.0) > least


def test_one_logit_is_the_two_class_likelihood_with_the_other_at_zero():
    r, t = torch.randn(6, 1), torch.randn(6, 1)
    two = [torch.cat([torch.zeros(6, 1), z], -1) for z in (r, t)]
    assert_close(tempered_cross_entropy(r, t, 3.0), tempered_cross_entropy(*two, 3.0))


def batch(rows=12):
    return Batch.of(torch.randn(rows, 2), torch.randint(3, (rows,)))


def test_mix_zero_is_supervised_and_mix_one_ignores_the_labels():
    student, teacher, rows = nn.Linear(2, 3), nn.Linear(2, 3), batch()
    plain = Supervised(Softmax())(student, rows)
    assert_close(Distillation(Softmax(), teacher, mix=0.0)(student, rows), plain)
    blind = Distillation(Softmax(), teacher, mix=1.0)
    other = rows._replace(target=(rows.target + 1) % 3)
    assert_close(blind(student, rows), blind(student, other))


def test_validation_scores_the_plain_loss_of_the_labels():
    student, teacher, rows = nn.Linear(2, 3), nn.Linear(2, 3), batch()
    expected = Supervised(Softmax()).evaluate(student, rows)
    assert_close(Distillation(Softmax(), teacher).evaluate(student, rows), expected)


def test_the_student_becomes_the_teacher_which_does_not_move():
    teacher, student = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5)), nn.Linear(2, 3)
    kept = teacher[0].weight.clone()
    objective = Distillation(Softmax(), teacher, temperature=2.0, mix=1.0)
    rule = torch.optim.Adam([*student.parameters(), *objective.parameters()], lr=0.05)
    step, rows = GradientStep(student, objective, rule), batch(40)
    for _ in range(400):
        step.step(rows)
    assert torch.equal(teacher[0].weight, kept) and not teacher.training
    p, q = teacher[0](rows.inputs[0]).softmax(-1), student(rows.inputs[0]).softmax(-1)
    assert_close(q, p, rtol=0, atol=1e-3)
    assert not any("teacher" in name for name in snapshot(step))  # frozen: not copied about


@pytest.mark.parametrize("options", [{"temperature": 0.0}, {"mix": 1.5}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(UsageError, match="of Distillation must be"):
        Distillation(Softmax(), nn.Linear(2, 3), **options)


def test_logits_of_other_shapes_are_not_broadcast():
    with pytest.raises(ValueError, match=r"\(4, 3\) and \(1, 3\)"):
        tempered_cross_entropy(torch.zeros(4, 3), torch.zeros(1, 3), 1.0)
