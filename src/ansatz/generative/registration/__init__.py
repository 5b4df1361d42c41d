"""Registration: smooth invertible maps that move one image onto another."""

from ansatz.generative.registration.register import Registered as Registered
from ansatz.generative.registration.register import Registration as Registration
from ansatz.generative.registration.register import RegistrationNetwork as RegistrationNetwork
from ansatz.generative.registration.warp import dice as dice
from ansatz.generative.registration.warp import integrate as integrate
from ansatz.generative.registration.warp import jacobian_determinant as jacobian_determinant
from ansatz.generative.registration.warp import local_correlation as local_correlation
from ansatz.generative.registration.register import register as register
from ansatz.generative.registration.warp import warp as warp
