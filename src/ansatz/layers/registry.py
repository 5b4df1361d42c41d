"""Names of activations, initialisations, normalisations and layers; torch's own where it has them.

``registry`` holds the layers; ``activations``, ``initializers``, ``norms`` and
``numeric_embeddings`` are what a layer's options of those names choose from.
"""

from ansatz.registry import Registry

activations = Registry(
    "activation",
    {
        "identity": "torch.nn:Identity",
        "sigmoid": "torch.nn:Sigmoid",
        "tanh": "torch.nn:Tanh",
        "relu": "torch.nn:ReLU",
        "relu6": "torch.nn:ReLU6",
        "leaky_relu": "torch.nn:LeakyReLU",
        "prelu": "torch.nn:PReLU",
        "softplus": "torch.nn:Softplus",
        "softsign": "torch.nn:Softsign",
        "gelu": "torch.nn:GELU",
        "silu": "torch.nn:SiLU",
        "mish": "torch.nn:Mish",
        "elu": "torch.nn:ELU",
        "celu": "torch.nn:CELU",
        "selu": "torch.nn:SELU",
        "hardtanh": "torch.nn:Hardtanh",
        "hardsigmoid": "torch.nn:Hardsigmoid",
        "hardswish": "torch.nn:Hardswish",
        "swish": "ansatz.layers.activation:Swish",
        "self_gated": "ansatz.layers.activation:SelfGated",
        "softmax": "ansatz.layers.activation:softmax",
        "step": "ansatz.layers.activation:Step",
    },
)

initializers = Registry(
    "initialisation",
    {
        "zeros": "ansatz.layers.schemes:zeros",
        "constant": "ansatz.layers.schemes:constant",
        "normal": "ansatz.layers.schemes:normal",
        "uniform": "ansatz.layers.schemes:uniform",
        "lecun_normal": "ansatz.layers.schemes:lecun_normal",
        "lecun_uniform": "ansatz.layers.schemes:lecun_uniform",
        "glorot_normal": "ansatz.layers.schemes:glorot_normal",
        "glorot_uniform": "ansatz.layers.schemes:glorot_uniform",
        "xavier_normal": "ansatz.layers.schemes:glorot_normal",
        "xavier_uniform": "ansatz.layers.schemes:glorot_uniform",
        "he_normal": "ansatz.layers.schemes:he_normal",
        "he_uniform": "ansatz.layers.schemes:he_uniform",
        "kaiming_normal": "ansatz.layers.schemes:he_normal",
        "kaiming_uniform": "ansatz.layers.schemes:he_uniform",
        "orthogonal": "ansatz.layers.schemes:orthogonal",
    },
)

norms = Registry(
    "norm",
    {
        "batch": "torch.nn:BatchNorm1d",
        "layer": "torch.nn:LayerNorm",
        "rms": "torch.nn:RMSNorm",
        "group": "torch.nn:GroupNorm",
        "instance": "torch.nn:InstanceNorm1d",
        "local_response": "torch.nn:LocalResponseNorm",
        "weight": "torch.nn.utils.parametrizations:weight_norm",
        "spectral": "torch.nn.utils.parametrizations:spectral_norm",
    },
)

numeric_embeddings = Registry(
    "numeric embedding",
    {
        "periodic": "ansatz.layers.periodic:PeriodicEmbedding",
        "piecewise_linear": "ansatz.layers.piecewise_linear:PiecewiseLinearEmbedding",
    },
)

registry = Registry(
    "layer",
    {
        "linear": "torch.nn:Linear",
        "bilinear": "torch.nn:Bilinear",
        "embedding": "torch.nn:Embedding",
        "dropout": "torch.nn:Dropout",
        "alpha_dropout": "torch.nn:AlphaDropout",
        "drop_connect": "ansatz.layers.dropout:DropConnect",
        "gaussian_noise": "ansatz.layers.dropout:GaussianNoise",
        "dense": "ansatz.layers.dense:Dense",
        "residual": "ansatz.layers.residual:Residual",
        "dense_block": "ansatz.layers.dense_block:DenseBlock",
        "highway": "ansatz.layers.highway:Highway",
        "category_embedding": "ansatz.layers.embedding:CategoryEmbedding",
        "periodic_embedding": "ansatz.layers.periodic:PeriodicEmbedding",
        "piecewise_linear_embedding": "ansatz.layers.piecewise_linear:PiecewiseLinearEmbedding",
        "feature_linear": "ansatz.layers.feature_linear:FeatureLinear",
        "random_features": "ansatz.layers.random_features:RandomFeatures",
        "batch_norm": "torch.nn:BatchNorm1d",
        "layer_norm": "torch.nn:LayerNorm",
        "rms_norm": "torch.nn:RMSNorm",
        "local_response_norm": "torch.nn:LocalResponseNorm",
        "weight_norm": "torch.nn.utils.parametrizations:weight_norm",
    },
)

create = registry.create
names = registry.names
register = registry.register
