"""Names of activations, initialisations, normalisations and layers; torch's own where it has them.

``registry`` holds the layers, ``functions`` what has no weights; ``activations``, ``initializers``,
``norms`` and ``numeric_embeddings`` are what a layer's options of those names choose from.
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
        "erf": "ansatz.layers.activation:Erf",
        "sin": "ansatz.layers.activation:Sine",
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
        "local_response": "ansatz.layers.norm:LocalResponseNorm",
        "weight": "torch.nn.utils.parametrizations:weight_norm",
        "spectral": "torch.nn.utils.parametrizations:spectral_norm",
    },
)

numeric_embeddings = Registry(
    "numeric embedding",
    {
        "periodic": "ansatz.layers.embedding:PeriodicEmbedding",
        "piecewise_linear": "ansatz.layers.embedding:PiecewiseLinearEmbedding",
    },
)

functions = Registry(
    "function",
    {
        "attention": "ansatz.layers.attention:attention",
        "convolve": "ansatz.layers.convolution:convolve",
        "cross_correlate": "ansatz.layers.convolution:cross_correlate",
        "diff_pool": "ansatz.layers.graphs.pooling:diff_pool",
        "propagate": "ansatz.layers.graphs.propagate:propagate",
        "fft_convolve": "ansatz.layers.convolution:fft_convolve",
        "scan": "ansatz.layers.scan:scan",
        "toeplitz_matrix": "ansatz.layers.convolution:toeplitz_matrix",
    },
)

_BY_AXES = {  # torch has each for one, two and three axes
    "conv": "Conv",
    "conv_transpose": "ConvTranspose",
    "max_pool": "MaxPool",
    "avg_pool": "AvgPool",
    "lp_pool": "LPPool",
    "adaptive_max_pool": "AdaptiveMaxPool",
    "adaptive_avg_pool": "AdaptiveAvgPool",
    "max_unpool": "MaxUnpool",
    "zero_pad": "ZeroPad",
    "reflection_pad": "ReflectionPad",
    "replication_pad": "ReplicationPad",
    "circular_pad": "CircularPad",
    "dropout": "Dropout",
    "batch_norm": "BatchNorm",
    "instance_norm": "InstanceNorm",
}

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
        "highway": "ansatz.layers.residual:Highway",
        "elman": "ansatz.layers.elman:Elman",
        "lstm": "ansatz.layers.lstm:LSTM",
        "gru": "ansatz.layers.gru:GRU",
        "deep_transition": "ansatz.layers.deep_transition:DeepTransition",
        "mingru": "ansatz.layers.min_gru:MinGRU",
        "minlstm": "ansatz.layers.min_gru:MinLSTM",
        "lru": "ansatz.layers.lru:LRU",
        "stacked": "ansatz.layers.stacked:Stacked",
        "bidirectional": "ansatz.layers.stacked:Bidirectional",
        "category_embedding": "ansatz.layers.embedding:CategoryEmbedding",
        "periodic_embedding": "ansatz.layers.embedding:PeriodicEmbedding",
        "piecewise_linear_embedding": "ansatz.layers.embedding:PiecewiseLinearEmbedding",
        "equivariant_linear": "ansatz.layers.equivariant:EquivariantLinear",
        "set_pool": "ansatz.layers.set_pool:SetPool",
        "feature_linear": "ansatz.layers.dense:FeatureLinear",
        "locally_connected": "ansatz.layers.locally_connected:LocallyConnected",
        "random_features": "ansatz.layers.random_features:RandomFeatures",
        "multi_head_attention": "ansatz.layers.attention:MultiHeadAttention",
        "bahdanau_attention": "ansatz.layers.attention:BahdanauAttention",
        "transformer_block": "ansatz.layers.transformer_block:TransformerBlock",
        "sinusoidal_positions": "ansatz.layers.positions:SinusoidalPositions",
        "learned_positions": "ansatz.layers.positions:LearnedPositions",
        "rotary_positions": "ansatz.layers.positions:RotaryPositions",
        "lora": "ansatz.layers.lora:LoRA",
        "gat_conv": "ansatz.layers.graphs.attention:GATConv",
        "gatv2_conv": "ansatz.layers.graphs.attention:GATv2Conv",
        "cheb_conv": "ansatz.layers.graphs.spectral:ChebConv",
        "gated_graph_conv": "ansatz.layers.graphs.gated:GatedGraphConv",
        "graph_recurrent": "ansatz.layers.graphs.gated:GraphRecurrent",
        "rgcn_conv": "ansatz.layers.graphs.relational:RGCNConv",
        "spectral_conv": "ansatz.layers.graphs.spectral:SpectralConv",
        "top_k_pooling": "ansatz.layers.graphs.pooling:TopKPooling",
        "gcn_conv": "ansatz.layers.graphs.gcn:GCNConv",
        "gin_conv": "ansatz.layers.graphs.gin:GINConv",
        "graph_conv": "ansatz.layers.graphs.graph_conv:GraphConv",
        "graph_readout": "ansatz.layers.graphs.readout:Readout",
        "sage_conv": "ansatz.layers.graphs.graph_conv:SAGEConv",
        "sg_conv": "ansatz.layers.graphs.gcn:SGConv",
        "batch_norm": "torch.nn:BatchNorm1d",
        "layer_norm": "torch.nn:LayerNorm",
        "rms_norm": "torch.nn:RMSNorm",
        "local_response_norm": "ansatz.layers.norm:LocalResponseNorm",
        "stochastic_pool1d": "ansatz.layers.pooling:StochasticPool1d",
        "stochastic_pool2d": "ansatz.layers.pooling:StochasticPool2d",
        "stochastic_pool3d": "ansatz.layers.pooling:StochasticPool3d",
        "global_pool": "ansatz.layers.pooling:GlobalPool",
        "spatial_pyramid_pool": "ansatz.layers.pooling:SpatialPyramidPool",
        "bed_of_nails": "ansatz.layers.pooling:BedOfNails",
        "upsample": "torch.nn:Upsample",
        "pixel_shuffle": "torch.nn:PixelShuffle",
        "pixel_unshuffle": "torch.nn:PixelUnshuffle",
        "group_norm": "torch.nn:GroupNorm",
        "flatten": "torch.nn:Flatten",
        "weight_norm": "torch.nn.utils.parametrizations:weight_norm",
        **{f"{n}{d}d": f"torch.nn:{kind}{d}d" for n, kind in _BY_AXES.items() for d in (1, 2, 3)},
    },
)

create = registry.create
names = registry.names
register = registry.register
