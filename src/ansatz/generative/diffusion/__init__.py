"""Diffusion: the noising process, samplers, objectives and densities."""

from ansatz.generative.diffusion.sampler import DDIM as DDIM
from ansatz.generative.diffusion.sampler import DDPM as DDPM
from ansatz.generative.diffusion.sampler import DPM2M as DPM2M
from ansatz.generative.diffusion.sampler import Denoiser as Denoiser
from ansatz.generative.diffusion.denoising import Denoising as Denoising
from ansatz.generative.diffusion.sampler import Euler as Euler
from ansatz.generative.diffusion.sampler import Heun as Heun
from ansatz.generative.diffusion.normal_exact import Moments as Moments
from ansatz.generative.diffusion.denoising import NetworkDenoiser as NetworkDenoiser
from ansatz.generative.diffusion.normal_exact import NormalExact as NormalExact
from ansatz.generative.diffusion.process import Process as Process
from ansatz.generative.diffusion.sampler import ReverseSDE as ReverseSDE
from ansatz.generative.diffusion.sampler import Sampler as Sampler
from ansatz.generative.diffusion.denoising import ScoreMatching as ScoreMatching
from ansatz.generative.diffusion.density import bits_per_dimension as bits_per_dimension
from ansatz.generative.diffusion.density import continuous_bound as continuous_bound
from ansatz.generative.diffusion.sampler import draw as draw
from ansatz.generative.diffusion.density import evidence_bound as evidence_bound
from ansatz.generative.diffusion.density import log_density as log_density
from ansatz.generative.diffusion.sampler import samplers as samplers
