"""Every kind of bad input, and the message that says what was wanted, what came, and where."""

import inspect
import math
import os
import traceback
import warnings

import numpy as np
import pandas as pd
import pytest

import pseudomallows as pm

RANKINGS = [[1, 2, 3], [2, 1, 3]]
PREFS = pm.Preferences.from_rankings(RANKINGS)


def rankings(*rows):
    return lambda: pm.Preferences.from_rankings(list(rows))


def fit(**options):
    return lambda: pm.fit(PREFS, **options)


CASES = [
    # rankings
    (rankings([1, 2, 3], [2, 3, 3]), r"rankings\[1\] is not a ranking of 3 items: \[2, 3, 3\]: "
     r"its equal ranks are not clear: .*; 1 of 2 users have this problem"),
    (rankings([1, 1.5, 3]), "ranks are whole numbers; only items that tie can share a mean rank"),
    (lambda: pm.footrule([1, 2, 2], [1, 2, 3]), "a rank appears twice; ties are not allowed"),
    (lambda: pm.footrule([1, 2.5, 2.5], [1, 2, 3]), "whole numbers; ties are not allowed"),
    (rankings([1, -1, 2]), "ranks start at 1, and 0 or NaN means not ranked"),
    (rankings([1, 4, 2]), "a rank is beyond the 3 items"),
    (rankings([1, np.inf, 2]), "a rank is beyond the 3 items"),
    (rankings([1, -np.inf, 2]), "ranks start at 1"),
    (rankings(["a", "b", "c"]), r"rankings must be numbers \(ranks\), got text, first a"),
    (rankings([1, None, "x"]), r"rankings must be numbers \(ranks\), got (None|'x')"),
    (rankings([True, False]), "got true and false .for clicks use"),
    (rankings([1, 2, 3], [1, 2]), "the same number of items for every user"),
    (rankings(), "rankings is empty"),
    (rankings([]), "rankings is empty"),
    (rankings([1]), "a ranking needs at least 2 items, got 1"),
    (lambda: pm.Preferences.from_rankings([1, 2, 3]), r"two axes \(users, items\), got 1"),
    (lambda: pm.Preferences.from_rankings(np.ones((2, 2, 2))), "two axes"),
    (lambda: pm.fit(rankings([0, 0, 0], [0, 0, 0])()), "no informative rows"),
    # names and weights
    (lambda: pm.Preferences.from_rankings(RANKINGS, items=["a", "b"]), "items must have 3 names, got 2"),
    (lambda: pm.Preferences.from_rankings(RANKINGS, items=["a", "b", "a"]), "got 'a' twice"),
    (lambda: pm.Preferences.from_rankings(RANKINGS, users=["ann"]), "users must have 2 names, got 1"),
    (lambda: PREFS.rename(items=["a"]), "items must have 3 names, got 1"),
    (lambda: pm.Preferences.from_rankings(RANKINGS, weights=[1]), r"one number a user \(2\), got \(1,\)"),
    (lambda: pm.Preferences.from_rankings(RANKINGS, weights=[1, 0.5]), r"weights\[1\] must be a whole"),
    (lambda: pm.Preferences.from_rankings(RANKINGS, weights=[-1, 1]), r"weights\[0\] must be a whole"),
    (lambda: pm.Preferences.from_rankings(RANKINGS, weights=[np.nan, 1]), r"weights\[0\] must be"),
    (lambda: pm.Preferences.from_rankings(RANKINGS, weights=["a", "b"]), "weights must be whole numbers"),
    (lambda: pm.fit(pm.Preferences.from_rankings(RANKINGS, weights=[0, 0])), "no informative rows"),
    # orderings
    (lambda: pm.Preferences.from_orderings([]), "orderings is empty"),
    (lambda: pm.Preferences.from_orderings([["a", "b", "a"]]), r"orderings\[0\]: 'a' is there twice"),
    (lambda: pm.Preferences.from_orderings([["a"], ["x"]], items=["a", "b"]), r"orderings\[1\] has 'x', which"),
    (lambda: pm.Preferences.from_orderings(["ab"]), r"orderings\[0\] must be a list of items"),
    (lambda: pm.Preferences.from_orderings([3]), r"orderings\[0\] must be a list of items"),
    (lambda: pm.Preferences.from_orderings([["a", None, "b"]]), r"orderings\[0\]: place 2 is empty, but later ones are not"),
    (lambda: pm.Preferences.from_orderings([["a"]]), "at least 2 items, got 1"),
    # alpha
    (lambda: pm.Mallows([1, 2], -1), "alpha must be a finite number, 0 or more .* got -1"),
    (lambda: pm.Mallows([1, 2], np.nan), "alpha must be a finite number, 0 or more .* got nan"),
    (lambda: pm.Mallows([1, 2], np.inf), "alpha must be a finite number, 0 or more .* got inf"),
    (lambda: pm.Mallows([1, 2], "large"), "alpha must be a number, got 'large'"),
    (lambda: pm.PseudoMallows(RANKINGS, -2), "alpha must be a finite number"),
    (fit(alpha=-1), "alpha must be a finite number, 0 or more and at most"),
    (fit(alpha=np.inf), "alpha must be a finite number"),
    (lambda: pm.log_likelihood(PREFS, [1, 2, 3], np.nan), "alpha must be a finite number"),
    # consensus
    (lambda: pm.Mallows([1, 2, 2], 1), r"consensus is not a permutation of 1\.\.3: \[1, 2, 2\]"),
    (lambda: pm.Mallows([1, np.nan, 2], 1), "consensus is not a permutation"),
    (lambda: pm.Mallows([0, 1, 2], 1), "consensus is not a permutation"),
    (lambda: pm.Mallows([[1, 2]], 1), "consensus must have one axis"),
    (lambda: pm.Mallows([], 1), "consensus is empty"),
    (lambda: pm.Mallows(["a", "b"], 1), "consensus must be numbers"),
    (lambda: pm.Mallows([1, 2], 1).log_probability([1, 2, 3]), "the 2 items of the consensus, got 3"),
    (lambda: pm.log_likelihood(PREFS, [1, 2], 1), "consensus must have 3 items, got 2"),
    (lambda: pm.maximum_likelihood_alpha(RANKINGS, [1, 2]), "rankings must have the 2 items of the consensus, got 3"),
    (lambda: pm.Mallows([1, 2], 1).draw(-1), "n_draws must be 0 or more"),
    (lambda: pm.Mallows([1, 2], 1).draw(2.5), "n_draws must be a whole number, got 2.5"),
    # distributions from full rankings
    (lambda: pm.PseudoMallows([[1, 0, 0]], 1), r"rankings\[0\] is not a full ranking: \[1, 0, 0\]"),
    (lambda: pm.PseudoMallows([[1, 2], [np.nan, 1]], 1), r"rankings\[1\] is not a full ranking"),
    (lambda: pm.PseudoMallows(RANKINGS, 1, sigma=-1), "sigma must be a finite number, 0 or more"),
    (lambda: pm.PseudoMallows(RANKINGS, 1, sigma=1, balanced=True), "sigma has no meaning with bal"),
    (lambda: pm.PseudoMallows(RANKINGS, 1).draw(2, 1, [0, 1]), r"each of the items 0\.\.2 once"),
    (lambda: pm.PseudoMallows(RANKINGS, 1).draw(2, 1, [0, 1, 1]), "once, got"),
    (lambda: pm.PseudoMallows(RANKINGS, 1).log_probability([1, 2]), "must have 3 items, got 2"),
    (lambda: pm.PseudoMallows(RANKINGS, 1, sigma=1).log_probability([1, 2, 3]), "no finite sum"),
    (lambda: pm.PseudoMallows([range(1, 21)], 1).rank_probabilities(range(20)), "up to 16 items, got 20"),
    (lambda: pm.PseudoMallows([range(1, 41)], 1).log_probability(range(1, 41)), "more than 50000: give"),
    (lambda: pm.v_rankings(range(1, 41)), "the V-set of 40 items is too large"),
    (lambda: pm.v_rankings([1, 1]), "ranking is not a permutation"),
    (lambda: pm.draw_v_ranking([1, 3]), "ranking is not a permutation"),
    # scores
    (lambda: pm.footrule([1, 2], [1, 2, 3]), "the same items, got 2 and 3 items"),
    (lambda: pm.footrule([[1, 2]] * 2, [[1, 2]] * 3), "cannot compare 2 rankings with 3"),
    (lambda: pm.marginal_divergence([[1, 2]], [[1, 2, 3]]), "have 2 items, reference_draws have 3"),
    (lambda: pm.marginal_divergence([[1, 2]], [[1, 2]], floor=0), "floor must be between 0 and 1"),
    (lambda: pm.marginal_divergence([[1, 2]], [[1, 2]], weights=[1, 2]), "one number a draw"),
    # fit
    (lambda: pm.fit(RANKINGS), "prefs must be Preferences, got list: use pm.Preferences.from_"),
    (lambda: pm.fit("survey.xlsx"), "or pm.read for a file"),
    (lambda: pm.evaluate("log.csv"), "pm.read, pm.Preferences.from_clicks"),
    (fit(method="magic"), "method must be one of 'auto', 'pseudo', 'balanced', 'mcmc', 'matched', 'personal', got 'magic'"),
    (fit(distance="manhattan"), "distance must be one of 'footrule', 'spearman', 'kendall', 'cayley', 'hamming', 'ulam', got 'manhattan'"),
    (lambda: pm.Mallows([1, 2], 1, distance=None), "'hamming', 'ulam', got None"),
    (lambda: pm.estimate_alpha(PREFS, "guess"), "method must be one of 'similarity', 'likelihood'"),
    (lambda: pm.estimate_alpha(rankings([1, 0, 0], [1, 2, 3])()), "some rankings are partial: use method="),
    (lambda: pm.fit(rankings([1, 2, 3])(), "pseudo"), "only one user"),
    (fit(n_clusters=0), "n_clusters must be 1 or more, got 0"),
    (fit(n_clusters=1.5), "n_clusters must be a whole number"),
    (fit(n_clusters="many"), 'n_clusters must be a whole number or "auto", got \'many\''),
    (fit(n_clusters=1000), "at most the number of informative users, [0-9]+, got 1000"),
    (fit(n_clusters=2, start="random"), "with 2 clusters has no option 'start'"),
    (fit(n_clusters=2, refresh=1), "with 2 clusters has no option 'refresh'"),
    (fit(n_clusters=2, temperatures=3), "with 2 clusters has no option 'temperatures'"),
    (fit(temperatures=1), "temperatures must be 2 or more, got 1"),
    (fit(n_clusters=2, share_prior=0), "share_prior must be above 0, got 0"),
    (fit(n_draws=0), "n_draws must be 1 or more, got 0"),
    (fit(n_draws=True), "n_draws must be a whole number, got True"),
    (fit(method="pseudo", alpha=1, warmup=3), "method='pseudo' on full rankings has no option 'warmup'; it has"),
    (fit(method="pseudo", alpha=1, sgima=3), r"did you mean 'sigma'\?\); it has distance, n_chains"),
    (fit(nmc=1000), r"no option 'nmc' \(did you mean 'n_draws'\?\)"),
    (fit(metric="kendall"), r"no option 'metric' \(did you mean 'distance'\?\)"),
    (fit(alpha=1, sigma=np.nan), "sigma must be a finite number"),
    (fit(method="mcmc", move="jump"), "move must be one of 'swap', 'leap_and_shift', 'insert', got 'jump'"),
    (fit(method="mcmc", start="mode"), "start must be one of 'dispersed', 'map', 'random', got 'm"),
    (fit(method="mcmc", leap=0), "leap must be 1 or more, got 0"),
    (fit(method="mcmc", thin=0), "thin must be 1 or more, got 0"),
    (fit(method="mcmc", n_chains=0), "n_chains must be 1 or more, got 0"),
    (fit(method="mcmc", warmup=-1), "warmup must be 0 or more, got -1"),
    (fit(method="mcmc", alpha_prior=3), r"alpha_prior must be \(shape, rate\) of a gamma, or .flat., got 3"),
    (fit(method="mcmc", alpha_prior=(0, 1)), "alpha_prior shape must be above 0, got 0"),
    (lambda: pm.Threads(0), "n_threads must be 1 or more, got 0"),
    # what a stranger tried
    (lambda: pm.Mallows([1, 2], "2"), "alpha must be a number, got '2'"),
    (lambda: pm.Mallows([1, 2], 1e10), "0 or more and at most 1e\\+09, got 1"),
    (lambda: pm.Mallows([1, [2]], 1), "the same number of items"),
    (lambda: pm.footrule([[1, 2], [1]], [1, 2]), "the same number of items"),
    (rankings(["1", 2]), "must be numbers"),
    (lambda: pm.Preferences.from_rankings(np.array([["1", 2]], dtype=object)), "got '1' at"),
    (lambda: pm.Preferences.from_rankings(RANKINGS, weights=[2.0**63, 1]), r"weights\[0\] must be"),
    (lambda: pm.Preferences.from_rankings(RANKINGS, weights=[6e8, 6e8]), "must sum to at most 1e"),
    (lambda: pm.Preferences.from_rankings(RANKINGS, weights=[[1, 2]]), r"one number a user \(2\), got \(1, 2\)"),
    (lambda: pm.Preferences.from_rankings(RANKINGS, weights=[True, False]), "weights must be whole numbers"),
    (lambda: pm.maximum_likelihood_alpha([[1, 2, 3]], [1, 2, 3], weights=[0]), "all weights are 0"),
    (lambda: pm.PseudoMallows([[1, 2, 3]], 1, weights=[0]), "all weights are 0"),
    (lambda: pm.marginal_divergence([[1, 2]], [[1, 2]], weights=[np.nan]), "weights must be finite"),
    (lambda: pm.marginal_divergence([[1, 2]], [[1, 2]], weights=[-1]), "weights must be finite"),
    (lambda: pm.log_likelihood([[1, 2]], [1, 2], 1), "prefs must be Preferences, got list"),
    (lambda: pm.Preferences.from_orderings(None), "orderings must be lists of items"),
    (lambda: pm.Preferences.from_orderings([["a", "b"]], items=5), "items must be a list of names"),
    (lambda: pm.Preferences.from_rankings(pd.DataFrame({0: [1, 2], 1: ["a", "b"]})), "rankings, row 0, column '1': wanted a number, got 'a'"),
    (lambda: pm.Preferences.from_rankings(pd.DataFrame({"x": [1], "y": [2]}), items=["x", "z"]), "items has 'z', which is not a column"),
    (lambda: pm.PseudoMallows(RANKINGS, 1).elbo(n_draws=0), "n_draws must be 1 or more"),
    (lambda: pm.simulate_rankings(0, 5, 1), "n_users must be 1 or more, got 0"),
    (lambda: pm.simulate_rankings(5, 1, 1), "n_items must be 2 or more, got 1"),
    (lambda: pm.simulate_rankings(5, 5, 1, top=0), "top must be 1 or more, got 0"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), CASES, ids=[message[:40] for _, message in CASES])
