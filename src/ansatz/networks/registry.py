"""Networks by name, all behind one signature."""

from typing import Any

import torch
from torch import nn

from ansatz.layers.limits import require_whole
from ansatz.networks.inputs import check_size
from ansatz.registry import Registry
from ansatz.spec import Inputs, InputSpec

registry = Registry(
    "network",
    {
        "adamic_adar": "ansatz.networks.graphs.adamic_adar:AdamicAdar",
        "alexnet": "ansatz.networks.alexnet:AlexNet",
        "attention_unet": "ansatz.networks.attention_unet:AttentionUNet",
        "bert": "ansatz.networks.bert:BERT",
        "bag": "ansatz.networks.bag:Bag",
        "complex": "ansatz.networks.triples:ComplEx",
        "dcgan": "ansatz.networks.dcgan:DCGAN",
        "denoising_mlp": "ansatz.networks.denoising_mlp:DenoisingMLP",
        "denoising_unet": "ansatz.networks.denoising_unet:DenoisingUNet",
        "deeppot": "ansatz.networks.deeppot:DeepPot",
        "deepsets": "ansatz.networks.deepsets:DeepSets",
        "densenet121": "ansatz.networks.densenet:DenseNet121",
        "distilbert": "ansatz.networks.distilbert:DistilBERT",
        "distmult": "ansatz.networks.triples:DistMult",
        "dot": "ansatz.networks.triples:Dot",
        "element_counts": "ansatz.networks.element_counts:ElementCounts",
        "encoder_decoder": "ansatz.networks.encoder_decoder:EncoderDecoder",
        "fcn": "ansatz.networks.fcn:FCN",
        "gat": "ansatz.networks.graphs.attention:GAT",
        "gatv2": "ansatz.networks.graphs.attention:GATv2",
        "gcn": "ansatz.networks.graphs.convolution:GCN",
        "gin": "ansatz.networks.graphs.convolution:GIN",
        "gnn": "ansatz.networks.graphs.convolution:GNN",
        "graphsage": "ansatz.networks.graphs.convolution:GraphSAGE",
        "linear_graph": "ansatz.networks.graphs.linear:LinearGraph",
        "linear_node": "ansatz.networks.graphs.linear:LinearNode",
        "sgc": "ansatz.networks.graphs.linear:SGC",
        "chebnet": "ansatz.networks.graphs.filters:ChebNet",
        "gae": "ansatz.networks.graphs.autoencoder:GAE",
        "gated_graph": "ansatz.networks.graphs.message_passing:GatedGraph",
        "graph_gru": "ansatz.networks.graphs.recurrent:GraphGRU",
        "graph_lstm": "ansatz.networks.graphs.recurrent:GraphLSTM",
        "graph_unet": "ansatz.networks.graphs.unet:GraphUNet",
        "kgnn": "ansatz.networks.graphs.kgnn:KGNN",
        "mpnn": "ansatz.networks.graphs.message_passing:MPNN",
        "relational": "ansatz.networks.graphs.filters:Relational",
        "spectral": "ansatz.networks.graphs.filters:SpectralNetwork",
        "vgae": "ansatz.networks.graphs.autoencoder:VGAE",
        "googlenet": "ansatz.networks.googlenet:GoogLeNet",
        "gru": "ansatz.networks.recurrent:GRUNetwork",
        "gpt": "ansatz.networks.gpt:GPT",
        "highway": "ansatz.networks.highway_network:HighwayNetwork",
        "lenet5": "ansatz.networks.lenet:LeNet5",
        "invariant_points": "ansatz.networks.invariant_points:InvariantPoints",
        "joined": "ansatz.networks.joined:Joined",
        "linear": "ansatz.networks.linear:Linear",
        "linear_joined": "ansatz.networks.linear_joined:LinearJoined",
        "linear_grid": "ansatz.networks.linear:LinearGrid",
        "linear_pixels": "ansatz.networks.linear:LinearPixels",
        "lru": "ansatz.networks.recurrent:LRUNetwork",
        "lstm": "ansatz.networks.recurrent:LSTMNetwork",
        "mingru": "ansatz.networks.recurrent:MinGRUNetwork",
        "minlstm": "ansatz.networks.recurrent:MinLSTMNetwork",
        "linear_points": "ansatz.networks.invariant_points:LinearPoints",
        "linear_set": "ansatz.networks.deepsets:LinearSet",
        "linear_text": "ansatz.networks.linear_text:LinearText",
        "linear_window": "ansatz.networks.window:LinearWindow",
        "mlp": "ansatz.networks.mlp:MLP",
        "ngram": "ansatz.networks.ngram:NGram",
        "neocognitron": "ansatz.networks.neocognitron:Neocognitron",
        "patchgan": "ansatz.networks.dcgan:PatchGAN",
        "pine": "ansatz.networks.pine:Pine",
        "pointnet": "ansatz.networks.pointnet:PointNet",
        "pointer": "ansatz.networks.pointer:Pointer",
        "random_features": "ansatz.networks.random_features:RandomFeatureNetwork",
        "resnet18": "ansatz.networks.resnet:ResNet18",
        "resnet34": "ansatz.networks.resnet:ResNet34",
        "resnet50": "ansatz.networks.resnet:ResNet50",
        "resnet101": "ansatz.networks.resnet:ResNet101",
        "resnet152": "ansatz.networks.resnet:ResNet152",
        "rnn": "ansatz.networks.recurrent:ElmanNetwork",
        "schnet": "ansatz.networks.schnet:SchNet",
        "seq2seq": "ansatz.networks.seq2seq:Seq2Seq",
        "sliding_window": "ansatz.networks.sliding_window:SlidingWindow",
        "tail_frequencies": "ansatz.networks.triples:TailFrequencies",
        "transe": "ansatz.networks.triples:TransE",
        "transformer": "ansatz.networks.transformer:Transformer",
        "set_transformer": "ansatz.networks.set_transformer:SetTransformer",
        "small_resnet": "ansatz.networks.small_resnet:SmallResNet",
        "text_cnn": "ansatz.networks.text_cnn:TextCNN",
        "unet": "ansatz.networks.unet:UNet",
        "unet3d": "ansatz.networks.unet:UNet3d",
        "vgg11": "ansatz.networks.vgg:VGG11",
        "vgg13": "ansatz.networks.vgg:VGG13",
        "vgg16": "ansatz.networks.vgg:VGG16",
        "vgg19": "ansatz.networks.vgg:VGG19",
        "vit_b_16": "ansatz.networks.vision_transformer:ViTB16",
        "vit_tiny": "ansatz.networks.vision_transformer:ViTTiny",
        "window": "ansatz.networks.window:Window",
    },
)

