"""Maximum-likelihood linear models: the GLM beside every network, with R's summary."""

from ansatz.linear.design import Design as Design
from ansatz.linear.effects import Effect as Effect
from ansatz.linear.effects import average_marginal_effects as average_marginal_effects
from ansatz.linear.fit import fit_linear as fit_linear
from ansatz.linear.effects import NetworkSummary as NetworkSummary
from ansatz.linear.proportional_hazards import ProportionalHazards as ProportionalHazards
from ansatz.linear.proportional_hazards import proportional_hazards as proportional_hazards
from ansatz.linear.proportional_hazards import schoenfeld_residuals as schoenfeld_residuals
from ansatz.linear.residuals import leverage as leverage
from ansatz.linear.residuals import residuals as residuals
from ansatz.linear.linear_fit import LinearFit as LinearFit
from ansatz.linear.summary import Summary as Summary
from ansatz.linear.linear_fit import join_targets as join_targets
