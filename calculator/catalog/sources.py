"""Sources of formulas and figures: data only."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Source:
    """Source of a formula or figure."""

    title: str
    address: str


SOURCES: Final[dict[str, Source]] = {
    "bert": Source(
        "Devlin et al., 2018. BERT: Pre-training of Deep Bidirectional Transformers",
        "https://arxiv.org/abs/1810.04805",
    ),
    "t5": Source(
        "Raffel et al., 2019. Exploring the Limits of Transfer Learning with a Unified "
        "Text-to-Text Transformer",
        "https://arxiv.org/abs/1910.10683",
    ),
    "gpt2": Source(
        "Radford et al., 2019. Language Models are Unsupervised Multitask Learners",
        "https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf",
    ),
    "gpt3": Source(
        "Brown et al., 2020. Language Models are Few-Shot Learners, table 2.1",
        "https://arxiv.org/abs/2005.14165",
    ),
    "gptj": Source(
        "Wang and Komatsuzaki, 2021. GPT-J-6B: A 6 Billion Parameter Autoregressive Language Model",
        "https://github.com/kingoflolz/mesh-transformer-jax",
    ),
    "dalle": Source(
        "Ramesh et al., 2021. Zero-Shot Text-to-Image Generation, appendix B",
        "https://arxiv.org/abs/2102.12092",
    ),
    "together": Source(
        "Borzunov et al., 2022. Training Transformers Together, section 3.1",
        "https://arxiv.org/abs/2207.03481",
    ),
    "mixtral": Source(
        "Jiang et al., 2024. Mixtral of Experts",
        "https://arxiv.org/abs/2401.04088",
    ),
    "transformers": Source(
        "Hugging Face transformers 5.23, the models' source code",
        "https://github.com/huggingface/transformers",
    ),
    "torch": Source(
        "PyTorch 2.13, source code: derivatives.yaml, autograd, torch.optim, the caching allocator",
        "https://github.com/pytorch/pytorch",
    ),
    "ddp": Source(
        "Li et al., 2020. PyTorch Distributed: Experiences on Accelerating Data Parallel Training, "
        "section 3.2.3",
        "https://arxiv.org/abs/2006.15704",
    ),
    "zero": Source(
        "Rajbhandari et al., 2019. ZeRO: Memory Optimizations Toward Training Trillion Parameter "
        "Models",
        "https://arxiv.org/abs/1910.02054",
    ),
    "fsdp2": Source(
        "PyTorch documentation, torch.distributed.fsdp.fully_shard",
        "https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html",
    ),
    "grad_scaler": Source(
        "PyTorch documentation, Automatic Mixed Precision (torch.amp.GradScaler)",
        "https://docs.pytorch.org/docs/stable/amp.html",
    ),
    "tensor_parallel": Source(
        "PyTorch documentation, Tensor Parallelism (torch.distributed.tensor.parallel)",
        "https://docs.pytorch.org/docs/stable/distributed.tensor.parallel.html",
    ),
    "context_parallel": Source(
        "PyTorch tutorial, Introduction to Context Parallel (context_parallel)",
        "https://docs.pytorch.org/tutorials/unstable/context_parallel.html",
    ),
    "expert_parallel": Source(
        "transformers documentation, Expert parallelism (DistributedConfig)",
        "https://huggingface.co/docs/transformers/expert_parallelism",
    ),
    "pipeline": Source(
        "PyTorch documentation, Pipeline Parallelism (torch.distributed.pipelining)",
        "https://docs.pytorch.org/docs/stable/distributed.pipelining.html",
    ),
    "autocast": Source(
        "PyTorch documentation, Automatic Mixed Precision: operations by number format",
        "https://docs.pytorch.org/docs/stable/amp.html",
    ),
    "korthikanti": Source(
        "Korthikanti et al., 2022. Reducing Activation Recomputation in Large Transformer Models",
        "https://arxiv.org/abs/2205.05198",
    ),
    "checkpointing": Source(
        "Chen et al., 2016. Training Deep Nets with Sublinear Memory Cost",
        "https://arxiv.org/abs/1604.06174",
    ),
    "selective_contexts": Source(
        "PyTorch documentation, torch.utils.checkpoint.create_selective_checkpoint_contexts",
        "https://docs.pytorch.org/docs/stable/checkpoint.html",
    ),
    "revnet": Source(
        "Gomez et al., 2017. The Reversible Residual Network: Backpropagation Without Storing "
        "Activations",
        "https://arxiv.org/abs/1707.04585",
    ),
    "albert": Source(
        "Lan et al., 2019. ALBERT: A Lite BERT, on sharing weights between layers",
        "https://arxiv.org/abs/1909.11942",
    ),
    "flash": Source(
        "Dao et al., 2022. FlashAttention: Fast and Memory-Efficient Exact Attention",
        "https://arxiv.org/abs/2205.14135",
    ),
    "mixed": Source(
        "Micikevicius et al., 2017. Mixed Precision Training",
        "https://arxiv.org/abs/1710.03740",
    ),
    "adam": Source(
        "Kingma and Ba, 2014. Adam: A Method for Stochastic Optimization",
        "https://arxiv.org/abs/1412.6980",
    ),
    "lamb": Source(
        "You et al., 2019. Large Batch Optimization for Deep Learning: Training BERT in 76 minutes",
        "https://arxiv.org/abs/1904.00962",
    ),
    "adafactor": Source(
        "Shazeer and Stern, 2018. Adafactor: Adaptive Learning Rates with Sublinear Memory Cost",
        "https://arxiv.org/abs/1804.04235",
    ),
    "lion": Source(
        "Chen et al., 2023. Symbolic Discovery of Optimization Algorithms",
        "https://arxiv.org/abs/2302.06675",
    ),
    "8bit": Source(
        "Dettmers et al., 2021. 8-bit Optimizers via Block-wise Quantization",
        "https://arxiv.org/abs/2110.02861",
    ),
    "bitsandbytes": Source(
        "bitsandbytes 0.50, source code: optim/optimizer.py",
        "https://github.com/bitsandbytes-foundation/bitsandbytes",
    ),
    "lora": Source(
        "Hu et al., 2021. LoRA: Low-Rank Adaptation of Large Language Models",
        "https://arxiv.org/abs/2106.09685",
    ),
    "qlora": Source(
        "Dettmers et al., 2023. QLoRA: Efficient Finetuning of Quantized LLMs",
        "https://arxiv.org/abs/2305.14314",
    ),
    "paged": Source(
        "bitsandbytes documentation: 8-bit optimizers, paged optimizers",
        "https://huggingface.co/docs/bitsandbytes/explanations/optimizers",
    ),
    "inbackward": Source(
        "PyTorch tutorials: How to save memory by fusing the optimizer step into the backward pass",
        "https://docs.pytorch.org/tutorials/intermediate/optimizer_step_in_backward_tutorial.html",
    ),
    "linear_cross_entropy": Source(
        "PyTorch documentation, torch.nn.functional.linear_cross_entropy",
        "https://docs.pytorch.org/docs/stable/generated/"
        "torch.nn.functional.linear_cross_entropy.html",
    ),
    "save_on_cpu": Source(
        "PyTorch documentation, torch.autograd.graph.save_on_cpu",
        "https://docs.pytorch.org/docs/stable/autograd.html",
    ),
    "muon": Source(
        "Jordan et al., 2024. Muon: An optimizer for hidden layers in neural networks",
        "https://kellerjordan.github.io/posts/muon/",
    ),
    "peft": Source(
        "Hugging Face. PEFT: Parameter-Efficient Fine-Tuning",
        "https://github.com/huggingface/peft",
    ),
    "unsloth": Source(
        "Unsloth documentation: fine-tuning guide and notebooks",
        "https://docs.unsloth.ai/get-started/fine-tuning-llms-guide",
    ),
    "offload": Source(
        "Ren et al., 2021. ZeRO-Offload: Democratizing Billion-Scale Model Training",
        "https://arxiv.org/abs/2101.06840",
    ),
    "hivemind": Source(
        "hivemind 1.1.12, source code: averaging, optim",
        "https://github.com/learning-at-home/hivemind",
    ),
    "karimireddy": Source(
        "Karimireddy, He and Jaggi, 2021. Learning from History for Byzantine Robust Optimization, "
        "centered clipping",
        "https://arxiv.org/abs/2012.10333",
    ),
    "gorbunov": Source(
        "Gorbunov et al., 2022. Secure Distributed Training at Scale, CenteredClip",
        "https://arxiv.org/abs/2106.11257",
    ),
    "yin": Source(
        "Yin et al., 2018. Byzantine-Robust Distributed Learning: Towards Optimal Statistical "
        "Rates",
        "https://arxiv.org/abs/1803.01498",
    ),
    "diskin": Source(
        "Diskin et al., 2021. Distributed Deep Learning in Open Collaborations",
        "https://arxiv.org/abs/2106.10207",
    ),
    "narayanan": Source(
        "Narayanan et al., 2021. Efficient Large-Scale Language Model Training on GPU Clusters "
        "Using Megatron-LM",
        "https://arxiv.org/abs/2104.04473",
    ),
    "llama": Source(
        "Touvron et al., 2023. LLaMA: Open and Efficient Foundation Language Models",
        "https://arxiv.org/abs/2302.13971",
    ),
    "llama2": Source(
        "Touvron et al., 2023. Llama 2: Open Foundation and Fine-Tuned Chat Models",
        "https://arxiv.org/abs/2307.09288",
    ),
    "llama3": Source(
        "Grattafiori et al., 2024. The Llama 3 Herd of Models, section 3.3.4",
        "https://arxiv.org/abs/2407.21783",
    ),
    "zhao": Source(
        "Zhao et al., 2023. A Survey of Large Language Models, table 1",
        "https://arxiv.org/abs/2303.18223",
    ),
    "intellect": Source(
        "Jaghouar et al., 2024. INTELLECT-1 Technical Report",
        "https://arxiv.org/abs/2412.01152",
    ),
    "llm-foundry": Source(
        "MosaicML, 2023 to 2025. LLM Foundry, training benchmarks",
        "https://github.com/mosaicml/llm-foundry/tree/main/scripts/train/benchmarking",
    ),
    "cerebras-gpt": Source(
        "Dey et al., 2023. Cerebras-GPT: Open Compute-Optimal Language Models Trained on the "
        "Cerebras Wafer-Scale Cluster",
        "https://arxiv.org/abs/2304.03208",
    ),
    "chinchilla": Source(
        "Hoffmann et al., 2022. Training Compute-Optimal Large Language Models",
        "https://arxiv.org/abs/2203.15556",
    ),
    "besiroglu": Source(
        "Besiroglu et al., 2024. Chinchilla Scaling: A Replication Attempt",
        "https://arxiv.org/abs/2404.10102",
    ),
    "diloco": Source(
        "Douillard et al., 2023. DiLoCo: Distributed Low-Communication Training of Language Models",
        "https://arxiv.org/abs/2311.08105",
    ),
    "sparseloco": Source(
        "Sarfi et al., 2025. Communication Efficient LLM Pre-training with SparseLoCo",
        "https://arxiv.org/abs/2508.15706",
    ),
    "covenant": Source(
        "Lidin et al., 2026. Covenant-72B: Pre-Training a 72B LLM with Trustless Peers "
        "Over-the-Internet",
        "https://arxiv.org/abs/2603.08163",
    ),
    "powersgd": Source(
        "Vogels, Karimireddy and Jaggi, 2019. PowerSGD: Practical Low-Rank Gradient Compression "
        "for Distributed Optimization",
        "https://arxiv.org/abs/1905.13727",
    ),
    "rfc6928": Source(
        "Chu et al., 2013. RFC 6928: Increasing TCP's Initial Window",
        "https://www.rfc-editor.org/rfc/rfc6928",
    ),
    "nvidia": Source(
        "NVIDIA's product pages, data sheets and white papers: memory, peak rate, power",
        "https://www.nvidia.com/en-us/data-center/products/",
    ),
}