names = registry.names
register = registry.register


def create(
    name: str,
    inputs: Inputs,
    outputs: int,
    generator: torch.Generator | None = None,
    **options: Any,
) -> nn.Module:
    """Creates the network ``name`` for these inputs and this number of raw outputs.

    Its size is known from a copy without memory (torch's meta device) and refused if it is
    beyond 2 GB, before anything is allocated. A factory that you register takes
    ``(inputs: InputSpec, outputs: int, *, generator=None, ...)`` and is called twice for that.

    Args:
        name: one of ``names()``.
        inputs: what x looks like, or its number of features.
        outputs: raw numbers per row, :math:`P`.
        generator: where initial weights are drawn from; torch's global generator is then left
            alone. When not given the global one is used, as torch's own layers do.
        options: those of the network; a wrong one is an error that lists them.

    Example:
        >>> import torch
        >>> from ansatz import networks
        >>> network = networks.create("mlp", inputs=3, outputs=2, widths=(16,))
        >>> network(torch.randn(5, 3)).shape
        torch.Size([5, 2])
    """
    spec = InputSpec.of(inputs)
    outputs = require_whole(f"outputs of {name}", outputs)
    with torch.device("meta"):
        check_size(name, registry.create(name, spec, outputs, **options))
    return registry.create(name, spec, outputs, generator=generator, **options)
