"""Rankings: who is liked best, and how sure is that?

Data: 5,738 ballots of an election with five candidates (American Psychological Association, 1980).
Each row of the table is one ballot: `place1` is the candidate in the first place, and so on.
"""

from ansatz import Ranker, data

ballots = data.load("apa-election").frame.sample(frac=1, random_state=0)  # in random order
train, test = ballots[:2000], ballots[2000:]

# No features are known about the voters, so X is None and all voters have one distribution.
# In the Plackett-Luce likelihood each candidate has a worth, and each place goes to one of the
# remaining candidates in proportion to their worth.
model = Ranker().fit(None, train)
print("predicted order:", " > ".join(str(item) for item in model.predict(None)[0]))

first = dict(zip(model.items_.tolist(), model.predict_proba(None)[0], strict=True))
observed = test["place1"].value_counts(normalize=True)
for item, chance in sorted(first.items(), key=lambda pair: -pair[1]):
    # Beside the predictions: the shares of ballots that took no part in the fit.
    print(f"candidate {item}: first with chance {chance:.2f}, test ballots {observed[item]:.2f}")

ranks = dict(zip(model.items_.tolist(), model.predict_ranks(None)[0], strict=True))
best, worst = min(ranks, key=ranks.get), max(ranks, key=ranks.get)
worth = model.predict_dist(None)
place = model.items_.tolist().index
print(f"expected ranks: {best} has {ranks[best]:.2f}, {worst} has {ranks[worst]:.2f}")
print(f"{best} is preferred to {worst} by {float(worth.prefers(place(best), place(worst))):.0%}")

# Candidate 3 is first more often than predicted, although 1 has the better ranks: some voters put 3
# first and others last. One worth for each candidate cannot express that.
