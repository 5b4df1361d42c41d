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
from ansatz.linear.formula import DesignFormula as DesignFormula
from ansatz.linear.formula import formula_variables as formula_variables
from ansatz.linear.formula import split_formula as split_formula
from ansatz.linear.estimates import Estimates as Estimates
from ansatz.linear.margins import marginal_means as marginal_means
from ansatz.linear.margins import mean_interval as mean_interval
from ansatz.linear.nested_tests import NestedTest as NestedTest
from ansatz.linear.nested_tests import f_test as f_test
from ansatz.linear.nested_tests import likelihood_ratio_test as likelihood_ratio_test
from ansatz.linear.nested_tests import wald_test as wald_test
from ansatz.linear.imputation import Pooled as Pooled
from ansatz.linear.imputation import impute as impute
from ansatz.linear.imputation import pool as pool
