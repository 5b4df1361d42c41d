"""Attribution of outputs to pixels of the input, and feature maps of layers."""

from ansatz.attribution.attention_maps import attention_maps as attention_maps
from ansatz.attribution.layer import feature_maps as feature_maps
from ansatz.attribution.layer import filters as filters
from ansatz.attribution.grad_cam import grad_cam as grad_cam
from ansatz.attribution.integrated_gradients import integrated_gradients as integrated_gradients
from ansatz.attribution.layer import convolutions as convolutions
from ansatz.attribution.layer import find_layer as find_layer
from ansatz.attribution.layer import last_maps as last_maps
from ansatz.attribution.occlusion import occlusion as occlusion
from ansatz.attribution.saliency import saliency as saliency
from ansatz.attribution.saliency import smooth_grad as smooth_grad
from ansatz.attribution.target import score as score
