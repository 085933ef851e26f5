"""The options of the methods: which there are, their defaults, their checks, their words."""

import functools
import json
import re
import warnings
import zipfile

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.sampling.checkpoint import describe_call
from pseudomallows.sampling.options import (
    OPTIONS as TABLE,
)
from pseudomallows.sampling.options import (
    WITH_DRAWS,
    Case,
    check_options,
    describe_options,
    fields_of,
    resolve,
)

KINDS = {"full": "full rankings", "partial": "partial rankings", "clicks": "clicks"}


@functools.cache
def data(kind):
    """Twenty users and ten items."""
    ranks = np.random.default_rng(1).permuted(np.tile(np.arange(1, 11), (20, 1)), axis=1)
    if kind == "clicks":
        return pm.Preferences.from_clicks(ranks <= 3)
    if kind == "votes":
        return pm.Preferences.from_pairs([(r.index(1), r.index(10)) for r in ranks.tolist()])
    return pm.Preferences.from_rankings(ranks if kind == "full" else np.where(ranks <= 3, ranks, 0))


DEFAULTS = {  # (method, kind, clusters): draws, chains, thin, warmup
    ("pseudo", "full", 1): (200, 1, 1, 0),
    ("pseudo", "full", 2): (200, 1, 1, 50),
    ("pseudo", "partial", 1): (200, 1, 10, 1000),
    ("pseudo", "partial", 2): (200, 1, 5, 200),
    ("pseudo", "clicks", 1): (200, 1, 1, 20),
    ("pseudo", "clicks", 2): (200, 1, 1, 20),
    ("balanced", "full", 1): (4000, 1, 1, 0),
    ("balanced", "full", 2): (200, 1, 1, 50),
    ("balanced", "partial", 1): (200, 1, 10, 1000),
    ("balanced", "partial", 2): (200, 1, 5, 200),
    ("balanced", "clicks", 1): (200, 1, 10, 1000),
    ("balanced", "clicks", 2): (200, 1, 5, 200),
    ("mcmc", "full", 1): (200, 4, 1, 100),
    ("mcmc", "full", 2): (200, 4, 1, 50),
    **{  # where latent rankings are summed out
        (method, kind, n_clusters): (100, 4, 1, 25)
        for method in ("mcmc", "matched")
        for kind in ("partial", "clicks")
        for n_clusters in (1, 2)
    },
}
LONG_WARMUPS = {  # of 1,000 draws, where the least number of sweeps does not matter
    ("pseudo", "full", 1): 0,
    ("pseudo", "full", 2): 200,
    ("pseudo", "partial", 1): 5000,
    ("pseudo", "partial", 2): 1000,
    ("pseudo", "clicks", 1): 100,
    ("pseudo", "clicks", 2): 100,
    ("balanced", "full", 1): 0,
    ("balanced", "full", 2): 200,
    ("balanced", "partial", 1): 5000,
    ("balanced", "partial", 2): 1000,
    ("balanced", "clicks", 1): 5000,
    ("balanced", "clicks", 2): 1000,
    ("mcmc", "full", 1): 500,
    ("mcmc", "full", 2): 200,
    **{
        (method, kind, n_clusters): 250
        for method in ("mcmc", "matched")
        for kind in ("partial", "clicks")
        for n_clusters in (1, 2)
    },
}
OPTIONS = {  # of each method: those of all data, and those that some data or clusters add
    "pseudo": {"n_chains", "distance", "sigma"},
    "balanced": {"n_chains", "distance", "weighted"},
    "mcmc": {
        *("n_chains", "distance", "warmup", "thin"),
        *("move", "leap", "n_moves"),
    },
}
OPTIONS["matched"] = OPTIONS["mcmc"]


def options_of(method, kind, n_clusters):
    """The options that there are, by rule."""
    names = set(OPTIONS[method])
    if kind != "full" or n_clusters > 1:
        names |= {"warmup", "thin"}
    is_sampler = method in ("mcmc", "matched")
    if is_sampler or n_clusters > 1 or (method == "balanced" and kind == "full"):
        names |= {"alpha_prior"}
    if (method, kind, n_clusters) == ("balanced", "full", 1):
        names |= {"seconds"}
    if n_clusters > 1:
        names |= {"share_prior"}
    elif is_sampler:
        names |= {"start", "temperatures"}
    if kind != "full" and (is_sampler or n_clusters == 1):
        names |= {"keep_latent"}
    if kind == "clicks":
        names |= {"order"} if method == "pseudo" else set()
    return names


