"""Receptive fields, followed through torch's own operations."""

from ansatz.networks.fields.receptive_fields import Fields as Fields
from ansatz.networks.fields.operations import fields_of as fields_of
