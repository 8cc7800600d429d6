"""A QLoRA of our own making; `check` reads it and never runs it."""

import torch
from peft import LoraConfig
from transformers import AutoModelForCausalLM, BitsAndBytesConfig
from trl import SFTConfig, SFTTrainer

MODEL = "Qwen/Qwen2.5-7B-Instruct"
bits = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4")
model = AutoModelForCausalLM.from_pretrained(MODEL, quantization_config=bits, dtype=torch.bfloat16)
arguments = SFTConfig(
    output_dir="out",
    per_device_train_batch_size=8,
    max_length=2048,
)
adapters = LoraConfig(r=16, target_modules="all-linear")
SFTTrainer(model=model, args=arguments, peft_config=adapters).train()
