"""How kernels are reached: fields, random numbers, and what a missing build says."""

import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import spinseg as ss
from kernel_source import names_of, source_of
from spinseg._kernels import use_compiled
from spinseg.sampler.kernels.state import Plan, Random
from spinseg.sampler.pack import new_state, pack

INTERPRETED = names_of(source_of("from spinseg.sampler.kernels.state import Random"))


def small_state():
    model = ss.Model(ss.SiteGraph.grid((2, 2)), ss.PoissonGamma([1, 2, 3, 4]), ss.DirichletProcess(1.0), beta=0.5)
    target = pack(model, np.zeros(4))
    return target, new_state(target, np.array([0, 0, 1, 1], np.int32), 0.0)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda state: pickle.loads(pickle.dumps(state))])
def test_a_copy_has_arrays_of_its_own(copied):
    target, state = small_state()
    other = copied(state)
    other.label[0] = 1
    assert state.label[0] == 0 and state.nested is None and other.nested is None
    assert {name: array.shape for name, array in state._asdict().items()} == {
        name: array.shape for name, array in other._asdict().items()
    }
    assert target._replace(log_v=target.log_v + 1).log_v[1] == target.log_v[1] + 1


def test_an_array_of_another_type_or_none_is_refused():
    _, state = small_state()
    with pytest.raises((ValueError, TypeError)):
        state._replace(label=state.label.astype(np.float64), size=np.zeros((2, 2)))
    with pytest.raises(AttributeError):
        _ = state.nothing
    assert Plan(np.ones(2), np.zeros(6, np.int64), 1.0, 0, 1)._replace(thin=3).thin == 3


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_random_numbers_are_those_of_the_generator(kind):
    """The interpreted kernels call its methods, and the compiled ones what these call."""
    script = "from spinseg.sampler.kernels import moves, state; assert moves is state"
    subprocess.run([sys.executable, "-c", script], check=True)
    a, b = (np.random.Generator(kind(5)) for _ in range(2))
    model = ss.Model(ss.SiteGraph.grid((3, 3)), ss.Flat(), ss.DirichletProcess(1.0), beta=0.5)
    drawn = ss.sample(model, 5, 1, rng=a)
    again = ss.sample(model, 5, 1, rng=b)
    np.testing.assert_array_equal(drawn.labels, again.labels)
    numbers, plain = INTERPRETED["Random"](np.random.Generator(kind(7))), np.random.Generator(kind(7))
    assert [numbers.random(), numbers.below(10), numbers.standard_exponential()] == [
        plain.random(),
        int(10 * plain.random()),
        plain.standard_exponential(),
    ]


def test_a_generator_goes_out_of_use_with_what_draws_from_it():
    generator = np.random.default_rng(0)
    before = sys.getrefcount(generator)
    numbers = Random(generator)
    assert sys.getrefcount(generator) == before + 1
    del numbers
    assert sys.getrefcount(generator) == before


def test_what_was_not_built_says_what_to_do(tmp_path):
    with pytest.raises(ImportError, match="pip install"):
        use_compiled("spinseg.graph", tmp_path)


def test_an_exception_of_a_prior_arrives_and_the_chain_goes_on():
    asked = []

    def log_g(sizes):
        asked.append(sizes)
        if len(asked) == 60:
            raise RuntimeError("of the caller")
        return -float(len(sizes))

    model = ss.Model(ss.SiteGraph.grid((4, 4)), ss.Flat(), ss.ExchangeablePrior(log_g), beta=0.3)
    sampler = ss.Sampler(model, 30, 1, rng=0)
    with pytest.raises(RuntimeError, match="of the caller"):
        sampler.advance()
    sampler.advance()
    chains = sampler.chains
    found = [model.log_posterior(row) for row in chains.labels[0]]
    np.testing.assert_allclose(found, chains.log_posterior[0, -len(found) :], atol=1e-9)


@pytest.mark.skipif(os.environ.get("SPINSEG_INTERPRETED") == "1", reason="nothing is compiled")
def test_all_kernels_of_a_package_are_one_module():
    from spinseg.sampler.kernels import agglomerate, moves, sweep

    assert agglomerate is moves is sweep
