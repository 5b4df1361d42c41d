"""Models of x itself."""

from ansatz.generative.diffusion.process import Process as Process
