"""Counts: which likelihood? Poisson or negative binomial, compared on held-out days.

Data: bicycles rented per hour in Washington, with hour, weekday and weather.
"""

import numpy as np

from ansatz import Regressor, data

bikes = data.load("bike-sharing")
columns = ["hr", "workingday", "temp", "hum", "windspeed", "yr", "mnth"]
X, y = bikes.frame[columns], bikes.frame["cnt"]

# Hours of one day are alike, so whole days are held out, not single hours.
days = bikes.frame["dteday"].to_numpy()
shuffled = np.random.default_rng(0).permutation(np.unique(days))
train = np.flatnonzero(np.isin(days, shuffled[:200]))  # 200 days keep the example short
test = np.flatnonzero(np.isin(days, shuffled[200:300]))

print(f"{len(train)} hours to train on, {len(test)} to test")
for likelihood in ("poisson", "negative_binomial"):
    # `groups` keeps the hours of a day together in the splits that the fit makes, too.
    model = Regressor(likelihood, epochs=40, random_state=0)
    model.fit(X.iloc[train], y.iloc[train], groups=days[train])
    scores = model.evaluate(X.iloc[test], y.iloc[test])
    low, high = model.interval(X.iloc[test], level=0.9).T
    held = np.mean((low <= y.iloc[test]) & (y.iloc[test] <= high))
    print(
        f"{likelihood:>17}: nll {scores['nll']:6.2f}, mean absolute error {scores['mae']:.1f}, "
        f"90 % intervals cover {held:.0%}"
    )

# The variance of a Poisson distribution equals its mean, and these counts vary far more. Its means
# are good, but its intervals are much too narrow, and the log score (nll) shows that. The negative
# binomial distribution has a parameter for the variance, which the network predicts as well.