def plan_of(method, kind, n_clusters, n_draws=None, **options):
    return resolve(data(kind), method, n_draws, n_clusters, options)


# defaults


@pytest.mark.parametrize("case", DEFAULTS)
def test_defaults_depend_on_the_data_and_the_clusters(case):
    plan = plan_of(*case)
    assert (plan.n_draws, plan.n_chains, plan.thin, plan.warmup) == DEFAULTS[case]
    assert plan.n_sweeps == plan.warmup + plan.n_draws * plan.thin


@pytest.mark.parametrize("case", LONG_WARMUPS)
def test_the_warmup_grows_with_the_draws(case):
    assert plan_of(*case, n_draws=1000).warmup == LONG_WARMUPS[case]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_clusters", [1, 2])
def test_noise_is_found_for_full_rankings_and_the_default_for_clusters_of_clicks(kind, n_clusters):
    known = {("clicks", 2): 10 / 5, ("full", 1): "auto"}
    assert plan_of("pseudo", kind, n_clusters).sigma == known.get((kind, n_clusters), 0)


def test_proposals_and_prior_go_by_the_number_of_items():
    chosen = plan_of("mcmc", "full", 1)
    assert (chosen.move, chosen.leap, chosen.n_moves) == ("swap", 2, 100)
    assert chosen.alpha_prior == (2.0, 2 / 10 + 1 / 20)
    assert plan_of("mcmc", "full", 1, leap=50).leap == 9  # no longer leap is possible


@pytest.mark.parametrize(
    ("distance", "move", "usual", "n_moves"),
    [
        ("kendall", None, "swap", 100),
        ("cayley", None, "swap", 300),
        ("cayley", "leap_and_shift", "leap_and_shift", 100),
        ("ulam", None, "insert", 30),
        ("ulam", "swap", "swap", 100),
    ],
)
def test_the_usual_proposals_are_those_that_suit_the_distance(distance, move, usual, n_moves):
    chosen = plan_of("mcmc", "full", 1, distance=distance, move=move)
    assert (chosen.move, chosen.n_moves) == (usual, n_moves)


def test_insertions_are_for_ulam_only():
    with pytest.raises(ValueError, match=r"'insert' is for distance='ulam' only, got .*'footrule'"):
        plan_of("mcmc", "full", 1, move="insert")


def test_other_defaults():
    clicks = plan_of("mcmc", "clicks", 1)
    assert (clicks.temperatures, clicks.keep_latent) == (None, ())
    pseudo = plan_of("pseudo", "clicks", 2)
    assert (pseudo.order, pseudo.share_prior) == ("uniform", 1.0)
    assert plan_of("balanced", "full", 1).weighted is True


def test_chains_that_keep_latent_rankings_are_longer():
    plan = plan_of("mcmc", "partial", 1, distance="ulam")
    assert (plan.n_draws, plan.thin, plan.warmup) == (200, 5, 500)


@pytest.mark.parametrize("case", DEFAULTS)
def test_what_is_given_is_kept(case):
    names = options_of(*case)
    given = {"n_chains": 3, "warmup": 7, "thin": 2, "share_prior": 0.5}
    given = {name: value for name, value in given.items() if name in names}
    chosen = plan_of(*case, n_draws=11, **given)
    assert {name: getattr(chosen, name) for name in given} == given


def test_a_0_that_is_given_is_no_default():
    assert plan_of("mcmc", "full", 1, warmup=0).warmup == 0
    assert plan_of("pseudo", "clicks", 2, sigma=0).sigma == 0


# unknown options


@pytest.mark.parametrize("case", DEFAULTS)
def test_an_unknown_option_is_refused_with_the_case_and_all_options_it_has(case):
    method, kind, n_clusters = case
    clusters = " with 2 clusters" if n_clusters == 2 else ""
    known = ", ".join(sorted(options_of(*case)))
    meant = " (did you mean 'warmup'?)" if "warmup" in known else ""
    wanted = f"method='{method}' on {KINDS[kind]}{clusters} has no option 'wramup'{meant}; it has "
    with pytest.raises(TypeError, match=f"^{re.escape(wanted + known)}$"):
        pm.fit(data(kind), method, n_clusters=n_clusters, wramup=3, rng=1)


