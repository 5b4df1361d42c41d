"""Calculators of learning theory: growth functions, VC dimensions, covering numbers, bounds."""

from ansatz.theory.capacity import log2_relu_growth as log2_relu_growth
from ansatz.theory.capacity import pseudo_dimension_rate as pseudo_dimension_rate
from ansatz.theory.capacity import relu_vc_bound as relu_vc_bound
from ansatz.theory.covering import log10_covering_deep as log10_covering_deep
from ansatz.theory.covering import log10_covering_shallow as log10_covering_shallow
from ansatz.theory.covering import log10_equivalent_weights as log10_equivalent_weights
from ansatz.theory.capacity import half_space_growth as half_space_growth
from ansatz.theory.capacity import sauer_bound as sauer_bound
from ansatz.theory.pac_bayes import gaussian_kl as gaussian_kl
from ansatz.theory.pac_bayes import pac_bayes_gap as pac_bayes_gap
from ansatz.theory.pac_bayes import pac_bayes_risk as pac_bayes_risk
from ansatz.theory.capacity import vc_bound as vc_bound
from ansatz.theory.capacity import vc_gap as vc_gap
