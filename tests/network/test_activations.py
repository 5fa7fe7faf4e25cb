"""Activations and their inverses: every registered pair obeys the same laws."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from karnet.activations import ACTIVATIONS, Activation, resolve_activation, through_exp

every = pytest.mark.parametrize("f", ACTIVATIONS.values(), ids=list(ACTIVATIONS))
INVERTIBLE = [f for f in ACTIVATIONS.values() if f.invertible]
invertible = pytest.mark.parametrize("f", INVERTIBLE, ids=[f.name for f in INVERTIBLE])

EXTREMES = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, 5e-324, 1e-300, 1e300, -1e300, 1e3, -1e3, np.pi / 2]
)


def within(interval, n=201, inset=1e-3):
    low, high = (np.clip(end, -6.0, 6.0) for end in interval)
    return np.linspace(low + inset, high - inset, n)


def test_the_table_holds_what_it_promises():
    assert [f.name for f in INVERTIBLE] == [
        "logit",
        "logit_clipped",
        "sigmoid",
        "tanh",
        "arctan",
        "asinh",
        "softplus",
        "leaky_relu",
        "identity",
    ]
    assert {"relu", "sin", "cos", "gelu"} == {f.name for f in ACTIVATIONS.values()} - {
        f.name for f in INVERTIBLE
    }


@invertible
def test_inverse_undoes_forward_on_the_domain(f):
    x = within(f.domain)
    x = x[f(x) == f.inside(f(x), f.margin)]
    assert len(x) > 100
    np.testing.assert_allclose(f.phi(f(x)), x, rtol=1e-8, atol=1e-10)


@invertible
def test_forward_undoes_inverse_on_the_codomain(f):
    y = within(f.codomain, inset=2 * f.margin)
    np.testing.assert_allclose(f(f.phi(y)), y, rtol=1e-8, atol=1e-10)


@invertible
def test_both_are_strictly_increasing(f):
    assert (np.diff(f(within(f.domain))) > 0).all()
    assert (np.diff(f.phi(within(f.codomain, inset=2 * f.margin))) > 0).all()


@every
def test_derivative_is_the_slope(f):
    assert f.derivative is not None
    x = within(f.domain, n=200)  # an even number leaves out the kinks at 0
    step = 1e-6
    slope = (f(x + step) - f(x - step)) / (2 * step)
    np.testing.assert_allclose(f.derivative(x), slope, rtol=1e-4, atol=1e-6)


@every
def test_no_value_is_too_extreme(f):
    with np.errstate(all="raise", under="ignore"):
        assert np.isfinite(f(EXTREMES)).all()
        assert f.derivative is not None
        assert np.isfinite(f.derivative(EXTREMES)).all()
        if f.invertible and f.codomain != (-np.inf, np.inf):
            assert np.isfinite(f.phi(EXTREMES)).all()


def test_logit_is_the_paper_s_inside_and_the_real_part_of_the_complex_one_outside():
    logit = ACTIVATIONS["logit"]
    x = np.array([-3.0, -0.2, 0.1, 0.5, 0.9, 1.7, 40.0])
    np.testing.assert_allclose(logit(x), np.log(x.astype(complex) / (1 - x)).real, atol=1e-14)
    np.testing.assert_allclose(logit(x[2:5]), np.log(x[2:5] / (1 - x[2:5])), atol=1e-15)


def test_clipped_logit_is_constant_outside():
    clipped = ACTIVATIONS["logit_clipped"]
    assert clipped(np.array([-5.0]))[0] == clipped(np.array([0.0]))[0]
    assert clipped(np.array([7.0]))[0] == clipped(np.array([1.0]))[0]
    assert clipped.derivative is not None
    np.testing.assert_array_equal(clipped.derivative(np.array([-5.0, 7.0])), 0.0)


def test_values_outside_are_counted():
    logit, tanh = ACTIVATIONS["logit"], ACTIVATIONS["tanh"]
    values = np.array([-1.0, 0.0, 0.5, 1.0])
    assert np.mean(logit.outside(values)) == 0.75
    assert not logit.outside_codomain(values).any()
    assert not tanh.outside(values).any()
    assert list(tanh.outside_codomain(values)) == [True, False, False, True]


def test_targets_beyond_the_codomain_are_moved_to_its_edge():
    tanh = ACTIVATIONS["tanh"]
    np.testing.assert_allclose(tanh(tanh.phi(np.array([-4.0, 0.3, 4.0]))), [-0.999, 0.3, 0.999])


@every
def test_registered_ones_are_copied_and_pickled_by_name(f):
    assert copy.deepcopy(f) is f
    assert pickle.loads(pickle.dumps(f)) is f


def test_one_s_own_pair():
    cube = resolve_activation((np.power, np.cbrt))
    assert (cube.name, cube.invertible) == ("custom", True)
    own = Activation("sinh", np.sinh, np.arcsinh)
    assert resolve_activation(own) is own
    assert pickle.loads(pickle.dumps(own)) == own


@pytest.mark.parametrize("unknown", ["swish", None, 3, (np.sin,), ("sin", "arcsin"), ["logit"]])
def test_an_unknown_activation_is_named_with_what_is_known(unknown):
    with pytest.raises(ValueError, match=r"output_activation=.* is not known: give one of logit"):
        resolve_activation(unknown, "output_activation")


def test_no_inverse_no_pull_back():
    with pytest.raises(ValueError, match="activation 'relu' has no inverse"):
        ACTIVATIONS["relu"].phi(np.ones(2))


def test_theorem_1_takes_a_function_without_inverse_through_exp():
    input_map, output = through_exp(ACTIVATIONS["relu"])
    x = np.array([-2.0, 0.0, 3.0])
    np.testing.assert_allclose(input_map(x), np.exp([0.0, 0.0, 3.0]))
    np.testing.assert_allclose(output(output.phi(x)), x)
    assert np.isfinite(output(np.array([-1.0, 0.0]))).all()
    assert np.isfinite(input_map(np.array([1e300]))).all()
    assert list(output.outside(np.array([-1.0, 2.0]))) == [True, False]
    assert output.derivative is not None
    np.testing.assert_allclose(output.derivative(np.array([4.0])), 0.25)
    assert pickle.loads(pickle.dumps(output)) == output


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"name": 3}, "name of an activation must be text"),
        ({"forward": None}, "forward=None of activation 'own' must be a function"),
        ({"inverse": 0.5}, "inverse=0.5 of activation 'own' must be a function"),
        ({"derivative": "x"}, "derivative='x' of activation 'own' must be a function"),
        ({"domain": (1.0, 0.0)}, "domain=.* must be two numbers, the lower one first"),
        ({"codomain": 3}, "codomain=3 .* must be two numbers"),
        ({"margin": None}, "margin=None .* must be a number"),
        ({"margin": -1.0}, "margin=-1.0 .* not negative"),
        ({"margin": -(10**400)}, "margin=-1000.* not negative"),
    ],
    ids=str,
)
def test_an_activation_of_wrong_parts_is_refused(parts, message):
    with pytest.raises(ValueError, match=message):
        Activation(**{"name": "own", "forward": np.tanh} | parts)