def test_the_message_says_what_is_wrong(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_many_wrong_rows_are_counted():
    rows = np.tile([1, 2, 3], (200, 1))
    rows[[17, 40, 99]] = [2, 3, 3]
    message = r"rankings\[17\] is not .* 3 of 200 users have this problem"
    with pytest.raises(ValueError, match=message):
        pm.Preferences.from_rankings(rows)


def test_long_rows_are_shown_in_part():
    with pytest.raises(ValueError, match=r"12, \.\.\.\]"):
        pm.Preferences.from_rankings([[*range(1, 20), 21]])


def test_one_user_and_given_alpha_is_fine():
    posterior = pm.fit(pm.Preferences.from_rankings([[2, 1, 3]]), alpha=9, rng=1)
    assert posterior.point_consensus().tolist() == [2, 1, 3]


WRONG = [True, -1, 1.5, math.nan, math.inf, 10**30, "", "no such", b"x", "\0", [], [[]], [None], {}]
WRONG += [{1: 2}, (), object(), len, 1j, np.array(["a"]), np.zeros((2, 0)), set()]
WORDS = {  # what a message may say instead of the name of the argument
    "clicks": ["item"],
    "items": ["item"],
    "later": ["clicks", "path"],
    "name": ["distance"],
    "names": ["distance"],
    "other": ["rankings"],
    "sep": ["line 2"],  # it splits no line, so the first cell is odd
    "test": ["clicks", "path"],
    "users": ["user"],
}
CLASSES = {
    "Clicks",
    "ConvergenceWarning",
    "DaskExecutor",
    "Mixed",
    "Pairs",
    "PersonalFit",
    "Posterior",
}
CLASSES |= {"Preferences", "Rankings"}  # made by functions, whose input is above and in other tests


def right_calls():
    """A call of each public function that is right."""
    names = {
        user: [f"i{(user + place) % 7}" for place in range(2 + user % 2)] for user in range(20)
    }
    clicks = pm.Preferences.from_clicks(names)
    rankings = [*RANKINGS, [1, 3, 2]]
    prefs, many = (pm.Preferences.from_rankings(rankings * times) for times in (1, 3))
    own, draws = pm.fit(clicks, "personal", calibrate=False, rng=1), pm.fit(prefs, "pseudo", 2, 5)
    own.save("m.pm")
    rows = [f"{user},{item}" for user in range(9) for item in range(user % 3, 4)]
    with open("c.csv", "w") as file:
        file.write("\n".join(["user,item", *rows]))
    one, sizes = {"ranking": [1, 2, 3]}, {"n_users": 4, "n_items": 5, "alpha": 2.0, "rng": 1}
    plain = {"method": "personal", "calibrate": False}
    return {
        "Mallows": {"consensus": [1, 2, 3], "alpha": 2.0},
        "PseudoMallows": {"rankings": rankings, "alpha": 2.0},
        "Threads": {"n_threads": 1},
        "check": {"posterior": own, "later": {0: ["i5"], 1: ["i6"]}},
        "choose_clusters": {"prefs": prefs, "largest": 2, "rng": 1},
        "choose_distance": {"prefs": many, "names": ["footrule"], "rng": 1},
        "click_log_likelihood": {"prefs": clicks, "consensus": range(1, 8), "alpha": 2.0},
        "distance": one | {"other": [2, 1, 3]},
        "draw_v_ranking": one | {"rng": 1},
        "estimate_alpha": {"prefs": prefs, "rng": 1},
        "evaluate": {"prefs": clicks, "hide": 1, "k": 1, "rng": 1} | plain,
        "explain": {"posterior": own, "user": 0, "item": "i5"},
        "fit": {"prefs": prefs, "method": "pseudo", "alpha": 2.0, "n_draws": 4, "rng": 1},
        "footrule": one | {"other": [2, 1, 3]},
        "load": {"path": "m.pm"},
        "log_likelihood": {"prefs": prefs, "consensus": [1, 2, 3], "alpha": 2.0},
        "marginal_divergence": {"draws": rankings, "reference_draws": rankings},
        "maximum_likelihood_alpha": {"rankings": rankings, "consensus": [1, 2, 3]},
        "next_pairs": {"posterior": draws, "rng": 1},
        "read": {"path": "c.csv"},
        "recommend": {"posterior": own, "k": 2},
        "report": {"posterior": draws, "path": "r.html"},
        "similar_items": {"posterior": own, "item": "i1"},
        "similar_users": {"posterior": own, "user": 1},
        "simulate_clicks": sizes | {"mean_clicks": 2},
        "simulate_rankings": sizes,
        "v_rankings": one,
    }


def complaint(function, given, argument, value):
    """What is wrong with how a wrong value is refused; nothing if it is taken, or told in words."""
    try:
        function(**given | {argument: value})
    except FileNotFoundError:
        return ""
    except (ValueError, TypeError) as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        is_ours = place.filename.startswith(os.path.dirname(pm.__file__))
        is_named = any(word in str(error) for word in (argument, *WORDS.get(argument, ())))
        is_raised = "raise" in place.line
        return "" if is_ours and is_named and is_raised else f"{error!r} in {place}"
    except Exception as error:
        return repr(error)
    return ""


def test_wrong_types_get_our_words(tmp_path, monkeypatch):
    """Every argument of every public function; only a call that is right returns."""
    monkeypatch.chdir(tmp_path)
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calls = right_calls()
        functions = {name for name in pm.__all__ if callable(getattr(pm, name))}
        assert set(calls) == functions - CLASSES
        for name, given in calls.items():
            function = getattr(pm, name)
            function(**given)
            for argument, each in inspect.signature(function).parameters.items():
                if each.kind is each.VAR_KEYWORD:
                    continue
                wrong = WRONG if argument != "progress" else [x for x in WRONG if x is not len]
                for value in wrong:
                    said = complaint(function, given, argument, value)
                    if said:
                        found[f"{name}({argument}={value!r})"] = said
    assert found == {}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pm.fit(PREFS, executor=True), "executor must have a map, such as pm.Threads"),
        (lambda: pm.fit(PREFS, rng="one"), r"rng must be a numpy.random.Generator or a seed"),
        (lambda: pm.fit(PREFS, rng=1, checkpoint=3), "checkpoint must be the path of a file"),
        (lambda: pm.load(3), "path must be the path of a file, got 3"),
        (lambda: pm.read(None), "path must be the path of a file, got None"),
        (lambda: pm.choose_clusters(PREFS, share_prior=math.nan), "share_prior must be a finite"),
        (lambda: pm.choose_clusters(PREFS, share_prior=0), "share_prior must be above 0, got 0"),
        (
            lambda: pm.next_pairs(pm.fit(PREFS, "pseudo", 2, 5, rng=1), cluster=1.5),
            r"cluster must be in 0\.\.0, got 1.5",
        ),
    ],
)
def test_arguments_of_many_functions_are_checked(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