@pytest.mark.parametrize("case", DEFAULTS)
def test_options_of_other_cases_are_refused(case):
    method, kind, n_clusters = case
    names = {field.name for method in WITH_DRAWS for field in fields_of(method)}
    for name in names - options_of(*case):
        with pytest.raises(
            TypeError, match=rf"has no option '{name}'( \(did you mean .*\))?; it has "
        ):
            check_options(Case.of(data(kind), method, n_clusters), {name: 1})


# words


@pytest.mark.parametrize("field", TABLE, ids=[field.name for field in TABLE])
def test_every_option_is_described_in_the_help_of_fit_under_its_methods(field):
    words, methods = field.metadata["words"], field.metadata["methods"]
    assert len(words.split()) > 1
    parts = " ".join(pm.fit.__doc__.split()).split("Options of ")[1:]
    (part,) = (part for part in parts if f" {field.name}: {words}" in part)
    title = part.partition(f"{TABLE[0].name}: " if methods == WITH_DRAWS else ": ")[0]
    if methods == WITH_DRAWS:
        assert title.startswith("every method with draws")
    else:
        assert all(f'"{method}"' in title for method in methods)


def test_an_option_has_one_line_in_the_help():
    lines = [line for line in describe_options().splitlines() if line.startswith("  ")]
    assert [line.partition(":")[0].strip() for line in lines] == [field.name for field in TABLE]


# values

WHOLE, NUMBER = "must be a whole number, got", "must be a number, got"
BAD_VALUES = [  # method, kind, clusters, option, value, error, message
    ("pseudo", "full", 1, "n_chains", 0, ValueError, "must be 1 or more, got 0"),
    ("pseudo", "full", 1, "n_chains", 2.0, TypeError, f"{WHOLE} 2.0"),
    ("mcmc", "full", 1, "n_chains", True, TypeError, f"{WHOLE} True"),
    ("mcmc", "full", 1, "warmup", -1, ValueError, "must be 0 or more, got -1"),
    ("mcmc", "full", 1, "warmup", "many", TypeError, f"{WHOLE} 'many'"),
    ("pseudo", "clicks", 1, "thin", 0, ValueError, "must be 1 or more, got 0"),
    ("pseudo", "clicks", 1, "thin", 1.5, TypeError, f"{WHOLE} 1.5"),
    ("mcmc", "full", 1, "temperatures", 1, ValueError, "must be 2 or more, got 1"),
    ("mcmc", "full", 1, "temperatures", "5", TypeError, f"{WHOLE} '5'"),
    ("pseudo", "full", 2, "share_prior", 0, ValueError, "must be above 0, got 0"),
    ("pseudo", "full", 2, "share_prior", -1, ValueError, "must be a finite number, 0 or more"),
    ("pseudo", "full", 2, "share_prior", np.nan, ValueError, "must be a finite number"),
    ("pseudo", "full", 2, "share_prior", "1", TypeError, f"{NUMBER} '1'"),
    ("pseudo", "full", 1, "sigma", -0.1, ValueError, "must be a finite number, 0 or more"),
    ("pseudo", "full", 1, "sigma", np.inf, ValueError, "must be a finite number"),
    ("pseudo", "full", 1, "sigma", [1], TypeError, f"{NUMBER} [1]"),
    ("pseudo", "full", 1, "sigma", "much", ValueError, 'must be a number or "auto", got'),
    ("pseudo", "clicks", 1, "sigma", "auto", ValueError, "is for full rankings with one cluster"),
    ("pseudo", "full", 2, "sigma", "auto", ValueError, "is for full rankings with one cluster"),
    ("pseudo", "clicks", 1, "order", "V", ValueError, "one of 'uniform', 'v', 'top_bottom', got"),
    (
        "mcmc",
        "full",
        1,
        "move",
        "leap",
        ValueError,
        "'leap_and_shift', 'insert', got 'leap'",
    ),
    ("balanced", "full", 1, "seconds", -1, ValueError, "must be a finite number, 0 or more"),
    ("mcmc", "full", 1, "leap", 0, ValueError, "must be 1 or more, got 0"),
    ("mcmc", "full", 1, "n_moves", 0, ValueError, "must be 1 or more, got 0"),
    ("mcmc", "full", 1, "start", "best", ValueError, "'map', 'random', got 'best'"),
    ("mcmc", "votes", 1, "gaps", "wide", ValueError, "one of 'auto', 'equal', 'free', got 'wide'"),
    ("mcmc", "votes", 1, "errors", "some", ValueError, "'bernoulli', 'logistic', got 'some'"),
    ("mcmc", "votes", 1, "theta_prior", 1, TypeError, "must be two numbers above 0, got 1"),
    ("mcmc", "votes", 1, "theta_prior", (0, 1), ValueError, "must be above 0, got 0"),
    ("mcmc", "full", 1, "alpha_prior", 3, TypeError, "must be (shape, rate) of a gamma, or"),
    ("mcmc", "full", 1, "alpha_prior", "wide", TypeError, "must be (shape, rate) of a gamma, or"),
    ("mcmc", "full", 1, "alpha_prior", (1, 0), ValueError, "rate must be above 0, got 0"),
    ("mcmc", "full", 1, "alpha_prior", ("x", 1), TypeError, f"shape {NUMBER} 'x'"),
    ("pseudo", "full", 1, "distance", "manhattan", ValueError, "'ulam', got 'manhattan'"),
]


