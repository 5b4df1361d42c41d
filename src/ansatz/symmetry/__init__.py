"""Symmetries: groups that act on inputs, and how far a network breaks them."""

from ansatz.symmetry.average import GroupAverage as GroupAverage
from ansatz.symmetry.certificate import Certificate as Certificate
from ansatz.symmetry.certificate import certify as certify
from ansatz.symmetry.group import Group as Group
from ansatz.symmetry.sign_and_scale import Scaling as Scaling
from ansatz.symmetry.sign_and_scale import Sign as Sign
from ansatz.symmetry.permutations import NodePermutation as NodePermutation
from ansatz.symmetry.permutations import Permutation as Permutation
from ansatz.symmetry.points import Orthogonal as Orthogonal
from ansatz.symmetry.points import PointRotation as PointRotation
from ansatz.symmetry.points import RigidMotion as RigidMotion
from ansatz.symmetry.points import Translation as Translation
from ansatz.symmetry.points import haar_orthogonal as haar_orthogonal
from ansatz.symmetry.registry import create as create
from ansatz.symmetry.registry import names as names
from ansatz.symmetry.registry import register as register
from ansatz.symmetry.shifts import CyclicShift as CyclicShift
from ansatz.symmetry.shifts import Shift as Shift
from ansatz.symmetry.shifts import TimeShift as TimeShift
from ansatz.symmetry.registry import suitable_groups as suitable_groups
from ansatz.symmetry.rotations import Dihedral as Dihedral
from ansatz.symmetry.rotations import Flip as Flip
from ansatz.symmetry.rotations import Rotation90 as Rotation90
from ansatz.symmetry.rotations import Rotation as Rotation
