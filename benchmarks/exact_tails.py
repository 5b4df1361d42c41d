"""Computes P(Y <= y) and P(Y > y) to forty digits, from textbook formulas by mpmath.

Every function takes an outcome and the parameters that our distribution is made from, as floats,
and gives the pair, each tail by itself.
"""

from mpmath import mp, mpf

mp.dps = 40


def normal(y, mean, sd):
    z = (mpf(y) - mpf(mean)) / mpf(sd)
    return mp.erfc(-z / mp.sqrt(2)) / 2, mp.erfc(z / mp.sqrt(2)) / 2


def laplace(y, location, scale):
    z = (mpf(y) - mpf(location)) / mpf(scale)
    tail = mp.exp(-abs(z)) / 2
    return (tail, 1 - tail) if z < 0 else (1 - tail, tail)


def student_t(y, location, scale, nu):
    t, nu = (mpf(y) - mpf(location)) / mpf(scale), mpf(nu)
    tail = mp.betainc(nu / 2, 0.5, 0, nu / (nu + t * t), regularized=True) / 2
    return (tail, 1 - tail) if t < 0 else (1 - tail, tail)


def normal_mixture(y, logits, means, sds):
    weights = [mp.exp(mpf(v)) for v in logits]
    pairs = [normal(y, m, s) for m, s in zip(means, sds, strict=True)]
    total = mp.fsum(weights)
    return tuple(mp.fdot(weights, side) / total for side in zip(*pairs, strict=True))


def _from_hazard(h):
    return -mp.expm1(-h), mp.exp(-h)


def exponential(y, log_mean):
    return _from_hazard(mpf(y) * mp.exp(-mpf(log_mean)))


def weibull(y, log_scale, sigma):
    return _from_hazard((mpf(y) * mp.exp(-mpf(log_scale))) ** (1 / mpf(sigma)))


def generalized_pareto(y, log_scale, shape):
    return _from_hazard(mp.log1p(mpf(shape) * y * mp.exp(-mpf(log_scale))) / shape)


def _gamma(a, x):
    return (
        mp.gammainc(a, 0, x, regularized=True),
        mp.gammainc(a, x, mp.inf, regularized=True),
    )


def gamma(y, log_mean, dispersion):
    a = 1 / mpf(dispersion)
    return _gamma(a, a * y * mp.exp(-mpf(log_mean)))


def log_normal(y, log_median, sigma):
    return normal(mp.log(mpf(y)), log_median, sigma)


def inverse_gaussian(y, log_mean, dispersion):
    y, mean, rate = mpf(y), mp.exp(mpf(log_mean)), 1 / mpf(dispersion)
    a = mp.sqrt(rate / (2 * y)) * (y / mean - 1)
    b = mp.sqrt(rate / (2 * y)) * (y / mean + 1)
    second = mp.exp(2 * rate / mean) * mp.erfc(b)
    return (mp.erfc(-a) + second) / 2, (mp.erfc(a) - second) / 2


def tweedie(y, log_mean, dispersion, power):
    mean, phi, p = mp.exp(mpf(log_mean)), mpf(dispersion), mpf(power)
    rate, alpha = mean ** (2 - p) / (phi * (2 - p)), (2 - p) / (p - 1)
    x = y / (phi * (p - 1) * mean ** (p - 1))
    low, high = mp.exp(-rate), mpf(0)
    weight, j = mp.exp(-rate), 0
    while True:
        j += 1
        weight *= rate / j
        below, above = _gamma(j * alpha, x)
        low, high = low + weight * below, high + weight * above
        if j > rate and weight * rate / (j + 1 - rate) < mpf(10) ** -25 * min(low, high):
            return low, high


def _beta(a, b, x):
    """I_x(a, b) and its complement; below the mean by a series of positive terms."""
    a, b, x = mpf(a), mpf(b), mpf(x)
    if x > a / (a + b):
        return _beta(b, a, 1 - x)[::-1]
    total, term, n = mpf(0), mpf(1), 0
    while term > mpf(10) ** -42 * total:
        total += term
        term *= (a + b + n) / (a + 1 + n) * x
        n += 1
    low = total * mp.exp(a * mp.log(x) + b * mp.log1p(-x)) / (a * mp.beta(a, b))
    return low, 1 - low