@pytest.mark.parametrize(
    ("method", "kind", "n_clusters", "name", "value", "error", "words"), BAD_VALUES
)
def test_values_are_checked(method, kind, n_clusters, name, value, error, words):
    with pytest.raises(error, match=f"^{name} .*{re.escape(words)}"):
        pm.fit(data(kind), method, n_clusters=n_clusters, rng=1, **{name: value})


def test_errors_of_votes_cannot_be_told_from_disagreement():
    with pytest.raises(ValueError, match="errors='logistic' looks the same as disagreement"):
        pm.fit(data("votes"), errors="logistic", rng=1)


def test_every_option_has_a_bad_value_in_the_table():
    tried = {name for _, _, _, name, _, _, _ in BAD_VALUES}
    names = {field.name for method in WITH_DRAWS for field in fields_of(method)}
    assert names - tried == {"keep_latent", "weighted"}  # names of users; anything true or false


NO_NONE = [  # options whose default is a value
    *[("pseudo", "clicks", 2, name) for name in ("n_chains", "share_prior", "order")],
    ("mcmc", "clicks", 1, "start"),
]


@pytest.mark.parametrize(("method", "kind", "n_clusters", "name"), NO_NONE)
def test_none_is_no_value_where_the_default_is_one(method, kind, n_clusters, name):
    with pytest.raises((TypeError, ValueError), match=f"^{name} must be .*, got None"):
        plan_of(method, kind, n_clusters, **{name: None})


def test_users_to_keep_must_be_there():
    with pytest.raises(ValueError, match="no user is named 'Eve'; the first are 0, 1, 2"):
        plan_of("mcmc", "clicks", 1, keep_latent=["Eve"])
    assert plan_of("mcmc", "clicks", 1, keep_latent=[7, 3]).kept_rows.tolist() == [7, 3]


# the distance


@pytest.mark.parametrize("method", WITH_DRAWS)
def test_a_distance_that_is_not_there_is_refused_with_those_that_are(method):
    with pytest.raises(ValueError, match=r"distance must be one of 'footrule', .* got 'manhattan'"):
        pm.fit(data("clicks" if method == "matched" else "full"), method, distance="manhattan")


@pytest.mark.parametrize(("method", "kind"), sorted({case[:2] for case in DEFAULTS}))
def test_the_settings_name_the_distance(method, kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        posterior = pm.fit(data(kind), method, 2.0, n_draws=3, distance="footrule", rng=1)
        plain = pm.fit(data(kind), method, 2.0, n_draws=3, rng=1)
    assert posterior.settings["distance"] == "footrule"
    assert plain.settings["distance"] == "footrule"
    assert (posterior.consensus == plain.consensus).all()


def test_the_call_in_a_checkpoint_names_the_distance():
    for method in WITH_DRAWS:
        plan = plan_of(method, "clicks", 2)
        call = describe_call(data("clicks"), plan, np.random.default_rng(1))
        assert call["distance"] == "footrule"


def test_the_file_of_a_checkpoint_names_the_distance(tmp_path):
    def break_off(done, total):
        if done == 3:
            raise KeyboardInterrupt

    file = tmp_path / "x.checkpoint"
    with pytest.raises(KeyboardInterrupt):
        pm.fit(data("full"), "mcmc", 2.0, rng=1, checkpoint=file, progress=break_off)
    with zipfile.ZipFile(file) as archive:
        call = json.loads(archive.read("checkpoint.json"))["call"]
    assert call["distance"] == "footrule"
    assert call["method"] == "mcmc"
