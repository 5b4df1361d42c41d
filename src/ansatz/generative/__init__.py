"""Models of x itself: generators, the codes of examples, and what is measured of samples."""

from ansatz.generative.registry import create as create
from ansatz.generative.registry import names as names
from ansatz.generative.registry import register as register
from ansatz.generative.registry import registry as registry
from ansatz.generative.contract import Examples as Examples
from ansatz.generative.contract import Generator as Generator
from ansatz.generative.normal_law import NormalLaw as NormalLaw
from ansatz.generative.diffusion.process import Process as Process
