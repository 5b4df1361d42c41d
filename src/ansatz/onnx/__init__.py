"""Fitted models as ONNX files: from the columns of a table to the parameters of a likelihood."""

from ansatz.fitting.contracts.exporter import Input as Input
from ansatz.onnx.export import Exported as Exported
from ansatz.onnx.export import export as export
from ansatz.onnx.inputs import feed as feed
from ansatz.onnx.served import ServedModel as ServedModel
from ansatz.onnx.served import served_module as served_module