def _shapes(logits, dispersion):
    mean = 1 / (1 + mp.exp(-mpf(logits)))
    return mean / dispersion, (1 - mean) / dispersion


def beta(y, logits, dispersion):
    return _beta(*_shapes(logits, dispersion), mpf(y))


def zero_one_inflated_beta(y, logits, dispersion, ends):
    zero, one = (mp.exp(mpf(v)) for v in ends)
    total = zero + one + 1
    if y in (0, 1):
        return (mpf(1), mpf(0)) if y else (zero / total, (1 + one) / total)
    low, high = beta(y, logits, dispersion)
    return (zero + low) / total, (one + high) / total


def von_mises(y, a, b):
    """Cut opposite the mean direction."""
    k, mean = mp.hypot(a, b), mp.atan2(b, a)
    x = mpf(y) - mean
    x = abs(x - 2 * mp.pi * mp.nint(x / (2 * mp.pi)))
    width = min(mp.pi - x, 100 / k, mp.sqrt(200 / k))  # e^-100 beyond
    points = [x + width * i / 6 for i in range(7)]
    mass = mp.quad(lambda s: mp.exp(k * (mp.cos(s) - mp.cos(x))), points)
    tail = mass * mp.exp(k * mp.cos(x)) / (2 * mp.pi * mp.besseli(0, k))
    ahead = mp.sin(mpf(y) - mean) >= 0
    return (1 - tail, tail) if ahead else (tail, 1 - tail)


def _from_masses(y, masses):
    return mp.fsum(masses[: int(y) + 1]), mp.fsum(masses[int(y) + 1 :])


def bernoulli(y, logits):
    p = 1 / (1 + mp.exp(-mpf(logits)))
    return _from_masses(y, [1 / (1 + mp.exp(mpf(logits))), p])


def binomial(y, logits, trials):
    n, odds = int(trials), mp.exp(mpf(logits))
    return _from_masses(y, [mp.binomial(n, k) * odds**k / (1 + odds) ** n for k in range(n + 1)])


def beta_binomial(y, logits, dispersion, trials):
    n, (a, b) = int(trials), _shapes(logits, dispersion)
    mass = mp.rf(b, n) / mp.rf(a + b, n)
    masses = [mass]
    for k in range(n):
        mass *= mpf(n - k) / (k + 1) * (a + k) / (b + (n - k - 1))
        masses.append(mass)
    return _from_masses(y, masses)


def ordinal(y, eta, steps):
    theta = mpf(steps[0])
    for r in steps[1 : int(y) + 1]:
        theta += mp.log1p(mp.exp(mpf(r)))
    if int(y) == len(steps):
        return mpf(1), mpf(0)
    gap = theta - mpf(eta)
    return 1 / (1 + mp.exp(-gap)), 1 / (1 + mp.exp(gap))


def poisson(y, log_rate):
    return _gamma(int(y) + 1, mp.exp(mpf(log_rate)))[::-1]


def negative_binomial(y, log_mean, dispersion):
    odds = mp.exp(mpf(log_mean)) * dispersion
    return _beta(int(y) + 1, 1 / mpf(dispersion), odds / (1 + odds))[::-1]


def _with_zeros(pair, logits):
    pi = 1 / (1 + mp.exp(-mpf(logits)))
    rest = 1 / (1 + mp.exp(mpf(logits)))
    return pi + rest * pair[0], rest * pair[1]


def zero_inflated_poisson(y, log_rate, logits):
    return _with_zeros(poisson(y, log_rate), logits)


def zero_inflated_negative_binomial(y, log_mean, dispersion, logits):
    return _with_zeros(negative_binomial(y, log_mean, dispersion), logits)


def hurdle_poisson(y, log_rate, logits):
    rate = mp.exp(mpf(log_rate))
    low, high = poisson(y, log_rate)
    some = -mp.expm1(-rate)
    return _with_zeros(((low - mp.exp(-rate)) / some, high / some), -logits)
